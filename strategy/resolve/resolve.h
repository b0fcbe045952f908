// resolve: fills in every default of a strategy, or says why the strategy is not possible. Also answers the questions about a strategy that
// have to be answered before its tables exist (tables.h).
#pragma once

#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/graph/op_graph.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// The strategy with its defaults filled in (dp, schedule, dtypes, attention, bucket, placement), or why it is infeasible.
std::variant<Strategy, Infeasible> resolve(const Model& model, const Cluster& cluster, const Strategy& strategy);

// Whether the strategy leaves something for tune (strategy/tune/tune.h) to decide: a choice is "auto" or "best", or it asks for a
// recomputation schedule (rotor, revolve, graph), which has to be computed.
bool leaves_open(const Strategy& strategy);
// The strategy with a plain value for each of these choices: no recomputation, an even layer split, whole operators, 1F1B, buckets of the
// default size, activations on the device. For plans that are made only to be timed.
Strategy without_open_choices(Strategy strategy);

// `--parts auto`: tune chooses into how many parts operators are cut.
bool chooses_parts(const Strategy& strategy);
// `--schedule best`: tune chooses the order of actions on the pipeline ranks.
bool chooses_order(const Strategy& strategy);
// zb-2p without --schedule-times: tune measures them. leaves_open() does not count it: its order for times 1, 1, 1, 0 can be lowered, too.
bool chooses_times(const Strategy& strategy);
// `--offload-activations free-time`: tune chooses which activations are offloaded.
bool chooses_moves(const Strategy& strategy);
// A policy with regions of layers (RegionRule): tune chooses the regions. leaves_open() does not count it, because a rule without choices can
// be lowered, too.
bool chooses_regions(const Strategy& strategy);
// `--bucket auto` (a bucket of -1 bytes): tune chooses the size of gradient buckets.
bool chooses_buckets(const Strategy& strategy);

// Whether recomputation may differ from layer to layer: layers are named or counted per stage, or a recomputation schedule covers them.
bool names_layers(const Recompute& recompute);

// The op graph of one rank under a resolved strategy. Infeasible: the model's shapes cannot be split so.
std::variant<OpGraph, Infeasible> graph_of(const Model& model, const Strategy& strategy);

// The part of the strategy that the shapes in this op graph depend on: degrees, batch and number formats.
Sharding sharding_of(const Strategy& strategy, const StateTypes& types);

// The steps of resolve(). Each fills in its fields of `strategy` in place, and returns why they are infeasible, or nothing.

// Takes options that the strategy leaves open from its runtime policy (strategy/cost/runtime_policy.h), if it names one. Infeasible: an
// option contradicts the policy.
std::optional<Infeasible> resolve_policy(Strategy& strategy);
// The bucket of gradients of the strategy's policy, named or implied by its framework, where no bucket is given. The other things that an
// implied policy says are in the preset (formats, overlap) or in the strategy already (ZeRO stage, homes).
void set_bucket_of_policy(Strategy& strategy);

// Chooses and checks the schedule. Degrees and batch must be resolved.
std::optional<Infeasible> resolve_schedule(const Model& model, Strategy& strategy);

// Stages with equal degrees, said one by one (--stages), said by dp, tp, pp and layer_split instead: one strategy has one plan. Other strategies
// stay as they are.
Strategy with_common_degrees(Strategy strategy);

// For a strategy with --stages, which gives each stage its own degrees: checks the rules that hold only for these, and derives pp, dp and
// the layer split. Runs before the steps for all strategies.
std::optional<Infeasible> resolve_stages(const Model& model, const Cluster& cluster, Strategy& strategy);

// Decides where states are updated, if that is open: what lies in host memory or on drives is updated by the processor of the host.
// Infeasible: homes that the nodes do not have, or schedules, recomputation, clipping or loss scales that need what has been moved away.
std::optional<Infeasible> resolve_offload(const Model& model, const Cluster& cluster, Strategy& strategy);

}  // namespace foreshard
