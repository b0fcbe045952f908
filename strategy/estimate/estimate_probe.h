// Measures the costs that the screen reads, on plans, not on hardware: once per shape, the times and bytes of layers, on small plans that
// `lower` makes (probes); once per grid of ranks, the times of collectives and transfers. All GPUs are taken as equal.
#pragma once

#include "strategy/estimate/estimate_model.h"

namespace foreshard {

// Empty: `lower` refuses the shape, for example because the degrees do not divide the model.
std::optional<ShapeCosts> probed_shape(const ScreenedModel& of, const Point& point);
GridCosts probed_grid(const ScreenedModel& of, const Point& point);

// The axes of the ranks of a stage: data, context, tensor and outer data, those of size 1 included.
std::vector<Axis> axes_of(const Point& point);
// The order in which axes and stages are laid on the GPUs, fastest first.
RankOrder order_of(const Strategy& base, const Point& point);
bool shares_nics(const Cluster& cluster);  // a node has fewer NICs than GPUs

}  // namespace foreshard
