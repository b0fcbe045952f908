// Interleaved 1F1B: rank r holds the chunks r, p + r, 2p + r, ... and visits g micro-batches per chunk before the next
// one, so the pipeline fills in steps of one chunk: idle (p-1)(F+B)/v, bought with more activations and v times the
// transfers. interleaved-zb-1p defers the weight gradients as zb-h1 does (Qi et al. 2024, arXiv:2401.10241): idle (p-1)(F+I-W)/v.
#include <algorithm>

#include "core/base/count_text.h"
#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

std::optional<Infeasible> refuse_groups(const ScheduleShape& shape, const std::string& schedule) {
  if (auto refused = refuse_size(shape)) return refused;
  const int group = shape.g == 0 ? shape.p : shape.g;
  const auto number = [](int n) { return std::to_string(n); };
  if (shape.v < 2)
    return Infeasible{"schedule " + schedule + " needs at least 2 virtual stages per rank, found " + number(shape.v),
                      {"--virtual-stages 2", "--schedule 1f1b"}};
  if (group < shape.p)
    return Infeasible{"schedule " + schedule + " needs groups of at least " + counted(shape.p, "micro-batch", "micro-batches") +
                          " (the pipeline ranks), found " + number(group),
                      {"--set microbatch_group=" + number(shape.p)}};
  if (shape.m < group)
    return Infeasible{"schedule " + schedule + " with groups of " + counted(group, "micro-batch", "micro-batches") +
                          " needs at least " + counted(group, "micro-batch", "micro-batches") + ", found " + number(shape.m),
                      {"a larger --global-batch", "--schedule 1f1b"}};
  const int rest = shape.m % group;
  if (rest > 0 &&
      rest < shape.p)  // docs/schedules.md, "Interleaved 1F1B": a last group of fewer than p micro-batches can deadlock
    return Infeasible{
        "schedule " + schedule + " cannot end with a group of " + counted(rest, "micro-batch", "micro-batches") + " on " +
            counted(shape.p, "pipeline rank") + " (" + counted(shape.m, "micro-batch", "micro-batches") + " in groups of " +
            number(group) + ")",
        {number(shape.m - rest) + " or " + counted(shape.m - rest + group, "micro-batch", "micro-batches"), "--schedule 1f1b"}};
  return {};
}

std::vector<ScheduleOp> interleaved_turns(const ScheduleShape& shape) {
  const int group = shape.g == 0 ? shape.p : shape.g;
  std::vector<ScheduleOp> table;
  table.reserve(static_cast<std::size_t>(shape.m) * static_cast<std::size_t>(shape.v));
  for (int first = 0; first < shape.m; first += group)
    for (int chunk = 0; chunk < shape.v; ++chunk)
      for (int i = first; i < std::min(first + group, shape.m); ++i) table.push_back({Work::F, chunk, i});
  return table;
}

// The lists. With `halves` (split backwards), rank r defers each weight gradient by r input gradients.
static ScheduleLists lists(const ScheduleShape& shape, bool halves) {
  const int group = shape.g == 0 ? shape.p : shape.g;
  const std::vector<ScheduleOp> table = interleaved_turns(shape);
  const int total = static_cast<int>(table.size());
  ScheduleLists result(static_cast<std::size_t>(shape.p));
  for (int rank = 0; rank < shape.p; ++rank) {
    auto& list = result[static_cast<std::size_t>(rank)];
    list.reserve((halves ? 3 : 2) * table.size());
    const auto emit = [&](Work work, int k) {
      const ScheduleOp& pair = table[static_cast<std::size_t>(k)];
      const int chunk = work == Work::F ? pair.stage : shape.v - 1 - pair.stage;
      list.push_back({work, chunk * shape.p + rank, pair.microbatch});
    };
    const int warm_up = std::min((halves ? 1 : 2) * (shape.p - 1 - rank) + (shape.v - 1) * group, total);
    for (int k = 0; k < warm_up; ++k) emit(Work::F, k);
    for (int k = 0; k < total; ++k) {
      if (warm_up + k < total) emit(Work::F, warm_up + k);
      emit(halves ? Work::I : Work::B, k);
      if (halves && k >= rank) emit(Work::W, k - rank);
    }
    for (int k = std::max(0, total - rank); halves && k < total; ++k) emit(Work::W, k);
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
          .lists = [](const ScheduleShape& shape) { return lists(shape, false); },
          .rank_of_stage = loop_placement,
          .stage_of = loop_stage,
          .on_request = false,
          .in_flight = in_flight};
}

ScheduleEntry interleaved_zb_schedule() {
  return {.id = Schedule::InterleavedZeroBubble,
          .name = name_of(Schedule::InterleavedZeroBubble),
          .summary = "interleaved-1f1b with weight gradients put off: idle (p-1)(F+I-W)/v, p micro-batches in flight",
          .chunks = Chunks::Several,
          .refuse = [](const ScheduleShape& shape) { return refuse_groups(shape, "interleaved-zb-1p"); },
          .lists = [](const ScheduleShape& shape) { return lists(shape, true); },
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
