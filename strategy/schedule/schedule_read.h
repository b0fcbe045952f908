// Schedules that people write: read from text.
#pragma once

#include <string>

#include "strategy/schedule/schedule.h"

namespace foreshard {

// One pipeline rank per line, "0F0 0F1&3B0 2I0 ..." (stage, work, micro-batch; & joins a forward and a backward, or both halves of
// one, to one cell), with blanks or
// commas. PyTorch's pipelining runtime writes the same with commas and "(0F1;3B0)OVERLAP_F_B" for a cell (torch/distributed/pipelining/
// schedules.py, _dump_csv); its sends, receives, gathers and sums (0SEND_F0, 1UNSHARD, ...) follow from the order and are passed over.
// Lines that are empty or begin with '#' are skipped. Throws Error for anything else and for incomplete lists.
ScheduleLists parse_schedule_text(const std::string& text, const std::string& file_name = "schedule");

// The lists of a strategy (PipelineChoice::order), one text per pipeline rank.
ScheduleLists parse_order(const std::vector<std::string>& ranks);

// Why the lists are no schedule of p ranks with v stages each and m micro-batches; empty: they are one.
std::optional<std::string> wrong_size(const ScheduleLists& lists, const ScheduleShape& shape);

}  // namespace foreshard
