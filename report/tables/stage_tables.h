// The tables of a Summary with one row per stage or pipeline rank. Equal neighbouring rows are printed as one.
#pragma once

#include "core/result/summary.h"
#include "report/words/text_table.h"

namespace foreshard {

std::string words_of(BubbleCause cause);  // "warm-up", "exposed communication"

// The times of each stage per micro-batch and, when every pipeline rank holds one stage, its bubble. `most_rows` limits the rows,
// here and below: if there are more, the middle ones are left out.
TextTable stage_table(const Summary& summary, int most_rows);

// The bubbles of each pipeline rank, when ranks hold several stages; otherwise empty.
TextTable rank_table(const Summary& summary, int most_rows);

// Per pipeline rank, in GiB: each category at the peak, live peak, order bound, arena, arena + framework, margin.
TextTable memory_table(const Summary& summary, int most_rows);

}  // namespace foreshard
