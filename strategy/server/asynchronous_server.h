// Asynchronous parameter servers as a plan: Downpour SGD (Dean et al. 2012, section 4.1, with n_fetch = n_push = 1) whose servers take the
// gradients of their workers in turn (round-robin: Zinkevich, Langford and Smola 2009, "Slow Learners are Fast"). Each of several servers
// holds some of the parameters. A worker may be a tensor-parallel group, a pipeline or both (DistBelief's model-parallel replicas).
//
//   worker 0   | F B |push|pull| F B ...          one run: every worker pushes once, so the server updates once for each worker
//   worker 1   | F B  ....|push|pull| F B ...
//   server     .......|update 0|update 1|...
//
// A worker never waits for another worker, only for its turn. From the second run on its gradients are those of the weights that it pulled
// one run before: n - 1 updates of others came between (staleness n - 1). In the first run all have the initial weights, and the
// staleness of worker w is w.
//
// With two servers a worker pushes to the first and then, while that updates and sends back, to the second:
//
//   worker 0   | F B |push 0|push 1|
//              |             pull 0|.. pull 1|
//   server 0   ......|push 0|update|pull 0|push 0 of worker 1| ...
//   server 1   .............|push 1|update|pull 1| ...
#pragma once

#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/plan/plan.h"
#include "strategy/lower/lower.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

// The strategy of one worker of a strategy with CommunicationChoice::asynchronous: one replica, with its share of the global batch.
Strategy worker_of(Strategy strategy);

// The rows of its tables, with what its servers need: units that they can share.
TunedRows rows_of_worker(const Strategy& strategy, TunedRows rows);

// The plan of a resolved strategy with CommunicationChoice::asynchronous, with costs: dp workers and serving_gpus() servers. Arguments and
// errors are those of lower(); `tuned` is of one worker.
std::variant<Lowered, Infeasible> lower_asynchronous(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                                     const LowerOptions& options, const TunedRows& tuned);

// `one`: the plan of one worker; its axes are of tensor-parallel ranks, each of which has servers of its own. The result has a role for
// each server, or for the tp servers of one part of the parameters, and one for each stage of each worker. Servers are the first ranks; with
// the default placement ranks are on the devices 0, 1, ... Its samples are those of all workers, its offsets are set, its costs are
// not (cost_plan). Infeasible: `one` is no plan of a worker that updates once, or it has fewer units of parameters than there are servers.
// `coding`: how workers compress the gradients that they send; empty: not at all.
std::variant<Plan, Infeasible> asynchronous_server(const Plan& one, int workers, int servers = 1,
                                                   const std::optional<Coding>& coding = {});

}  // namespace foreshard
