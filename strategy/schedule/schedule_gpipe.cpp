// GPipe: all forwards, then all backwards; every micro-batch is in flight at once.
//   r0  0>1>2>3>............0<<<1<<<2<<<3<<<
//   r1  ..0>1>2>3>......0<<<1<<<2<<<3<<<....
#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

static std::optional<Infeasible> refuse_gpipe(const ScheduleShape& shape) { return refuse_chunks(shape, "gpipe"); }

static ScheduleLists gpipe_lists(const ScheduleShape& shape) {
  ScheduleLists result(static_cast<std::size_t>(shape.p));
  for (int rank = 0; rank < shape.p; ++rank) {
    auto& list = result[static_cast<std::size_t>(rank)];
    list.reserve(2 * static_cast<std::size_t>(shape.m));
    for (int i = 0; i < shape.m; ++i) list.push_back({Work::F, rank, i});
    for (int i = 0; i < shape.m; ++i) list.push_back({Work::B, rank, i});
  }
  return result;
}

ScheduleEntry gpipe_schedule() {
  return {.id = Schedule::GPipe,
          .name = name_of(Schedule::GPipe),
          .summary = "all forwards, then all backwards: idle (p-1)(F+B), all m micro-batches in flight",
          .refuse = refuse_gpipe,
          .lists = gpipe_lists,
          .rank_of_stage = straight_placement,
          .stage_of = loop_stage,
          .forwards_first = true,
          .on_request = false,
          .in_flight = [](const FlightShape& s) { return s.m; }};
}

}  // namespace foreshard
