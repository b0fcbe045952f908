// lower() in two halves, between which roles are added one by one: tune tries roles alone. Internal to strategy/.
#pragma once

#include <variant>
#include <vector>

#include "strategy/lower/lower.h"
#include "strategy/program/lowering.h"

namespace foreshard {

// The inputs of a resolved strategy that has no stages of their own, up to the roles: graph, tables, axes, groups.
std::variant<Lowering, Infeasible> begin_lowering(const Model& model, const Cluster& cluster, Strategy strategy,
                                                  const std::vector<StageRuns>& runs = {});

// The plan once its roles are there: devices, offsets, costs, the loss scale.
std::variant<Lowered, Infeasible> finish_plan(Lowering& lowering, const LowerOptions& options);

// lower() of a resolved strategy that says its stages one by one (lower_stages.cpp).
std::variant<Lowered, Infeasible> lower_stages(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                               const LowerOptions& options);

}  // namespace foreshard
