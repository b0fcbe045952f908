// Interleaved 1F1B: rank r holds the chunks r, p + r, 2p + r, ... and visits g micro-batches per chunk before the next
// one, so the pipeline fills in steps of one chunk: idle (p-1)(F+B)/v, bought with more activations and v times the
// transfers.
#include <algorithm>

#include "core/base/count_text.h"
#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

static std::optional<Infeasible> refuse(const ScheduleShape& shape) {
  if (auto refused = refuse_size(shape)) return refused;
  const int group = shape.g == 0 ? shape.p : shape.g;
  const auto number = [](int n) { return std::to_string(n); };
  if (shape.v < 2)
    return Infeasible{"schedule interleaved-1f1b needs at least 2 virtual stages per rank, found " + number(shape.v),
                      {"--virtual-stages 2", "--schedule 1f1b"}};
  if (group < shape.p)
    return Infeasible{"schedule interleaved-1f1b needs groups of at least " + counted(shape.p, "micro-batch", "micro-batches") +
                          " (the pipeline ranks), found " + number(group),
                      {"--set microbatch_group=" + number(shape.p)}};
  if (shape.m < group)
    return Infeasible{"schedule interleaved-1f1b with groups of " + counted(group, "micro-batch", "micro-batches") +
                          " needs at least " + counted(group, "micro-batch", "micro-batches") + ", found " + number(shape.m),
                      {"a larger --global-batch", "--schedule 1f1b"}};
  const int rest = shape.m % group;
  if (rest > 0 && rest < shape.p)  // the rule of docs/schedules.md: below p ranks wait for each other, some for ever
    return Infeasible{
        "schedule interleaved-1f1b cannot end with a group of " + counted(rest, "micro-batch", "micro-batches") + " on " +
            counted(shape.p, "pipeline rank") + " (" + counted(shape.m, "micro-batch", "micro-batches") + " in groups of " +
            number(group) + ")",
        {number(shape.m - rest) + " or " + counted(shape.m - rest + group, "micro-batch", "micro-batches"), "--schedule 1f1b"}};
  return {};
}

// The order in which (chunk, micro-batch) pairs are visited by the forwards; backwards visit the mirrored chunks.
static std::vector<ScheduleOp> pair_table(const ScheduleShape& shape, int group) {
  std::vector<ScheduleOp> table;
  table.reserve(static_cast<std::size_t>(shape.m) * static_cast<std::size_t>(shape.v));
  for (int first = 0; first < shape.m; first += group)
    for (int chunk = 0; chunk < shape.v; ++chunk)
      for (int i = first; i < std::min(first + group, shape.m); ++i) table.push_back({Work::F, chunk, i});
  return table;
}

static ScheduleLists lists(const ScheduleShape& shape) {
  const int group = shape.g == 0 ? shape.p : shape.g;
  const std::vector<ScheduleOp> table = pair_table(shape, group);
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
          .chunks = true,
          .refuse = refuse,
          .lists = lists,
          .rank_of_stage = loop_placement,
          .stage_of = loop_stage,
          .in_flight = in_flight};
}

}  // namespace foreshard
