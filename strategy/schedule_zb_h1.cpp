// ZB-H1 (Qi et al. 2024, arXiv:2401.10241, section 2): 1F1B whose weight gradients are put off, rank r always by r of them, so
// that they fill the drain. The memory of 1F1B's first rank, on every rank.
//   r0  0>1>..0<0w2>1<1w2<2w    input gradients <, weight gradients w
//   r1  ..0>0<1>1<0w2>2<1w2w    idle (p-1)(F+I-W), as long as W takes no longer than F and I
#include <algorithm>

#include "strategy/schedule_rules.h"

namespace foreshard {

static std::optional<Infeasible> refuse(const ScheduleShape& shape) { return refuse_chunks(shape, "zb-h1"); }

static ScheduleLists lists(const ScheduleShape& shape) {
  ScheduleLists result(static_cast<std::size_t>(shape.p));
  for (int rank = 0; rank < shape.p; ++rank) {
    auto& list = result[static_cast<std::size_t>(rank)];
    list.reserve(3 * static_cast<std::size_t>(shape.m));
    const int warm_up = std::min(shape.p - 1 - rank, shape.m);
    for (int i = 0; i < warm_up; ++i) list.push_back({Work::F, rank, i});
    for (int k = 0; k < shape.m; ++k) {
      if (warm_up + k < shape.m) list.push_back({Work::F, rank, warm_up + k});
      list.push_back({Work::I, rank, k});
      if (k >= rank) list.push_back({Work::W, rank, k - rank});
    }
    for (int k = std::max(0, shape.m - rank); k < shape.m; ++k) list.push_back({Work::W, rank, k});
  }
  return result;
}

ScheduleEntry zb_h1_schedule() {
  return {.id = Schedule::ZeroBubbleH1,
          .name = name_of(Schedule::ZeroBubbleH1),
          .summary = "1f1b with weight gradients put off: idle (p-1)(F+I-W), at most p micro-batches in flight on every rank",
          .chunks = false,
          .refuse = refuse,
          .lists = lists,
          .rank_of_stage = straight_placement,
          .stage_of = loop_stage,
          .splits = true};
}

}  // namespace foreshard
