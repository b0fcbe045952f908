// lower() in two halves. Between them the caller adds roles (add_role), all of them or, as tune does, only some. Internal to strategy/.
#pragma once

#include <variant>
#include <vector>

#include "strategy/lower/lower.h"
#include "strategy/program/lowering.h"

namespace foreshard {

// First half, for a resolved strategy without --stages: op graph, tables, axes and groups, but no roles.
std::variant<Lowering, Infeasible> begin_lowering(const Model& model, const Cluster& cluster, Strategy strategy,
                                                  const TunedRows& tuned = {});

// Second half, once the roles are added: devices, memory offsets, costs and the loss scale.
std::variant<Lowered, Infeasible> finish_plan(Lowering& lowering, const LowerOptions& options);

// Whether blocks may be packed by the order of the whole run (MemoryPlanOptions::by_order).
bool packs_by_order(const StrategyTables& tables);

// lower() of a resolved strategy with --stages, which gives each stage its own degrees (lower_stages.cpp).
std::variant<Lowered, Infeasible> lower_stages(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                               const LowerOptions& options);

}  // namespace foreshard
