// What the screen measures: the times and bytes of a layer on small plans that `lower` makes, collectives and transfers on a grid of ranks. Once per
// shape and per grid; GPUs are equal.
#pragma once

#include "strategy/estimate/estimate_model.h"

namespace foreshard {

// Empty: shapes that cannot be cut so.
std::optional<ShapeCosts> measured_shape(const ScreenedModel& of, const Point& point);
GridCosts measured_grid(const ScreenedModel& of, const Point& point);

// All axes, of size 1 too, and the order in which they lie on the GPUs.
std::vector<Axis> axes_of(const Point& point);
RankOrder order_of(const Strategy& base, const Point& point);
bool shares_nics(const Cluster& cluster);

}  // namespace foreshard
