#include "strategy/recompute_fill.h"

#include <algorithm>

#include "strategy/lower.h"

namespace foreshard {

// Fewer layers kept never need more memory, so the least number is found by halving.
Recompute fewest_redone_layers(const Model& model, const Cluster& cluster, const Strategy& strategy) {
  const auto with = [](int layers) { return Recompute{.kind = RecomputeKind::Full, .layers = layers}; };
  const auto fits = [&](const Recompute& recompute) {
    Strategy attempt = strategy;
    attempt.recompute = recompute;
    return std::holds_alternative<Lowered>(lower(model, cluster, attempt));
  };
  if (fits({})) return {};
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  int none = 0, enough = transformer ? transformer->layers : 1024;  // no stage has more
  if (!fits(with(enough))) return with(0);
  while (enough - none > 1) {
    const int middle = (none + enough) / 2;
    (fits(with(middle)) ? enough : none) = middle;
  }
  return with(enough);
}

}  // namespace foreshard
