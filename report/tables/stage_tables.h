// The two tables of a Summary that have one row per stage or pipeline rank, with equal neighbours folded.
#pragma once

#include "core/result/summary.h"
#include "report/words/text_table.h"

namespace foreshard {

std::string words_of(BubbleCause cause);  // "warm-up", "exposed communication"

// Isolated times per stage and, when every pipeline rank holds one stage, its bubble.
TextTable stage_table(const Summary& summary, int most_rows);

// Bubbles per pipeline rank, for ranks that hold several stages; else empty.
TextTable rank_table(const Summary& summary, int most_rows);

// GiB per category at the peak, then live peak, order bound, arena, arena + framework, margin.
TextTable memory_table(const Summary& summary, int most_rows);

}  // namespace foreshard
