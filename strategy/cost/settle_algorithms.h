// Decides by which algorithm (ring, tree, parameter server ...) each collective of a plan is carried out, from `--algorithm`.
#pragma once

#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/network/network.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// Where `strategy` names an algorithm: a collective keeps it if the algorithm exists for its kind and its group on this cluster, and becomes
// a ring otherwise. Collective::servers becomes the number of parameter servers or, for hierarchies and trees, of members per node;
// Collective::served_by the servers' positions (CommunicationChoice::server_placement), for the nodes on which the group's first instance is.
// Where it names a ring and its framework leaves the choice to NCCL (MessageRules::nccl_chooses): an all-reduce over more than four
// nodes takes a double tree if its isolated time is less. (On fewer nodes NCCL's trees send other amounts than ours.)
// Where it names none: each collective takes the algorithm with the least isolated time on the slowest role that runs it, and a ring
// if others are equal. Gathering on a root is never chosen, because it takes memory. All-to-alls stay as they are.
void settle_algorithms(Plan& plan, const Cluster& cluster, const Strategy& strategy);

// The positions in `members` of `servers` parameter servers, at most as many as members, in the order of what they serve.
//   First   0, 1, 2, ...
//   Spread  server s of k is at s n / k, rounded down
//   Nodes   the first member of each node, then the second one of each, and so on, until there are k
std::vector<std::int32_t> server_places(const Network& network, const std::vector<DeviceId>& members, int servers,
                                        ServerPlacement placement);

// A collective of a plan with its isolated time, for printing. Equal collectives of one name are listed once.
struct SettledCollective {
  std::string name = {}, group = {};
  Collective what = {};
  int members = 1;
  Seconds alone = {};  // isolated time on the slowest role that runs it
};
std::vector<SettledCollective> settled_collectives(const Plan& plan, const Cluster& cluster);

}  // namespace foreshard
