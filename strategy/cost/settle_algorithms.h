// What `--algorithm` becomes in a plan: by which algorithm each of its collectives is carried out.
#pragma once

#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// A collective whose algorithm is one for its kind and its group on this cluster keeps it, with the servers that the choice names, or
// for hierarchies and trees the members of a node; any other becomes a ring. Where the choice names no algorithm each collective takes the
// one that takes least time alone by the costs of strategy/cost, for the slowest of the roles that run it; a ring of equals. To gather on a
// root is never chosen: it takes memory.
void settle_algorithms(Plan& plan, const Cluster& cluster, const CommunicationChoice& choice);

struct SettledCollective {  // equal ones once
  std::string name = {}, group = {};
  Collective what = {};
  int members = 1;
  Seconds alone = {};
};
std::vector<SettledCollective> settled_collectives(const Plan& plan, const Cluster& cluster);

}  // namespace foreshard
