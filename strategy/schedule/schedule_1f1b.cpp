// 1F1B (PipeDream-flush): rank r begins with p - r - 1 forwards, then alternates one forward and one backward.
//   r0  0>1>..........0<<<2>1<<<3>..2<<<..3<<<
//   r1  ..0>..1>..0<<<  the idle time of GPipe, but at most p - r micro-batches in flight on rank r
#include <algorithm>

#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

static std::optional<Infeasible> refuse_1f1b(const ScheduleShape& shape) { return refuse_chunks(shape, "1f1b"); }

ScheduleLists one_f_one_b_lists(const ScheduleShape& shape) {
  ScheduleLists result(static_cast<std::size_t>(shape.p));
  for (int rank = 0; rank < shape.p; ++rank) {
    auto& list = result[static_cast<std::size_t>(rank)];
    list.reserve(2 * static_cast<std::size_t>(shape.m));
    const int warm_up = std::min(shape.p - 1 - rank, shape.m);
    for (int i = 0; i < warm_up; ++i) list.push_back({Work::F, rank, i});
    for (int k = 0; k < shape.m; ++k) {
      if (warm_up + k < shape.m) list.push_back({Work::F, rank, warm_up + k});
      list.push_back({Work::B, rank, k});
    }
  }
  return result;
}

ScheduleEntry one_f_one_b_schedule() {
  return {.id = Schedule::OneFOneB,
          .name = name_of(Schedule::OneFOneB),
          .summary = "one forward, one backward in turn: idle (p-1)(F+B), at most p-r micro-batches in flight on rank r",
          .refuse = refuse_1f1b,
          .lists = one_f_one_b_lists,
          .rank_of_stage = straight_placement,
          .stage_of = loop_stage,
          .on_request = false,
          .in_flight = [](const FlightShape& s) { return std::min(s.m, s.p - s.rank); }};
}

}  // namespace foreshard
