#include "report/words/span_words.h"
#include "core/base/count_text.h"

namespace foreshard {

const Role& role_of(const Plan& plan, const Trace& trace, ClassId who) {
  return plan.roles[trace.classes[who.index()].role.index()];
}

const Action& action_of(const Plan& plan, const Trace& trace, const Span& span) {
  return role_of(plan, trace, span.who).actions[static_cast<std::size_t>(span.action)];
}

const Instruction& instruction_of(const Plan& plan, const Trace& trace, const Span& span) {
  const Segment& segment = plan.segments[action_of(plan, trace, span).segment.index()];
  return segment.instructions[static_cast<std::size_t>(span.instruction)];
}

const char* letter_of(Work work) {
  switch (work) {
    case Work::F: return "F";
    case Work::B: return "B";
    case Work::I: return "I";
    case Work::W: return "W";
    case Work::Update: return "U";
  }
  return "?";
}

std::string action_name(const Plan& plan, const Action& action) {
  if (action.does.empty()) return plan.segments[action.segment.index()].name;
  std::string name;
  for (const Does& does : action.does) {
    if (!name.empty()) name += " & ";
    if (does.work == Work::Update) {
      name += "update";
      continue;
    }
    name += letter_of(does.work);
    if (does.microbatch >= 0) name += std::to_string(does.microbatch);
    if (plan.stages > static_cast<int>(plan.roles.size())) name += " of stage " + std::to_string(does.stage);
  }
  return name;
}

std::string class_name(const Plan& plan, const Trace& trace, ClassId who) {
  const RankClass& ranks = trace.classes[who.index()];
  std::string name = role_of(plan, trace, who).name;
  if (ranks.members.size() > 1) return name + " (" + counted(ranks.members.size(), "rank") + ")";
  if (!ranks.members.empty()) name += " (rank " + std::to_string(ranks.members.front().value) + ")";
  return name;
}

}  // namespace foreshard
