// An asynchronous parameter server as a plan: Downpour SGD (Dean et al. 2012, section 4.1, with n_fetch = n_push = 1) whose server takes
// the gradients of its workers in turn (round-robin: Zinkevich, Langford and Smola 2009, "Slow Learners are Fast").
//
//   worker 0   | F B |push|pull| F B ...          one run: every worker pushes once, so the server updates once for each worker
//   worker 1   | F B  ....|push|pull| F B ...
//   server     .......|update 0|update 1|...
//
// A worker never waits for another worker, only for its turn. From the second run on its gradients are those of the weights that it pulled
// one run before: n - 1 updates of others came between (staleness n - 1). In the first run all have the initial weights, and the
// staleness of worker w is w.
#pragma once

#include <variant>

#include "core/base/error.h"
#include "core/plan/plan.h"

namespace foreshard {

// `one`: the plan of one worker, on one device. The result has a role for the server, which updates, and one for each worker; they are on
// the devices 0, 1, ..., `workers`. Its samples are those of all workers, its offsets are set, its costs are not (cost_plan).
// Infeasible: `one` is no plan of one device that updates once.
std::variant<Plan, Infeasible> asynchronous_server(const Plan& one, int workers);

}  // namespace foreshard
