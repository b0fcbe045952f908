// Reads schedules that users write as text.
#pragma once

#include <string>

#include "strategy/schedule/schedule.h"

namespace foreshard {

// One pipeline rank per line: "0F0 0F1&3B0 2I0 ..." (stage, work, micro-batch), separated by blanks or commas; & joins a forward and a
// backward (or its two halves) to a cell. Also reads what PyTorch's pipelining runtime writes (torch/distributed/pipelining/schedules.py,
// _dump_csv): commas, and "(0F1;3B0)OVERLAP_F_B" for a cell; its sends, receives, gathers and sums (0SEND_F0, 1UNSHARD, ...) are skipped,
// since they follow from the order. Lines that are empty or begin with '#' are skipped. Throws Error, with `file_name` in its message, for
// other text and for incomplete lists.
ScheduleLists parse_schedule_text(const std::string& text, const std::string& file_name = "schedule");

// The lists of a strategy (PipelineChoice::order), one text per pipeline rank. Throws Error as parse_schedule_text.
ScheduleLists parse_order(const std::vector<std::string>& ranks);

// Why the lists are no schedule of p ranks with v stages each and m micro-batches, as a message; empty: they are one.
std::optional<std::string> wrong_size(const ScheduleLists& lists, const ScheduleShape& shape);

}  // namespace foreshard
