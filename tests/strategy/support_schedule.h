// Schedules written as text.
#pragma once

#include <string>

#include "strategy/schedule/schedule.h"

namespace foreshard {

// One rank per line, "0F0 0F1 2F0 ..." (stage, work, micro-batch), with blanks or commas, as PyTorch's pipelining runtime has it; lines that
// are empty or begin with '#' are skipped. Throws Error for anything else and for incomplete lists.
ScheduleLists parse_schedule_text(const std::string& text, const std::string& file_name = "schedule");

}  // namespace foreshard
