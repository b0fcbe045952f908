// Names of spans, actions and classes in timelines, and the plan's entries that they refer to.
#pragma once

#include <string>

#include "core/plan/plan.h"
#include "core/result/trace.h"

namespace foreshard {

const Role& role_of(const Plan& plan, const Trace& trace, ClassId who);
const Action& action_of(const Plan& plan, const Trace& trace, const Span& span);
const Instruction& instruction_of(const Plan& plan, const Trace& trace, const Span& span);  // the first of the span

// "F3", "B3 of stage 5" (when ranks hold several stages), "F4 & B2", "update"; an action that does no work: its
// segment's name.
std::string action_name(const Plan& plan, const Action& action);

// "stage 3 (8 ranks)"; of a class of one rank: "stage 3 (rank 24)".
std::string class_name(const Plan& plan, const Trace& trace, ClassId who);

const char* letter_of(Work work);  // "F", "B", "I", "W", "U"

}  // namespace foreshard
