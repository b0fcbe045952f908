// ZB-H2 (Qi et al. 2024, arXiv:2401.10241, section 2): twice the warm-up of 1F1B fills the ramp as well, with up to 2p - 1
// micro-batches in flight on every rank. The order is a closed rule (docs/schedules.md); the paper's own lists come from a search.
// What stays idle with equal times is the skew of (p-1) F between the ranks, at their ends.
#include <algorithm>

#include "strategy/schedule_rules.h"

namespace foreshard {

static std::optional<Infeasible> refuse(const ScheduleShape& shape) { return refuse_chunks(shape, "zb-h2"); }

static ScheduleLists lists(const ScheduleShape& shape) {
  ScheduleLists result(static_cast<std::size_t>(shape.p));
  for (int rank = 0; rank < shape.p; ++rank) {
    auto& list = result[static_cast<std::size_t>(rank)];
    list.reserve(3 * static_cast<std::size_t>(shape.m));
    const int warm_up = std::min(2 * (shape.p - rank) - 1, shape.m), late = 2 * rank;
    for (int i = 0; i < warm_up; ++i) list.push_back({Work::F, rank, i});
    for (int k = 0; k < shape.m; ++k) {
      list.push_back({Work::I, rank, k});
      if (k >= late) list.push_back({Work::W, rank, k - late});
      if (warm_up + k < shape.m) list.push_back({Work::F, rank, warm_up + k});
    }
    for (int k = std::max(0, shape.m - late); k < shape.m; ++k) list.push_back({Work::W, rank, k});
  }
  return result;
}

ScheduleEntry zb_h2_schedule() {
  return {.id = Schedule::ZeroBubbleH2,
          .name = name_of(Schedule::ZeroBubbleH2),
          .summary = "zb-h1 with twice the warm-up: idle (p-1) max(F, I-F, F+I-2W), up to 2p-1 micro-batches in flight",
          .chunks = false,
          .refuse = refuse,
          .lists = lists,
          .rank_of_stage = straight_placement,
          .stage_of = loop_stage,
          .splits = true};
}

}  // namespace foreshard
