// Algorithms of collectives: one entry each, in a table. A new one is a file with its entry, the enumerator with its word
// (core/plan/plan.h, core/plan/plan_words.cpp) and a line in algorithms.cpp. What each does stands in core/network/collective_rounds.h (messages)
// and core/network/network.h (links).
#pragma once

#include <vector>

#include "core/network/collective_rounds.h"
#include "core/network/network.h"
#include "core/plan/plan.h"

namespace foreshard {

struct AlgorithmEntry {
  Algorithm algorithm = Algorithm::Ring;
  // Whether it is one for this kind and number of members, of which `per_node` that follow each other share a node; else a ring
  // takes its place.
  bool (*applies)(CollectiveKind kind, int members, int per_node) = nullptr;
  // Messages between members, `slices` set to the number of members beforehand; null: none, for other hardware than the members adds.
  void (*rounds)(CollectiveRounds& out, const Collective& collective, int members, int per_node) = nullptr;
  // Of at least two members; it takes the ring's where the nodes of the members are not as it needs them.
  std::vector<CollectiveFlow> (*phases)(const Network& network, const Collective& collective,
                                        const std::vector<DeviceId>& members) = nullptr;
  CollectiveVolume (*volume)(CollectiveKind kind, double bytes, int members) = nullptr;  // of kinds that it applies to
  bool compared = true;                                                                  // `--algorithm auto` looks at it
};

// In the order in which `--algorithm auto` compares them: of equal times the first wins.
const std::vector<AlgorithmEntry>& algorithm_table();
const AlgorithmEntry& algorithm_entry(Algorithm algorithm);

namespace algorithms {  // what entries share

using Devices = std::vector<DeviceId>;

inline bool adds_and_spreads(CollectiveKind kind) { return kind == CollectiveKind::AllReduce; }
inline bool is_half(CollectiveKind kind) { return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather; }
inline bool of_all_reduce(CollectiveKind kind, int, int) { return adds_and_spreads(kind); }  // AlgorithmRow::applies
inline bool is_of_shards(CollectiveKind kind) { return adds_and_spreads(kind) || is_half(kind); }
inline double full(const Collective& collective) { return static_cast<double>(collective.bytes.value); }
inline int depth_of(int nodes) {  // of the binary tree of n nodes
  int depth = 0;
  for (; nodes > 1; nodes /= 2) ++depth;
  return depth;
}

// Collects the links of one flow, hop by hop.
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
// The members of each node, in the order of a ring.
std::vector<Devices> by_node(const Network& network, const Devices& order);

// What several rings do at the same time is one round: adds `more` to the round `at`.
void join(std::vector<MessageRound>& rounds, std::size_t at, const MessageRound& more);
// From round `first` on: n - 1 rounds after which ring[i] has the sum of slices[i] (`adds`), or, from there, all members have all
// of them.
void ring_pass(std::vector<MessageRound>& rounds, std::size_t first, const std::vector<int>& ring,
               const std::vector<std::vector<int>>& slices, bool adds);

}  // namespace algorithms

}  // namespace foreshard
