// Chimera (Li and Hoefler 2021, arXiv:2107.06925): two pipelines over the same ranks, one down and one up, each with half of the
// micro-batches, so that each works in the idle times of the other. Every stage is held by two ranks, r and p-1-r, which sum its gradients.
//   r0  d0>   d1>   u0>u0<u1>u1<   d0<   d1<       d: stage r, u: stage p-1-r
//   r3  u0>   u1>   d0>d0<d1>d1<   u0<   u1<       (two of four ranks; p micro-batches make a unit)
// Idle (p-2)F when a backward takes as long as a forward; (m/p + 1)(p-2)F when it takes twice as long.
#include <algorithm>

#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

static std::optional<Infeasible> refuse_chimera(const ScheduleShape& shape) {
  if (auto refused = refuse_chunks(shape, "chimera")) return refused;
  if (shape.p % 2 == 0 && shape.m % shape.p == 0) return {};
  return Infeasible{"schedule chimera needs an even number of pipeline ranks and a multiple of it in micro-batches, found " +
                        std::to_string(shape.p) + " and " + std::to_string(shape.m),
                    {"another --pp", "another --global-batch", "--schedule 1f1b"}};
}

static ScheduleLists chimera_lists(const ScheduleShape& shape) {
  const int p = shape.p;
  struct Placed {
    int slot;
    ScheduleOp op;
  };
  ScheduleLists result;
  for (int rank = 0; rank < p; ++rank) {
    std::vector<Placed> placed;
    for (int unit = 0; unit < shape.m / p; ++unit)
      for (int i = 0; i < p / 2; ++i)
        for (const int route : {0, 1}) {
          const int stage = route == 0 ? rank : p - 1 - rank, first = 2 * p * unit + 2 * i;
          const int microbatch = unit * (p / 2) + i;
          placed.push_back({first + stage, {Work::F, route * p + stage, microbatch}});
          placed.push_back({first + 2 * p - 1 - stage, {Work::B, route * p + stage, microbatch}});
        }
    std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.slot < b.slot; });
    auto& list = result.emplace_back();
    for (const Placed& each : placed) list.push_back(each.op);
  }
  return result;
}

ScheduleEntry chimera_schedule() {
  return {.id = Schedule::Chimera,
          .name = name_of(Schedule::Chimera),
          .summary = "two pipelines over the same ranks, one down and one up; every stage stands on two ranks",
          .refuse = refuse_chimera,
          .lists = chimera_lists,
          .rank_of_stage = v_placement,
          .stage_of = mirrored_stage,
          .routes = 2,
          .in_flight =
              [](const FlightShape& s) {
                return std::min({s.m, s.p, s.p / 2 + 1 + std::min(s.rank, s.p - 1 - s.rank)});
              },
          .idle =
              [](const FillTimes& t) {
                const double backward = t.input_grad + t.weight_grad;
                const double all = (t.ranks - 2) * (t.forward + t.microbatches / t.ranks * std::max(0.0, backward - t.forward));
                return all / (t.ranks - 1) + 2 * t.hop;
              }};
}

}  // namespace foreshard
