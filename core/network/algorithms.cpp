#include "core/network/algorithms.h"

#include <algorithm>

#include "core/base/error.h"

namespace foreshard {

AlgorithmEntry ring_algorithm();
AlgorithmEntry tree_algorithm();
AlgorithmEntry double_tree_algorithm();
AlgorithmEntry hierarchical_algorithm();
AlgorithmEntry two_dimensional_algorithm();
AlgorithmEntry nvlink_sharp_algorithm();
AlgorithmEntry parameter_server_algorithm();
AlgorithmEntry gather_to_root_algorithm();
AlgorithmEntry two_level_algorithm();

const std::vector<AlgorithmEntry>& algorithm_table() {
  static const std::vector<AlgorithmEntry> table = {ring_algorithm(),
                                                    tree_algorithm(),
                                                    double_tree_algorithm(),
                                                    hierarchical_algorithm(),
                                                    two_dimensional_algorithm(),
                                                    nvlink_sharp_algorithm(),
                                                    parameter_server_algorithm(),
                                                    gather_to_root_algorithm(),
                                                    two_level_algorithm()};
  return table;
}

const AlgorithmEntry& algorithm_entry(Algorithm algorithm) {
  const auto found = std::ranges::find(algorithm_table(), algorithm, &AlgorithmEntry::algorithm);
  FS_ASSERT(found != algorithm_table().end());
  return *found;
}

static int per_node_of(const Collective& collective, int members) {
  const int k = collective.servers;
  return k > 1 && members % k == 0 ? k : 1;
}

bool algorithm_applies(const Collective& collective, int members) {
  return algorithm_entry(collective.algorithm).applies(collective.kind, members, per_node_of(collective, members));
}

int grid_columns(int members) {
  for (int columns = 1; columns < members; ++columns)
    if (columns * columns >= members && members % columns == 0) return columns;
  return members;
}

CollectiveRounds collective_rounds(const Collective& collective, int members) {
  CollectiveRounds out{.slices = members};
  if (members < 2 || collective.kind == CollectiveKind::AllToAll) return out;
  const Algorithm algorithm = algorithm_applies(collective, members) ? collective.algorithm : Algorithm::Ring;
  const AlgorithmEntry& entry = algorithm_entry(algorithm);
  if (entry.rounds) entry.rounds(out, collective, members, per_node_of(collective, members));
  return out;
}

std::vector<BusyLink> busy_links(const Network& network, const CollectiveFlow& flow) {
  std::vector<LinkId> links = flow.links;
  std::ranges::sort(links, {}, &LinkId::value);
  std::vector<BusyLink> busy;
  for (const LinkId link : links) {
    if (busy.empty() || busy.back().id.value != link.value) busy.push_back({.id = link});
    ++busy.back().times;
  }
  for (BusyLink& each : busy) each.busy = Seconds{flow.bytes * each.times / network.link(each.id).rate().value};
  return busy;
}

// How long the links are busy with the phases alone, and whether the network is busy longest.
struct LoneFlow {
  double seconds = 0;
  bool network = false;
};

static LoneFlow lone_flow(const Network& network, const std::vector<CollectiveFlow>& phases) {
  LoneFlow flow;
  double longest = 0;
  for (const CollectiveFlow& phase : phases) {
    double inside = 0, across = 0;
    for (const BusyLink& link : busy_links(network, phase)) {
      double& busy = network.link(link.id).kind == LinkKind::Network ? across : inside;
      busy = std::max(busy, link.busy.value);
    }
    flow.seconds += std::max(inside, across);
    if (std::max(inside, across) > longest) longest = std::max(inside, across), flow.network = across >= inside;
  }
  return flow;
}

std::vector<CollectiveFlow> collective_phases(const Network& network, const Collective& collective,
                                              const std::vector<DeviceId>& members) {
  const int n = static_cast<int>(members.size());
  if (n < 2) return {};
  // `phases` sees on the network which members share a node, so `applies` is asked only about kind and number of members.
  const AlgorithmEntry& entry = algorithm_entry(collective.algorithm);
  const bool all_serve = collective.algorithm == Algorithm::ParameterServer && collective.servers == n;
  const bool of_kind = entry.applies(collective.kind, n, all_serve ? n : std::max(1, n / 2));
  const auto phases = of_kind ? entry.phases : algorithms::ring_phases;
  std::vector<CollectiveFlow> best = phases(network, collective, members);
  const auto elsewhere = [&](DeviceId member) { return network.node(member) != network.node(members.front()); };
  const int nics = network.most_nics();
  if (nics < 2 || std::ranges::none_of(members, elsewhere)) return best;
  LoneFlow least = lone_flow(network, best);
  for (int every = 2; every <= nics && !least.network; every *= 2) {
    std::vector<CollectiveFlow> fewer = phases(network.with_every_nic(every), collective, members);
    const LoneFlow flow = lone_flow(network, fewer);
    if (flow.seconds < least.seconds * (1 - 1e-9)) least = flow, best = std::move(fewer);
  }
  return best;
}

CollectiveVolume collective_volume(CollectiveKind kind, Algorithm algorithm, Bytes size, int n) {
  if (n < 2) return {};
  const double bytes = static_cast<double>(size.value);
  const AlgorithmEntry& entry = algorithm_entry(algorithm);
  const bool of_kind = entry.applies(kind, n, std::max(1, n / 2));
  return of_kind ? entry.volume(kind, bytes, n) : algorithms::ring_volume(kind, bytes, n);
}

}  // namespace foreshard
