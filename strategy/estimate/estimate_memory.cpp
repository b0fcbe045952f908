#include "strategy/estimate/estimate_memory.h"

#include <algorithm>

#include "strategy/schedule/schedule.h"

namespace foreshard {

using enum stage_kind::Kind;

static constexpr double kLayersHere = 3;  // layers whose activations are on the device when activations are offloaded
// Buffers of a chunk for transfers: two outputs, two gradients to send, three to receive.
static constexpr double kPlaces = 7;

RankBytes rank_memory(const ScreenedModel& model, const Point& point, const ShapeCosts& shape, double microbatches, int kind,
                      double rank, double layers) {
  const double p = point.pp, v = point.virtual_stages, shards = shards_of(point);
  const double grad = static_cast<double>(size_of(model.types.grad).value),
               param = static_cast<double>(size_of(model.types.param).value);
  const double states = static_cast<double>(size_of(model.types.state).value) *
                        ((model.types.master ? 1 : 0) + (model.base.optimizer.kind == OptimizerKind::Adam ? 2
                                                         : model.base.optimizer.momentum > 0              ? 1
                                                                                                          : 0));
  const ScheduleEntry& schedule = schedule_entry(point.schedule);
  const ScheduleShape size = {
      .p = point.pp, .m = static_cast<int>(microbatches), .v = point.virtual_stages, .g = model.base.pipeline.microbatch_group};
  const double versions = schedule.weight_versions ? schedule.weight_versions(size, static_cast<int>(rank)) : 1;
  // With several versions an update must not overwrite weights that are still read, so it needs a copy of its own.
  const double copied = versions > 1 && !model.types.master ? param : 0;
  const OffloadChoice& offload = model.base.offload;
  const bool params_here = offload.parameters == Space::Device, grads_here = offload.gradients == Space::Device;
  const auto each = [&](double ranks) {
    return (params_here ? versions * param / (point.cuts().parameters ? ranks : 1) : 0) + copied +
           (grads_here ? grad / (point.cuts().gradients ? ranks : 1) : 0) +
           (offload.optimizer == Space::Device ? 1 : offload.optimizer_kept) * states / ranks;
  };
  RankBytes memory{.flight = schedule.in_flight({.p = p, .m = microbatches, .v = v, .rank = rank})};
  if (const auto r = static_cast<std::size_t>(rank); r < model.listed_in_flight.size())
    memory.flight = model.listed_in_flight[r];
  // Offloaded activations are on the device only in buffers that layers use in turn, and for the last layer.
  const bool all = offload.activations == OffloadedActivations::All || offload.activations == OffloadedActivations::FreeTime;
  if (all && offload.activation_layers == 0 && v == 1)
    memory.flight = std::min(memory.flight, kLayersHere / std::max(layers, 1.0));
  const auto elements = [&](const PerStage& of) {
    double sum = of.of(kind, layers);
    if (v > 1) sum += (v - 1) * of.of(Middle, layers);
    if (schedule.routes > 1) sum += of.of(kind == First ? Last : kind == Last ? First : kind, layers);  // of the mirrored rank
    return sum;
  };
  memory.fixed = elements(shape.parameters) * each(shards) + elements(shape.experts) * each(expert_shards_of(point));
  if (params_here) memory.fixed += elements(shape.frozen) * param / (point.cuts().parameters ? shards : 1);
  // Each chunk has its own buffers for gathered parameters and for gradients to be reduced, of the size of a layer (for gathered parameters
  // at least that of the embedding or head, whose gradient has another buffer); and for transfers, beyond those counted in ShapeCosts.
  const double layer = shape.parameters.layer, end = std::max(0.0, shape.parameters.of(kind, layers) - layers * layer);
  const double experts = point.expert_replicas() > 1 ? shape.experts.layer : 0;  // experts without replicas are not cut
  if (point.cuts().gradients || !grads_here)
    memory.fixed += grad * (v * (layer + experts) * (point.overlap_gradients ? 2 : 1) + end);
  const double read = layer + shape.frozen.layer,
               read_end = end + std::max(0.0, shape.frozen.of(kind, layers) - layers * shape.frozen.layer);
  if (point.cuts().parameters || !params_here)
    memory.fixed +=
        param * (point.overlap_parameters || !params_here ? 2 : 1) * (v * (read + experts) + std::max(0.0, read_end - read));
  memory.fixed += (v - 1) * kPlaces * shape.hop_bytes;
  return memory;
}

double activations_of(const ShapeCosts& shape, int kind, double layers, double flight, bool chunks) {
  const double own = shape.activations.of(kind, layers);
  return chunks ? own + (flight - 1) * shape.activations.of(Middle, layers) : own * flight;
}

// The first rank holds most activations, the others may hold more parameters: the largest of the kinds.
double memory_of(const ScreenedModel& model, const Point& point, const ShapeCosts& shape, const GridCosts& grid) {
  const ScreenedModel::Layers all = model.layers_of(point);
  double most = 0;
  for (const int kind : {First, Middle, Last}) {
    if (kind == Middle && point.pp < 3) continue;
    const int at = point.pp == 1 ? Only : kind;
    const double rank = kind == First || point.pp == 1 ? 0 : kind == Middle ? 1 : point.pp - 1;
    const double layers = all[static_cast<std::size_t>(at)];
    const RankBytes memory = rank_memory(model, point, shape, model.microbatches(point), at, rank, layers);
    const double together = schedule_entry(point.schedule).cells ? 2 : 1;  // a forward and a backward
    most = std::max(most, memory.fixed + activations_of(shape, at, layers, memory.flight, point.virtual_stages > 1) +
                              together * shape.scratch.of(at, layers));
  }
  return most + grid.framework + shape.workspace;
}

}  // namespace foreshard
