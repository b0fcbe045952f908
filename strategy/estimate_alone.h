// How long the communication of a plan takes when nothing but its own kind is under way: all instances of a group on the same
// nodes run at once, and so do the transfers of all ranks of a role. Internal to strategy/.
#pragma once

#include <vector>

#include "core/cluster.h"
#include "core/network.h"
#include "core/plan.h"
#include "core/ranks.h"

namespace foreshard {

class AloneTimes {
 public:
  AloneTimes(const Plan& plan, const Cluster& cluster) : plan_(plan), network_(cluster), ranks_(plan) {}

  // Seconds of an instruction of `role` with its cost. A receive takes no time of its own: its send has it.
  double duration(RoleId role, const Instruction& instruction, const Cost& cost);
  // Of the transfer that a receive stands at the end of: as long as one the other way.
  double receive(RoleId role, const Exchange& what, const Cost& cost);

 private:
  struct Known {
    RoleId role = {};
    Collective what = {};
    double seconds = 0;  // on the wires, for what.bytes
  };
  struct KnownHop {
    RoleId role = {};
    Peer peer = {};
    double seconds_per_byte = 0;
  };
  double wire(RoleId role, const Collective& what);
  double measure(RoleId role, const Collective& what) const;
  double hop(RoleId role, const Peer& peer);
  std::vector<RankId> neighbours(RoleId role) const;  // ranks of the role on the node of its first one

  const Plan& plan_;
  Network network_;
  Ranks ranks_;
  std::vector<Known> known_ = {};
  std::vector<KnownHop> hops_ = {};
};

}  // namespace foreshard
