// 1F1B and interleaved 1F1B whose steady state consists of cells: a forward and a backward of different micro-batches run as one action, so
// that the all-to-alls of experts of the one lie beside computes of the other (Megatron-Core's --overlap-moe-expert-parallel-comm). The order
// is that of interleaved 1F1B with one forward more before the first backward; with one chunk per rank, too:
//   w = min(2(p-1-r) + (v-1)g + 1, m v)    fwd(0) .. fwd(w-1);  fwd(w) & bwd(0), fwd(w+1) & bwd(1), ...;  the last w backwards
// Results of a cell are complete at its end, so a micro-batch takes a cell per chunk in both directions: rank r runs F of a micro-batch
// 2(p-1-r) + 1 cells before B of it. With fewer forwards ahead (p-r of them), every second cell would wait for its neighbour. The derivation
// is in docs/schedules.md, "1F1B in cells".
#include <algorithm>

#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

static ScheduleLists cell_lists(const ScheduleShape& shape) {
  const std::vector<ScheduleOp> turns = interleaved_turns(shape);
  const int total = static_cast<int>(turns.size()), group = shape.g == 0 ? shape.p : shape.g;
  ScheduleLists result(static_cast<std::size_t>(shape.p));
  for (int rank = 0; rank < shape.p; ++rank) {
    auto& list = result[static_cast<std::size_t>(rank)];
    list.reserve(2 * turns.size());
    const auto forward = [&](int k, bool in_cell) {
      const ScheduleOp& turn = turns[static_cast<std::size_t>(k)];
      list.push_back({Work::F, turn.stage * shape.p + rank, turn.microbatch, in_cell});
    };
    const int warm_up = std::min(2 * (shape.p - 1 - rank) + (shape.v - 1) * group + 1, total);
    for (int k = 0; k < warm_up; ++k) forward(k, false);
    for (int k = 0; k < total; ++k) {
      if (warm_up + k < total) forward(warm_up + k, true);
      const ScheduleOp& turn = turns[static_cast<std::size_t>(k)];
      list.push_back({Work::B, (shape.v - 1 - turn.stage) * shape.p + rank, turn.microbatch});
    }
  }
  return result;
}

static ScheduleEntry cell_entry(Schedule id, const char* summary, Chunks chunks,
                                std::optional<Infeasible> (*refuse)(const ScheduleShape&)) {
  return {.id = id,
          .name = name_of(id),
          .summary = summary,
          .chunks = chunks,
          .refuse = refuse,
          .lists = cell_lists,
          .rank_of_stage = loop_placement,
          .stage_of = loop_stage,
          .cells = true,
          .in_flight = [](const FlightShape& s) { return std::min(s.m * s.v, 2 * (s.p - 1 - s.rank) + (s.v - 1) * s.p + 2); },
          // A cell passes on its gradient at its end, so every second transfer holds it up.
          .idle =
              [](const FillTimes& t) {
                const double cells = t.microbatches * t.chunks / std::max(1.0, t.ranks - 1);
                return (t.forward + t.input_grad + t.weight_grad) / t.chunks + (2 + cells / 2) * t.hop;
              }};
}

ScheduleEntry cells_schedule() {
  return cell_entry(
      Schedule::OneFOneBCells,
      "1f1b, forward and backward in one cell that hides all-to-alls of experts: idle (p-1)(F+B), 2(p-r) micro-batches "
      "in flight",
      Chunks::One, [](const ScheduleShape& shape) { return refuse_chunks(shape, "1f1b-cells"); });
}

ScheduleEntry chunk_cells_schedule() {
  return cell_entry(
      Schedule::InterleavedCells,
      "interleaved-1f1b, forward and backward in one cell that hides all-to-alls of experts: one chunk more in flight",
      Chunks::Several, [](const ScheduleShape& shape) { return refuse_groups(shape, "interleaved-cells"); });
}

}  // namespace foreshard
