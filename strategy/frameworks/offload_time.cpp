#include "strategy/frameworks/offload_time.h"

#include <algorithm>

#include "core/graph/op_graph.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/machine_constants.h"
#include "strategy/frameworks/layer_bytes.h"
#include "strategy/resolve/resolve.h"

namespace foreshard {

namespace {

// Of the host's memory bandwidth, by an optimizer on the CPU: gradients are converted, scaled and read in passes of their own.
constexpr double kHostUpdateShare = 0.4;  // assumption

struct Traffic {
  double in = 0, out = 0;  // bytes
  double longest(double rate) const { return std::max(in, out) / rate; }
};

double bytes(DType type) { return static_cast<double>(size_of(type).value); }

class OffloadBytes {
 public:
  OffloadBytes(const OpGraph& graph, const Strategy& strategy, const MemoryTraits& traits)
      : strategy_(strategy), offload_(traits.offload), types_(state_types(strategy)) {
    const bool full = strategy.recompute.kind == RecomputeKind::Full;
    for (const OpGraph::Layer& layer : graph.layers) {
      const LayerGraph& kind = graph.kinds[static_cast<std::size_t>(layer.kind)];
      double elements = 0;
      for (const Parameter& parameter : kind.parameters)
        if (!parameter.tied) elements += parameter_elements(parameter);
      parameters_ += elements;
      if (!layer.counted) continue;
      ++layers_;
      in_layers_ += elements;
      inputs_ += static_cast<double>(kind.values[static_cast<std::size_t>(kind.input)].bytes.value);
      if (layers_ <= offload_.activation_layers) activations_ += layer_bytes(kind, strategy, traits, false, full).kept;
    }
  }
  int layers() const { return layers_; }

  Traffic forward() const { return {.in = weights(), .out = kept()}; }
  Traffic backward() const { return {.in = weights() + kept() + gradients(), .out = gradients()}; }
  double added_through_link() const { return offload_.adds_through_link ? gradients() : 0; }

  // Gradients are read twice, for their norm and for the update; a narrow copy of the weights is made again.
  Traffic update() const {
    const double states = parameters_ * state_bytes() / shards(1);
    return {.in = states + 2 * gradients(), .out = states + (offload_.narrow_weights ? weights() : 0)};
  }
  // Every state is read and written; fp32 gradients are read, the parameters are written.
  double on_the_host() const { return parameters_ / shards(1) * (2 * state_bytes() + bytes(DType::F32) + bytes(types_.param)); }
  double parameters_back() const { return offload_.weights ? 0 : parameters_ / shards(1) * bytes(types_.param); }

 private:
  double shards(int stage) const {
    if (strategy_.zero.stage < stage) return 1;
    return (strategy_.zero.group > 0 ? strategy_.zero.group : strategy_.dp) * strategy_.cp;
  }
  double state_bytes() const {
    const double moments = (offload_.momentum ? 1 : 0) + (offload_.variance ? 1 : 0);
    return moments * bytes(types_.state) + (offload_.master ? bytes(types_.master ? types_.state : types_.param) : 0);
  }
  double weights() const {
    if (!offload_.weights) return 0;
    return in_layers_ / shards(3) * bytes(offload_.narrow_weights ? strategy_.precision : types_.param);
  }
  double gradients() const { return offload_.gradients ? in_layers_ / shards(2) * bytes(types_.grad) : 0; }
  double kept() const { return (offload_.inputs ? inputs_ : 0) + activations_; }

  const Strategy& strategy_;
  const Offload& offload_;
  StateTypes types_;
  int layers_ = 0;
  double parameters_ = 0, in_layers_ = 0;  // elements
  double inputs_ = 0, activations_ = 0;    // bytes of one micro-batch
};

}  // namespace

std::variant<OffloadStall, Infeasible> offload_stall(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                                     const MemoryTraits& traits, const HostRates& rates,
                                                     const LayerTimes& layer) {
  auto resolved = resolve(model, cluster, strategy);
  if (auto* refused = std::get_if<Infeasible>(&resolved)) return *refused;
  const Strategy& s = std::get<Strategy>(resolved);
  const OffloadBytes moved(build_op_graph(model, sharding_of(s, state_types(s))), s, traits);
  const double rate = rates.link.value * kCopyEngineEfficiency;
  const double forward = moved.layers() * layer.forward.value, backward = moved.layers() * layer.backward.value,
               added = moved.added_through_link() / rate;
  OffloadStall stall;
  stall.forward.value = std::max(0.0, moved.forward().longest(rate) - forward);
  stall.backward.value = std::max(added, moved.backward().longest(rate) - backward);
  stall.update.value = traits.offload.host_update
                           ? moved.on_the_host() / (rates.memory.value * kHostUpdateShare) + moved.parameters_back() / rate
                           : moved.update().longest(rate);
  return stall;
}

}  // namespace foreshard
