// The schedule that a strategy lists itself, action by action (PipelineChoice::order): it has no generator.
#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

static std::optional<Infeasible> refuse_listed(const ScheduleShape& shape) {
  if (auto refused = refuse_size(shape)) return refused;
  return Infeasible{"schedule file is what a file lists, not a rule", {"--schedule file:F", "--schedule 1f1b"}};
}

ScheduleEntry listed_schedule() {
  return {.id = Schedule::Listed,
          .name = name_of(Schedule::Listed),
          .summary = "file:F: the lists of a file, one pipeline rank per line, as PyTorch's pipelining runtime writes them",
          .chunks = Chunks::Any,
          .refuse = refuse_listed,
          .lists = [](const ScheduleShape&) { return ScheduleLists(); },
          .rank_of_stage = loop_placement,
          .stage_of = loop_stage,
          .in_flight = [](const FlightShape& s) { return std::min(s.m, s.p - s.rank) * s.v; }};
}

}  // namespace foreshard
