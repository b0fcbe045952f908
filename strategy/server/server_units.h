// Which server of an asynchronous parameter server holds which parameters: whole units (a bucket of parameters with its gradients and
// states), the largest first, each on the server that has the fewest bytes so far. Internal to strategy/.
#pragma once

#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"

namespace foreshard {

// Actions that train do forwards and backwards. The other actions of a worker's plan sum gradients, measure them and update.
bool trains(const Action& action);
bool is_update(const Instruction& run);   // a compute of Phase::Update
bool is_exchanged(const Buffer& buffer);  // between workers and servers: parameters and gradients

struct ServedBuffer {
  int server = -1;  // the server's role; -1: no server has the buffer
  // Of a tied embedding's second copy: role and buffer of the first one, which the server has. Its gradients are not sent, because the
  // worker has added them to those of the first one.
  int original_role = -1;
  BufferId original = {};
};

struct ServerUnits {
  int servers = 1;
  std::vector<std::vector<ServedBuffer>> of = {};  // [role of the worker's plan][buffer]
};

// `one`: the plan of one worker. `servers`: the number of roles of servers. Infeasible: there are fewer units than servers.
std::variant<ServerUnits, Infeasible> server_units(const Plan& one, int servers);

}  // namespace foreshard
