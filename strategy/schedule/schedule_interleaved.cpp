// Interleaved 1F1B: rank r holds the chunks r, p + r, 2p + r, ... and visits g micro-batches per chunk before the next
// one, so the pipeline fills in steps of one chunk: idle (p-1)(F+B)/v, bought with more activations and v times the
// transfers.
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
    list.reserve(2 * table.size());
    const auto forward = [&](int k) {
      const ScheduleOp& pair = table[static_cast<std::size_t>(k)];
      list.push_back({Work::F, pair.stage * shape.p + rank, pair.microbatch});
    };
    const auto backward = [&](int k) {
      const ScheduleOp& pair = table[static_cast<std::size_t>(k)];
      list.push_back({Work::B, (shape.v - 1 - pair.stage) * shape.p + rank, pair.microbatch});
    };
    const int warm_up = std::min(2 * (shape.p - 1 - rank) + (shape.v - 1) * group, total);
    for (int k = 0; k < warm_up; ++k) forward(k);
    for (int k = 0; k < total; ++k) {
      if (warm_up + k < total) forward(warm_up + k);
      backward(k);
    }
  }
  return result;
}

static double in_flight(const FlightShape& s) {
  return s.v > 1 ? std::min(s.m * s.v, 2 * (s.p - 1 - s.rank) + (s.v - 1) * s.p + 1) : std::min(s.m, s.p - s.rank);
}

ScheduleEntry interleaved_schedule() {
  return {.id = Schedule::Interleaved,
          .name = name_of(Schedule::Interleaved),
          .summary = "1F1B over v chunks per rank: idle (p-1)(F+B)/v, more activations and transfers",
          .chunks = Chunks::Several,
          .refuse = [](const ScheduleShape& shape) { return refuse_groups(shape, "interleaved-1f1b"); },
          .lists = lists,
          .rank_of_stage = loop_placement,
          .stage_of = loop_stage,
          .on_request = false,
          .in_flight = in_flight};
}

}  // namespace foreshard
