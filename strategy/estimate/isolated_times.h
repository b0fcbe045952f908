// Isolated times of a plan's communication: all instances of a group on the same nodes run at once, as do the transfers of all
// ranks of a role, and no other kind of traffic does. And the speeds of several kinds that share links (max-min fair).
// Internal to strategy/.
#pragma once

#include <unordered_map>
#include <variant>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/network/network.h"
#include "core/plan/plan.h"
#include "core/plan/ranks.h"
#include "replay/max_min.h"

namespace foreshard {

class IsolatedTimes {
 public:
  IsolatedTimes(const Plan& plan, const Cluster& cluster) : plan_(plan), network_(cluster), ranks_(plan) {}

  // Seconds of an instruction of `role` with its cost. A receive takes no time of its own: its send has it.
  double duration(RoleId role, const Instruction& instruction, const Cost& cost);
  // The part of it on the links; what is left is before the first byte.
  double on_links(RoleId role, const Instruction& instruction, const Cost& cost);
  double per_byte(int kind) const;  // of a collective's size or of a transfer

  // A kind of traffic: a collective of a group, or the transfers to a peer. -1: crosses no link.
  int kind(RoleId role, const Instruction& instruction);
  // Speeds of kinds that run together, each relative to its isolated speed: links are shared max-min fair, as on the
  // simulator. A kind may be listed twice.
  const std::vector<double>& speeds(const std::vector<int>& kinds);
  // Whether two kinds cross a common link in one direction.
  bool meet(int a, int b) const;
  // The links that a kind crosses, those that all kinds cross alike once, and the share of each that it takes when isolated.
  struct Crossing {
    int which = 0;  // below crossings()
    double share = 0;
  };
  const std::vector<Crossing>& crossed(int kind);
  double rate(int kind) const { return kinds_[static_cast<std::size_t>(kind)].rate; }  // alone: bytes per second
  int crossings();

 private:
  struct Load {
    LinkId link = {};
    double crossings = 0;  // by all instances: bytes per byte of one
  };
  struct Kind {
    RoleId role = {};
    std::variant<Collective, Peer> what = {};
    double seconds = 0, bytes = 1;  // seconds on the wires, for `bytes` bytes
    double rate = 0;                // bytes per second; 0: crosses no link
    std::vector<Load> loads = {};   // by link, of all phases
  };
  int collective_kind(RoleId role, const Collective& what);
  int transfer_kind(RoleId role, const Peer& peer);
  Kind measured(RoleId role, const Collective& what) const;
  std::vector<double> shared_out(const std::vector<int>& kinds);
  void tell_links_apart();
  std::vector<RankId> everyone(RoleId role) const;
  std::vector<RankId> neighbours(RoleId role) const;  // ranks of the role on the node of its first one

  const Plan& plan_;
  Network network_;
  Ranks ranks_;
  std::vector<Kind> kinds_ = {};
  struct Hash {
    std::size_t operator()(const std::vector<int>& kinds) const {
      std::size_t sum = kinds.size();
      for (const int kind : kinds) sum = sum * 1'000'003 + static_cast<std::size_t>(kind);
      return sum;
    }
  };
  std::unordered_map<std::vector<int>, std::vector<double>, Hash> speeds_ = {};
  // Links of equal bandwidth that all kinds cross alike say the same: a cluster has thousands, and few that differ.
  std::vector<int> class_of_ = {};  // [link]
  int classes_ = 1;
  std::vector<std::vector<player::LinkShare>> telling_ = {};  // [kind] of each class, one of its links
  std::vector<double> bandwidth_ = {};                        // [class] of a link
  std::vector<std::vector<Crossing>> crossed_ = {};           // [kind]
  player::MaxMin max_min_ = {};
};

}  // namespace foreshard
