// Tree and double tree: up and down a binary tree of nodes, with a chain inside each node.
#include <algorithm>
#include <bit>

#include "core/network/algorithms.h"

namespace foreshard {

namespace {

using namespace algorithms;

// Node i hangs below node (i-1)/2; the second tree counts the nodes from the end, so that inner nodes of one are leaves
// of the other (Sanders, Speck, Traeff 2009). The chain of a node hangs below its head, the member at which its ring
// enters.
CollectiveFlow tree(const Network& network, const Collective& collective, const Devices& members, bool two) {
  FlowBuilder flow(network);
  const std::vector<RingOrder> rings = ring_orders(network, members);
  int shares = 0, steps = 0;
  for (const RingOrder& ring : rings) {
    std::vector<Devices> nodes = by_node(network, ring.order);
    for (int mirrored = 0; mirrored < (two ? 2 : 1); ++mirrored) {
      shares += ring.shares;
      const auto both = [&](DeviceId a, DeviceId b) { flow.hop(a, b, ring.shares), flow.hop(b, a, ring.shares); };
      std::size_t longest = 1;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (i > 0) both(nodes[i].front(), nodes[(i - 1) / 2].front());
        for (std::size_t j = 1; j < nodes[i].size(); ++j) both(nodes[i][j - 1], nodes[i][j]);
        longest = std::max(longest, nodes[i].size());
      }
      steps = 2 * (depth_of(static_cast<int>(nodes.size())) + static_cast<int>(longest) - 1);
      std::reverse(nodes.begin(), nodes.end());
    }
  }
  return flow.done(full(collective) / std::max(1, shares), steps);
}

std::vector<CollectiveFlow> one_tree(const Network& network, const Collective& collective, const Devices& members) {
  return {tree(network, collective, members, false)};
}
std::vector<CollectiveFlow> two_trees(const Network& network, const Collective& collective, const Devices& members) {
  return {tree(network, collective, members, true)};
}

int level_of(int node) { return static_cast<int>(std::bit_width(static_cast<unsigned>(node + 1))) - 1; }

// Node i hangs below node (i - 1) / 2; mirrored, the nodes are counted from the end. Members of a node are a chain to its first one.
void tree_rounds(CollectiveRounds& out, int n, int per_node, int slice, bool mirrored) {
  const int nodes = n / per_node, depth = level_of(nodes - 1);
  const auto head = [&](int node) { return (mirrored ? nodes - 1 - node : node) * per_node; };
  std::vector<MessageRound> up;
  for (int place = per_node - 1; place > 0; --place) {
    MessageRound round;
    for (int node = 0; node < nodes; ++node) round.push_back({head(node) + place, head(node) + place - 1, slice, true});
    up.push_back(round);
  }
  for (int level = depth; level > 0; --level) {
    MessageRound round;
    for (int node = 1; node < nodes; ++node)
      if (level_of(node) == level) round.push_back({head(node), head((node - 1) / 2), slice, true});
    up.push_back(round);
  }
  for (std::size_t t = 0; t < up.size(); ++t) join(out.rounds, t, up[t]);
  for (std::size_t t = 0; t < up.size(); ++t) {
    MessageRound down = up[up.size() - 1 - t];
    for (SliceMessage& message : down) std::swap(message.from, message.to), message.adds = false;
    join(out.rounds, up.size() + t, down);
  }
}

void rounds_of_one(CollectiveRounds& out, const Collective&, int members, int per_node) {
  out.slices = 1;
  tree_rounds(out, members, per_node, 0, false);
}
void rounds_of_two(CollectiveRounds& out, const Collective&, int members, int per_node) {
  out.slices = 2;
  tree_rounds(out, members, per_node, 0, false);
  tree_rounds(out, members, per_node, 1, true);
}

// Messages of the busiest node for n nodes. In one tree it is the root with one child (n = 2) or two (n <= 4), or has a parent and two
// children. In two mirrored trees it is a leaf of the other tree, and each tree carries half of the data: n = 2: 1 + 1 halves, n <= 4: 2 +
// 1, above: 3 + 1.
int edges_of(int n) { return n == 2 ? 1 : n <= 4 ? 2 : 3; }
CollectiveVolume volume_of_one(CollectiveKind, double bytes, int n) { return {bytes * edges_of(n), 2 * depth_of(n)}; }
CollectiveVolume volume_of_two(CollectiveKind, double bytes, int n) { return {bytes * (edges_of(n) + 1) / 2, 2 * depth_of(n)}; }

}  // namespace

AlgorithmEntry tree_algorithm() {
  return {.algorithm = Algorithm::Tree,
          .applies = of_all_reduce,
          .rounds = rounds_of_one,
          .phases = one_tree,
          .volume = volume_of_one};
}
AlgorithmEntry double_tree_algorithm() {
  return {.algorithm = Algorithm::DoubleTree,
          .applies = of_all_reduce,
          .rounds = rounds_of_two,
          .phases = two_trees,
          .volume = volume_of_two};
}

}  // namespace foreshard
