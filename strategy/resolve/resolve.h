// resolve: a strategy with every default filled in, and what follows from it before there are tables (tables.h).
#pragma once

#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/graph/op_graph.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// The strategy with defaults resolved (dp, schedule, dtypes, attention, bucket, placement), or why it cannot be.
std::variant<Strategy, Infeasible> resolve(const Model& model, const Cluster& cluster, const Strategy& strategy);

// Whether the strategy says "auto", "best" or names a recomputation schedule (rotor, revolve, graph), which has to be made: tune does
// both (strategy/tune/tune.h).
bool leaves_open(const Strategy& strategy);

// ... "auto" for the parts of operators.
bool chooses_parts(const Strategy& strategy);
// `--schedule best`: the order of work on the pipeline ranks.
bool chooses_order(const Strategy& strategy);
// `--bucket auto`, which is -1.
bool chooses_buckets(const Strategy& strategy);

// Whether it is about some layers and not about all alike: by their numbers, or by a schedule of all of them.
bool names_layers(const Recompute& recompute);

// The graph that the local shapes of a resolved strategy make, or why they cannot be.
std::variant<OpGraph, Infeasible> graph_of(const Model& model, const Strategy& strategy);

// What these shapes depend on.
Sharding sharding_of(const Strategy& strategy, const StateTypes& types);

// resolve() of a runtime policy: what it says about options that were left open, or why it cannot be had.
std::optional<Infeasible> resolve_policy(Strategy& strategy);
// The bucket of gradients of the strategy's policy, named or implied by its framework, where no bucket is given. The other things that an
// implied policy says are in the preset (formats, overlap) or in the strategy already (ZeRO stage, homes).
void set_bucket_of_policy(Strategy& strategy);

// resolve() of its schedule, once degrees and batch are there.
std::optional<Infeasible> resolve_schedule(const Model& model, Strategy& strategy);

// resolve() of a strategy that says its stages one by one: its own rules, before those of all.
std::optional<Infeasible> resolve_stages(const Model& model, const Cluster& cluster, Strategy& strategy);

}  // namespace foreshard
