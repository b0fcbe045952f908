#include "strategy/search/search_experts.h"

#include <algorithm>
#include <limits>

#include "strategy/search/search_framework.h"
#include "strategy/search/search_kept.h"

namespace foreshard {

// Nodes that an expert group is on.
static int network_nodes_of(const Strategy& strategy, const Cluster& cluster) {
  int gpus = std::numeric_limits<int>::max();
  for (const NodeGroup& group : cluster.nodes) gpus = std::min(gpus, group.shape.gpus);
  return (strategy.experts.ep * strategy.experts.etp + gpus - 1) / gpus;
}

std::vector<Strategy> variants_of_experts(const Model& model, const Cluster& cluster, const SearchOptions& options,
                                          const SearchSpace& space, const Strategy& best, const Point& point) {
  if (!space.experts || point.ep == 1) return {};
  const Strategy base = strategy_at(options.base, point, space.layers);
  std::vector<Strategy> variants = {base};
  const auto also = [&](auto change) {
    for (std::size_t v = 0, before = variants.size(); v < before; ++v) {
      variants.push_back(variants[v]);
      change(variants.back());
    }
  };
  const bool on_nodes = network_nodes_of(best, cluster) > 1, free = !find_runner(options.base.framework);
  for (const DispatcherRow& row : kDispatchers) {
    const std::int64_t chosen = std::get<Transformer>(model.shape).block.experts.chosen;
    const bool sends_less = row.gathers ? chosen > point.ep : row.once;
    if (!free || is_fixed(options, "expert_dispatcher") || row.dispatcher == base.experts.dispatcher || !sends_less) continue;
    if (row.by_node && !on_nodes) continue;
    variants.push_back(base);
    variants.back().experts.dispatcher = row.dispatcher;
  }
  if (free && best.recompute.kind != RecomputeKind::None && tries_recompute_graphs(options))
    also([](Strategy& s) { s.recompute = {.kind = RecomputeKind::Modules, .modules = {"activation", "mlp"}}; });
  if (schedule_entry(point.schedule).cells && point.overlap_tensor && !is_fixed(options, "delay_wgrad"))
    also([](Strategy& s) { s.pipeline.delay_wgrad = true; });
  variants.erase(variants.begin());
  return variants;
}

}  // namespace foreshard
