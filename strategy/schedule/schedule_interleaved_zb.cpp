// Interleaved 1F1B whose weight gradients are put off (ZB1P over chunks; Qi et al. 2024, arXiv:2401.10241): the chunks and groups of
// interleaved-1f1b, the order of zb-h1. Rank r always owes r weight gradients of a chunk.
#include <algorithm>

#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

static ScheduleLists lists(const ScheduleShape& shape) {
  const int group = shape.g == 0 ? shape.p : shape.g;
  const std::vector<ScheduleOp> table = pair_table(shape);
  const int total = static_cast<int>(table.size());
  ScheduleLists result(static_cast<std::size_t>(shape.p));
  for (int rank = 0; rank < shape.p; ++rank) {
    auto& list = result[static_cast<std::size_t>(rank)];
    list.reserve(3 * table.size());
    const auto emit = [&](Work work, int k) {
      const ScheduleOp& pair = table[static_cast<std::size_t>(k)];
      const int chunk = work == Work::F ? pair.stage : shape.v - 1 - pair.stage;
      list.push_back({work, chunk * shape.p + rank, pair.microbatch});
    };
    const int warm_up = std::min(shape.p - 1 - rank + (shape.v - 1) * group, total);
    for (int k = 0; k < warm_up; ++k) emit(Work::F, k);
    for (int k = 0; k < total; ++k) {
      if (warm_up + k < total) emit(Work::F, warm_up + k);
      emit(Work::I, k);
      if (k >= rank) emit(Work::W, k - rank);
    }
    for (int k = std::max(0, total - rank); k < total; ++k) emit(Work::W, k);
  }
  return result;
}

ScheduleEntry interleaved_zb_schedule() {
  return {.id = Schedule::InterleavedZeroBubble,
          .name = name_of(Schedule::InterleavedZeroBubble),
          .summary = "interleaved-1f1b with weight gradients put off: idle (p-1)(F+I-W)/v, p micro-batches in flight",
          .chunks = Chunks::Several,
          .refuse = [](const ScheduleShape& shape) { return refuse_groups(shape, "interleaved-zb-1p"); },
          .lists = lists,
          .rank_of_stage = loop_placement,
          .stage_of = loop_stage,
          .splits = true,
          .in_flight = [](const FlightShape& s) { return std::min(s.m * s.v, s.p * s.v); },
          .idle =
              [](const FillTimes& t) {
                return std::max({t.forward, t.input_grad, t.forward + t.input_grad - t.weight_grad}) / t.chunks + 4 * t.hop;
              }};
}

}  // namespace foreshard
