// ZB-H1 and ZB-H2 (Qi et al. 2024, arXiv:2401.10241, section 2): 1F1B with deferred weight gradients, which fill the idle time of the
// drain. Rank r defers each of them by r micro-batches under H1, by 2 r under H2. H1 has the memory of 1F1B's first rank on every rank:
//   r0  0>1>..0<0w2>1<1w2<2w    input gradients <, weight gradients w
//   r1  ..0>0<1>1<0w2>2<1w2w    idle (p-1)(F+I-W), as long as W takes no longer than F and I
// H2 has a warm-up twice as long, which fills the idle time of the fill as well, with up to 2p - 1 micro-batches in flight on every rank.
// Its order is a closed rule (docs/schedules.md, "Zero bubble"); the paper's own lists come from a search. With equal times, a rank is idle
// only before its first and after its last action, (p-1) F in all.
#include <algorithm>

#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

// The list of a rank: `warm_up` forwards; then, repeatedly, an input gradient, the weight gradient of `late` micro-batches before, and a
// forward, as long as there are any.
static std::vector<ScheduleOp> put_off(int rank, int microbatches, int warm_up, int late) {
  std::vector<ScheduleOp> list;
  list.reserve(3 * static_cast<std::size_t>(microbatches));
  const int first = std::min(warm_up, microbatches);
  for (int i = 0; i < first; ++i) list.push_back({Work::F, rank, i});
  for (int k = 0; k < microbatches; ++k) {
    list.push_back({Work::I, rank, k});
    if (k >= late) list.push_back({Work::W, rank, k - late});
    if (first + k < microbatches) list.push_back({Work::F, rank, first + k});
  }
  for (int k = std::max(0, microbatches - late); k < microbatches; ++k) list.push_back({Work::W, rank, k});
  return list;
}

static ScheduleLists h1_lists(const ScheduleShape& shape) {
  ScheduleLists lists;
  for (int rank = 0; rank < shape.p; ++rank) lists.push_back(put_off(rank, shape.m, shape.p - rank, rank));
  return lists;
}
static ScheduleLists h2_lists(const ScheduleShape& shape) {
  ScheduleLists lists;
  for (int rank = 0; rank < shape.p; ++rank) lists.push_back(put_off(rank, shape.m, 2 * (shape.p - rank) - 1, 2 * rank));
  return lists;
}

static ScheduleEntry entry(Schedule id, const char* summary, std::optional<Infeasible> (*refuse)(const ScheduleShape&),
                           ScheduleLists (*lists)(const ScheduleShape&), double (*in_flight)(const FlightShape&),
                           double (*idle)(const FillTimes&)) {
  return {.id = id,
          .name = name_of(id),
          .summary = summary,
          .refuse = refuse,
          .lists = lists,
          .rank_of_stage = straight_placement,
          .stage_of = loop_stage,
          .splits = true,
          .in_flight = in_flight,
          .idle = idle};
}

ScheduleEntry zb_h1_schedule() {
  return entry(
      Schedule::ZeroBubbleH1,
      "1f1b with weight gradients put off: idle (p-1)(F+I-W), at most p micro-batches in flight on every rank",
      [](const ScheduleShape& shape) { return refuse_chunks(shape, "zb-h1"); }, h1_lists,
      [](const FlightShape& s) { return std::min(s.m, s.p); },
      [](const FillTimes& t) {
        return std::max({t.forward, t.input_grad, t.forward + t.input_grad - t.weight_grad}) + 4 * t.hop;
      });
}

ScheduleEntry zb_h2_schedule() {
  return entry(
      Schedule::ZeroBubbleH2,
      "zb-h1 with twice the warm-up: idle (p-1) max(F, I-F, F+I-2W), up to 2p-1 micro-batches in flight",
      [](const ScheduleShape& shape) { return refuse_chunks(shape, "zb-h2"); }, h2_lists,
      [](const FlightShape& s) { return std::min(s.m, 2 * s.p - 1); },
      [](const FillTimes& t) {
        return std::max({t.forward, t.input_grad - t.forward, t.forward + t.input_grad - 2 * t.weight_grad}) + t.hop;
      });
}

}  // namespace foreshard
