// What an offload to host memory or NVMe drives cannot be combined with.
#include <algorithm>
#include <string>

#include "core/strategy/strategy_options.h"
#include "strategy/resolve/resolve.h"
#include "strategy/resolve/schedule_table.h"

namespace foreshard {

namespace {

using Refusal = std::optional<Infeasible>;

// The homes of the states, and of activations if they are offloaded, each with the option that would put it in host memory.
std::vector<std::pair<Space, const char*>> homes_of(const OffloadChoice& offload) {
  std::vector<std::pair<Space, const char*>> homes = {{offload.optimizer, "--offload-optimizer host"},
                                                      {offload.parameters, "--offload-parameters host"},
                                                      {offload.gradients, "--offload-gradients host"}};
  if (offload.activations != OffloadedActivations::None) homes.emplace_back(offload.activation_home, "--offload-to host");
  return homes;
}

Refusal resolve_drives(const Cluster& cluster, const OffloadChoice& offload) {
  for (const auto& [home, instead] : homes_of(offload))
    for (const NodeGroup& group : cluster.nodes)
      if (home == Space::Nvme && group.shape.nvme == Bytes{})
        return Infeasible{.reason = "the nodes of " + cluster.name + " (" + group.shape.name + ") have no NVMe drives",
                          .would_help = {instead}};
  return {};
}

bool has_convolutions(const Model& model) {
  const auto* list = std::get_if<LayerList>(&model.shape);
  return list && std::ranges::any_of(list->layers, [](const LayerSpec& layer) { return layer.op == LayerOp::Conv2d; });
}

// vDNN and free time: single values.
Refusal refuse_offload_of_values(const Model& model, const Strategy& s) {
  const std::string option = std::string("--offload-activations ") + name_of(s.offload.activations);
  if (s.offload.activations == OffloadedActivations::Vdnn && !has_convolutions(model))
    return Infeasible{.reason = model.name + " has no convolutions, whose inputs " + option + " sends to host memory",
                      .would_help = {"--offload-activations free-time", "--offload-activations all"}};
  if (widest_tp(s) > 1 && !s.communication.parts.empty())
    return Infeasible{.reason = option + " moves values between operators, which --parts cuts",
                      .would_help = {"--parts 1", "--offload-activations all"}};
  if (s.offload.activation_layers > 0)
    return Infeasible{.reason = option + " chooses values, whatever their layer: --offload-layers has no say",
                      .would_help = {"--offload-layers 0", "--offload-activations all"}};
  if (chooses_regions(s))
    return Infeasible{
        .reason = "policy " + s.policy + " and " + option + " would each choose for the memory that the other leaves",
        .would_help = {"--policy gemini_auto", "--offload-activations all"}};
  if (chooses_order(s))
    return Infeasible{.reason = "--schedule best and " + option + " would each choose for the memory that the other leaves",
                      .would_help = {"--schedule 1f1b", "--offload-activations all"}};
  return {};
}

Refusal refuse_offload_of_activations(const Model& model, const Strategy& s) {
  if (s.offload.activations == OffloadedActivations::None) return {};
  if (splits_backwards(s))
    return Infeasible{.reason = "schedule " + std::string(name_of(*s.pipeline.schedule)) +
                                " reads activations in two halves of the backward, offloaded ones come back for one",
                      .would_help = {"--schedule 1f1b", "--offload-activations none"}};
  if (has_cells(s) && s.offload.activations < OffloadedActivations::Vdnn)
    return Infeasible{.reason = "schedule " + std::string(name_of(*s.pipeline.schedule)) +
                                " runs a forward beside a backward, and offloaded activations of both would pass through the same places",
                      .would_help = {"--schedule 1f1b", "--offload-activations none"}};
  if (s.recompute.kind >= RecomputeKind::Rotor)
    return Infeasible{.reason = "the schedule of --recompute " + to_text(s.recompute) + " decides where activations lie",
                      .would_help = {"--recompute full", "--offload-activations none"}};
  return s.offload.activations < OffloadedActivations::Vdnn ? Refusal{} : refuse_offload_of_values(model, s);
}

Refusal refuse_update_per_layer(const Strategy& s) {
  if (!s.offload.update_per_layer) return {};
  if (*s.optimizer.clip_norm > 0)
    return Infeasible{
        .reason = "the norm for clipping is that of all gradients, which are not there when the first layer is updated",
        .would_help = {"--clip-norm 0", "--update-per-layer=false"}};
  if (s.optimizer.loss_scale == 0)
    return Infeasible{.reason = "a dynamic loss scale looks at all gradients before the first layer is updated",
                      .would_help = {"--loss-scale 1024", "--precision bf16"}};
  if (splits_backwards(s))
    return Infeasible{.reason = "schedule " + std::string(name_of(*s.pipeline.schedule)) +
                                " has weight gradients of several micro-batches under way when a layer is updated",
                      .would_help = {"--schedule 1f1b"}};
  return {};
}

Refusal refuse_offload_of_states(const Strategy& s, bool on_host) {
  const OffloadChoice& offload = s.offload;
  const bool layers = offload.parameters != Space::Device || offload.gradients != Space::Device;
  if (!layers && offload.optimizer == Space::Device && !on_host) return {};
  if (s.optimizer.loss_scale == 0)
    return Infeasible{.reason = "a dynamic loss scale skips updates on the device; those of offloaded states cannot be skipped",
                      .would_help = {"--loss-scale 1024", "--precision bf16"}};
  if (layers && splits_backwards(s))
    return Infeasible{.reason = "schedule " + std::string(name_of(*s.pipeline.schedule)) +
                                " computes weight gradients apart, when the layer's place has been given away",
                      .would_help = {"--schedule 1f1b"}};
  return {};
}

}  // namespace

Refusal resolve_offload(const Model& model, const Cluster& cluster, Strategy& s) {
  OffloadChoice& offload = s.offload;
  if (offload.updated_on == UpdatedOn::Auto && offload.optimizer != Space::Device) offload.updated_on = UpdatedOn::Host;
  const bool on_host = offload.updated_on == UpdatedOn::Host;
  if (auto refused = resolve_drives(cluster, offload)) return refused;
  if (auto refused = refuse_offload_of_activations(model, s)) return refused;
  if (auto refused = refuse_update_per_layer(s)) return refused;
  if (auto refused = refuse_offload_of_states(s, on_host)) return refused;
  if (!s.stages.empty() && !(offload == OffloadChoice{}))
    return Infeasible{.reason = "stages with degrees of their own keep everything on the device"};
  return {};
}

}  // namespace foreshard
