// Isolated times of a plan's communication, and the speeds of several kinds of traffic that share links (max-min fair). Isolated means: no
// other kind of traffic runs, but all instances of the group on the same node run at once, and so do the transfers of all ranks of the
// role. Internal to strategy/.
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

  // Seconds of an instruction of `role` with its cost. A receive takes no time: the time is counted at its send.
  double duration(RoleId role, const Instruction& instruction, const Cost& cost);
  // The part of duration() in which bytes are on the links; the rest comes before the first byte.
  double on_links(RoleId role, const Instruction& instruction, const Cost& cost);
  double per_byte(int kind) const;  // isolated seconds on the links per byte of a collective's size or of a transfer

  // The number of an instruction's kind of traffic: a kind is a collective of a group, or the transfers to a peer. -1: crosses no link.
  int kind(RoleId role, const Instruction& instruction);
  // Speeds of kinds that run together, each relative to its isolated speed: links are shared max-min fair, as on the
  // simulator. A kind may be listed twice.
  const std::vector<double>& speeds(const std::vector<int>& kinds);
  // Whether two kinds cross a common link in one direction.
  bool meet(int a, int b) const;
  // A class of links that a kind crosses, and the share of their bandwidth that it takes when isolated. Links of equal bandwidth on which
  // every kind puts equal loads form one class.
  struct Crossing {
    int which = 0;  // number of the class, below crossings()
    double share = 0;
  };
  const std::vector<Crossing>& crossed(int kind);
  double rate(int kind) const { return kinds_[static_cast<std::size_t>(kind)].rate; }  // isolated: bytes per second
  int crossings();                                                                     // number of classes of links

 private:
  struct Load {
    LinkId link = {};
    double crossings = 0;  // bytes that all instances put on the link, per byte of one instance's size
  };
  struct Kind {
    RoleId role = {};
    std::variant<Collective, Peer> what = {};
    double seconds = 0, bytes = 1;  // isolated seconds on the links for `bytes` bytes
    double rate = 0;                // bytes / seconds; 0: crosses no link
    std::vector<Load> loads = {};   // by link, summed over all phases
  };
  int collective_kind(RoleId role, const Collective& what);
  int transfer_kind(RoleId role, const Peer& peer);
  Kind measured(RoleId role, const Collective& what) const;
  std::vector<double> shared_out(const std::vector<int>& kinds);
  void tell_links_apart();
  std::vector<RankId> everyone(RoleId role) const;
  std::vector<RankId> neighbours(RoleId role) const;  // ranks of the role on the node of its first rank

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
  // Classes of links, as at Crossing: a cluster has thousands of links, but few classes.
  std::vector<int> class_of_ = {};  // [link]
  int classes_ = 1;
  // [kind]: the classes that it crosses, with the load of one of their links.
  std::vector<std::vector<player::LinkShare>> telling_ = {};
  std::vector<double> bandwidth_ = {};               // [class]: of one link
  std::vector<std::vector<Crossing>> crossed_ = {};  // [kind]
  player::MaxMin max_min_ = {};
};

}  // namespace foreshard
