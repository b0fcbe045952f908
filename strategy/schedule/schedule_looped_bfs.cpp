// Looped breadth-first (Lamy-Poirier 2023, arXiv:2211.05953): rank r holds the chunks r, p + r, 2p + r, ... and takes all micro-batches
// through one chunk before it begins the next, so each stage's parameters are needed in one stretch. The idle time of interleaved 1F1B,
// (p-1)(F+B)/v, and the activations of GPipe, all m micro-batches.
#include <algorithm>

#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

static std::optional<Infeasible> refuse_looped_bfs(const ScheduleShape& shape) {
  if (auto refused = refuse_size(shape)) return refused;
  const auto number = [](int n) { return std::to_string(n); };
  if (shape.v < 2)
    return Infeasible{"schedule looped-bfs needs at least 2 virtual stages per rank, found " + number(shape.v),
                      {"--virtual-stages 2", "--schedule gpipe"}};
  if (shape.g != 0)
    return Infeasible{"schedule looped-bfs has no groups of micro-batches, found groups of " + number(shape.g),
                      {"--microbatch-group 0", "--schedule interleaved-1f1b"}};
  if (shape.m < shape.p)  // a rank would have to wait for its own chunk before
    return Infeasible{"schedule looped-bfs needs a micro-batch for each of the " + number(shape.p) + " pipeline ranks, found " +
                          number(shape.m),
                      {"a larger --global-batch", "--schedule 1f1b"}};
  return {};
}

static ScheduleLists looped_bfs_lists(const ScheduleShape& shape) {
  ScheduleLists result(static_cast<std::size_t>(shape.p));
  for (int rank = 0; rank < shape.p; ++rank) {
    auto& list = result[static_cast<std::size_t>(rank)];
    for (int chunk = 0; chunk < shape.v; ++chunk)
      for (int i = 0; i < shape.m; ++i) list.push_back({Work::F, chunk * shape.p + rank, i});
    for (int chunk = shape.v - 1; chunk >= 0; --chunk)
      for (int i = 0; i < shape.m; ++i) list.push_back({Work::B, chunk * shape.p + rank, i});
  }
  return result;
}

ScheduleEntry looped_bfs_schedule() {
  return {.id = Schedule::LoopedBfs,
          .name = name_of(Schedule::LoopedBfs),
          .summary = "all micro-batches through one chunk, then the next: idle (p-1)(F+B)/v, all micro-batches in flight",
          .chunks = Chunks::Several,
          .refuse = refuse_looped_bfs,
          .lists = looped_bfs_lists,
          .rank_of_stage = loop_placement,
          .stage_of = loop_stage,
          .forwards_first = true,
          .in_flight = [](const FlightShape& s) { return s.m * s.v; },
          .idle = [](const FillTimes& t) { return (t.forward + t.input_grad + t.weight_grad) / t.chunks + 2 * t.hop; }};
}

}  // namespace foreshard
