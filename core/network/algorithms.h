// The table of collective algorithms. A new algorithm is a file with its entry, an enumerator with its word (core/plan/plan.h,
// core/plan/plan_words.cpp) and a line in algorithms.cpp. core/network/collective_rounds.h describes each algorithm as messages,
// core/network/network.h as load on links.
#pragma once

#include <vector>

#include "core/network/collective_rounds.h"
#include "core/network/network.h"
#include "core/plan/plan.h"

namespace foreshard {

struct AlgorithmEntry {
  Algorithm algorithm = Algorithm::Ring;
  // Whether the algorithm supports this kind and number of members; if not, a ring is used. Each run of `per_node` consecutive members
  // shares a node; for parameter servers it is their number.
  bool (*applies)(CollectiveKind kind, int members, int per_node) = nullptr;
  // Adds the messages between members to `out`, whose `slices` the caller has set to the number of members. null: the members send no
  // messages, because the switch does the reduction.
  void (*rounds)(CollectiveRounds& out, const Collective& collective, int members, int per_node) = nullptr;
  // The flows for at least two members (collective_phases); those of a ring if the algorithm does not suit the members' nodes.
  std::vector<CollectiveFlow> (*phases)(const Network& network, const Collective& collective,
                                        const std::vector<DeviceId>& members) = nullptr;
  CollectiveVolume (*volume)(CollectiveKind kind, double bytes, int members) = nullptr;  // only for kinds that it applies to
  bool compared = true;                                                                  // `--algorithm auto` considers it
};

// All entries, in the order in which `--algorithm auto` compares them: among equal times the first wins.
const std::vector<AlgorithmEntry>& algorithm_table();
const AlgorithmEntry& algorithm_entry(Algorithm algorithm);

namespace algorithms {  // what entries share

using Devices = std::vector<DeviceId>;

// Kinds: an all-reduce; one of the two halves of an all-reduce; any of these three.
inline bool is_all_reduce(CollectiveKind kind) { return kind == CollectiveKind::AllReduce; }
inline bool is_reduce_scatter_or_all_gather(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather;
}
inline bool of_all_reduce(CollectiveKind kind, int, int) { return is_all_reduce(kind); }  // an AlgorithmEntry::applies
inline bool is_shardwise(CollectiveKind kind) { return is_all_reduce(kind) || is_reduce_scatter_or_all_gather(kind); }
inline double full(const Collective& collective) { return static_cast<double>(collective.bytes.value); }
inline int depth_of(int nodes) {  // of a binary tree of `nodes` nodes: floor(log2 nodes)
  int depth = 0;
  for (; nodes > 1; nodes /= 2) ++depth;
  return depth;
}

// Builds a CollectiveFlow: `hop` adds `times` times the links of the route between two devices, `done` returns the flow.
class FlowBuilder {
 public:
  explicit FlowBuilder(const Network& network) : network_(network) {}
  void hop(DeviceId from, DeviceId to, int times = 1);
  CollectiveFlow done(double bytes, int steps);

 private:
  const Network& network_;
  CollectiveFlow flow_ = {};
};

std::vector<CollectiveFlow> ring_phases(const Network& network, const Collective& collective, const Devices& members);
CollectiveVolume ring_volume(CollectiveKind kind, double bytes, int members);
// The members of each node, one list per node. `order` is the order of a ring.
std::vector<Devices> by_node(const Network& network, const Devices& order);

// Adds the messages `more` to rounds[at], so that several rings run at the same time.
void join(std::vector<MessageRound>& rounds, std::size_t at, const MessageRound& more);
// Adds the messages of a ring of n members to the rounds first .. first + n - 2. With `adds` it is a reduce-scatter: ring[i] ends with the
// sum of slices[i]. Without, it is the all-gather after that: every member ends with all slices.
void ring_pass(std::vector<MessageRound>& rounds, std::size_t first, const std::vector<int>& ring,
               const std::vector<std::vector<int>>& slices, bool adds);

}  // namespace algorithms

}  // namespace foreshard
