// Describes one pipeline rank for the replay of its allocations (strategy/frameworks/step_replay.h).
#pragma once

#include "core/graph/op_graph.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/memory_traits.h"
#include "strategy/frameworks/step_replay.h"
#include "strategy/lower/lower.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

// `strategy` must be resolved, `traits` must have rules of a step. `list`: the actions of the rank in one step.
ReplayedRank replayed_rank(const Transformer& model, const Strategy& strategy, const MemoryTraits& traits, const OpGraph& graph,
                           const StageLayout& layout, int rank, const std::vector<ScheduleOp>& list);

MakeStepRules step_rules(const std::string& name);  // a name that StepMemory::rules can have

}  // namespace foreshard
