// Two-level: an all-to-all inside the nodes, then one between the members with the same place on each node (Tutel's two-dimensional
// hierarchical all-to-all, arXiv:2206.03382, section 3.3). Between nodes as many bytes as directly, but in n / k times fewer messages for
// k members a node; inside a node each byte that leaves it moves once more.
#include <algorithm>

#include "core/network/algorithms.h"

namespace foreshard {

namespace {

using namespace algorithms;

std::vector<CollectiveFlow> two_level(const Network& network, const Collective& collective, const Devices& members) {
  Devices sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const std::vector<Devices> nodes = by_node(network, sorted);
  const std::size_t k = nodes.front().size(), n = nodes.size();
  const bool equal = std::all_of(nodes.begin(), nodes.end(), [&](const Devices& node) { return node.size() == k; });
  if (k < 2 || n < 2 || !equal) return ring_phases(network, collective, members);
  FlowBuilder inside(network), between(network);
  for (const Devices& node : nodes)
    for (const DeviceId from : node)
      for (const DeviceId to : node)
        if (from != to) inside.hop(from, to);
  for (std::size_t place = 0; place < k; ++place)
    for (const Devices& from : nodes)
      for (const Devices& to : nodes)
        if (&from != &to) between.hop(from[place], to[place]);
  const double held = full(collective);
  return {inside.done(held / static_cast<double>(k), static_cast<int>(k) - 1),
          between.done(held / static_cast<double>(n), static_cast<int>(n) - 1)};
}

bool is_all_to_all(CollectiveKind kind, int, int) { return kind == CollectiveKind::AllToAll; }

}  // namespace

AlgorithmEntry two_level_algorithm() {
  return {.algorithm = Algorithm::TwoLevel,
          .applies = is_all_to_all,
          .phases = two_level,
          .volume = ring_volume,
          .compared = false};
}

}  // namespace foreshard
