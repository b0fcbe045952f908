// Makes the rows and moves of the ActivationPolicy from a strategy's recomputation and offload: which layers are recomputed in the backward,
// and where the activations that are kept lie.
#include <algorithm>

#include "strategy/cost/framework_preset.h"
#include "strategy/resolve/held_values.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

namespace {

// Whether full recomputation includes a layer. `of_stage`, `of_model`: its number among the counted layers of its stage, of the model.
bool takes_in(const Recompute& recompute, int stage, int rank, int of_stage, int of_model, int pp) {
  if (!recompute.only.empty()) return std::binary_search(recompute.only.begin(), recompute.only.end(), of_model);
  if (recompute.per_stage.empty()) return recompute.layers == 0 || of_stage < recompute.layers;
  const bool by_rank = static_cast<int>(recompute.per_stage.size()) == pp;
  return of_stage < recompute.per_stage[static_cast<std::size_t>(by_rank ? rank : stage)];
}

// [op graph layer]
std::vector<Redone> redone_of_layers(const Strategy& s, const OpGraph& graph, const StageLayout& layers) {
  const bool stops = framework_preset(s.framework).recompute_stops;
  std::vector<Redone> redone(graph.layers.size(), recomputed_by(s.recompute, false));
  const std::vector<int> ranks = ranks_of_stages(s);
  int of_model = 0;
  for (int stage = 0; stage < layers.stages(); ++stage) {
    int of_stage = 0;
    for (int l = layers.first[static_cast<std::size_t>(stage)]; l < layers.first[static_cast<std::size_t>(stage) + 1]; ++l) {
      if (!graph.layers[static_cast<std::size_t>(l)].counted) continue;
      const int rank = ranks[static_cast<std::size_t>(stage)], number = of_model++;
      if (s.recompute.kind == RecomputeKind::Each) {
        if (static_cast<std::size_t>(number) < s.recompute.each.size())
          redone[static_cast<std::size_t>(l)] = recomputed_by(s.recompute.each[static_cast<std::size_t>(number)]);
      } else if (takes_in(s.recompute, stage, rank, of_stage++, number, s.pp)) {
        redone[static_cast<std::size_t>(l)] = recomputed_by(s.recompute, true, stops);
      }
    }
  }
  return redone;
}

// [op graph layer]: whether the activations that it keeps are offloaded. The last layer's are not, unless a number of layers is stated: its
// backward follows its forward at once.
std::vector<char> away_of_layers(const Strategy& s, const OpGraph& graph, const StageLayout& layers) {
  std::vector<char> away(graph.layers.size(), 0);
  if (s.offload.activations != OffloadedActivations::Inputs && s.offload.activations != OffloadedActivations::All) return away;
  int last = -1;
  for (int stage = 0; stage < layers.stages(); ++stage) {
    int of_stage = 0;
    for (int l = layers.first[static_cast<std::size_t>(stage)]; l < layers.first[static_cast<std::size_t>(stage) + 1]; ++l) {
      if (!graph.layers[static_cast<std::size_t>(l)].counted) continue;
      away[static_cast<std::size_t>(l)] = s.offload.activation_layers == 0 || of_stage < s.offload.activation_layers;
      ++of_stage, last = l;
    }
  }
  if (last >= 0 && s.offload.activation_layers == 0) away[static_cast<std::size_t>(last)] = 0;
  return away;
}

}  // namespace

Redone recomputed_by(const Recompute& recompute, bool in_full_range, bool stops) {
  if (recompute.kind == RecomputeKind::Full && in_full_range) return {.whole = true, .stops = stops};
  if (recompute.kind == RecomputeKind::Selective) return {.modules = {"attention"}};
  if (recompute.kind == RecomputeKind::Modules) return {.modules = recompute.modules};
  return {};
}

Redone recomputed_by(const LayerRecompute& layer) {
  return recomputed_by(Recompute{.kind = layer.kind, .modules = layer.modules}, true);
}

int ActivationPolicy::row_of(int layer) const {
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (const LayerRange& range : rows[row].layers)
      if (range.first <= layer && layer <= range.last) return static_cast<int>(row);
  return -1;
}

ActivationPolicy activation_policy(const Strategy& strategy, const OpGraph& graph, const StageLayout& layers) {
  ActivationPolicy policy;
  const std::vector<Redone> redone = redone_of_layers(strategy, graph, layers);
  const std::vector<char> away = away_of_layers(strategy, graph, layers);
  policy.shared_by_chunks = strategy.offload.activations == OffloadedActivations::None;
  for (int l = 0; l < static_cast<int>(redone.size()); ++l) {
    const Redone& what = redone[static_cast<std::size_t>(l)];
    const Space home = away[static_cast<std::size_t>(l)] ? strategy.offload.activation_home : Space::Device;
    if (what == Redone{} && home == Space::Device) continue;
    auto row = std::ranges::find_if(policy.rows,
                                    [&](const ActivationRow& known) { return known.redone == what && known.home == home; });
    if (row == policy.rows.end())
      row = policy.rows.insert(
          row, {.redone = what, .home = home, .inputs_only = strategy.offload.activations == OffloadedActivations::Inputs});
    if (!row->layers.empty() && row->layers.back().last + 1 == l)
      row->layers.back().last = l;
    else
      row->layers.push_back({l, l});
  }
  if (strategy.offload.activations == OffloadedActivations::Vdnn)
    for (int stage = 0; stage < layers.stages(); ++stage) {
      const HeldValues held = held_values(graph, layers, policy, stage);
      const TensorPlan inputs = vdnn_offload(held.job, VdnnScope::ConvolutionInputs);
      for (const ValueMove& move : moves_of(held, inputs, strategy.offload.activation_home)) policy.moves.push_back(move);
    }
  return policy;
}

}  // namespace foreshard
