#include "strategy/tune/recompute_layers.h"

#include <algorithm>

#include "strategy/resolve/redone_layers.h"
#include "strategy/tune/role_trial.h"

namespace foreshard {

Recompute fewest_redone_layers(const Lowering& lowering, bool by_order) {
  const Strategy& s = lowering.strategy;
  RoleTrial trial(lowering, by_order);
  const auto fits = [&](int rank, int count) {
    const Recompute some{.kind = RecomputeKind::Full, .per_stage = std::vector<int>(static_cast<std::size_t>(s.pp), count)};
    trial.lowering.strategy.recompute = some;
    trial.lowering.tables.activations =
        activation_policy(trial.lowering.strategy, lowering.graph, lowering.tables.layout.layers);
    return trial.fits(rank);
  };
  Recompute found{.kind = RecomputeKind::Full};
  bool all = true, none = true;
  for (int rank = 0; rank < s.pp; ++rank) {
    int most = 0;
    for (int stage = 0; stage < lowering.stages(); ++stage)
      if (lowering.tables.schedule.rank_of(stage) == rank)
        most = std::max(most, counted_layers(lowering.graph, lowering.tables.layout.layers, stage));
    int few = 0, enough = most;  // `few` do not fit; fewer layers kept never need more memory
    if (fits(rank, 0)) enough = 0;
    while (enough - few > 1) {
      const int middle = (few + enough) / 2;
      (fits(rank, middle) ? enough : few) = middle;
    }
    found.per_stage.push_back(enough);
    all &= enough == most, none &= enough == 0;
  }
  if (none) return {};
  const bool alike = std::count(found.per_stage.begin(), found.per_stage.end(), found.per_stage.front()) == s.pp;
  if (all) return {.kind = RecomputeKind::Full};
  if (alike) return {.kind = RecomputeKind::Full, .layers = found.per_stage.front()};
  return found;
}

}  // namespace foreshard
