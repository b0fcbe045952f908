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

std::vector<CollectiveFlow> collective_phases(const Network& network, const Collective& collective,
                                              const std::vector<DeviceId>& members) {
  const int n = static_cast<int>(members.size());
  if (n < 2) return {};
  // `phases` sees on the network which members share a node, so `applies` is asked only about kind and number of members.
  const AlgorithmEntry& entry = algorithm_entry(collective.algorithm);
  const bool of_kind = entry.applies(collective.kind, n, std::max(1, n / 2));
  return of_kind ? entry.phases(network, collective, members) : algorithms::ring_phases(network, collective, members);
}

CollectiveVolume collective_volume(CollectiveKind kind, Algorithm algorithm, Bytes size, int n) {
  if (n < 2) return {};
  const double bytes = static_cast<double>(size.value);
  const AlgorithmEntry& entry = algorithm_entry(algorithm);
  const bool of_kind = entry.applies(kind, n, std::max(1, n / 2));
  return of_kind ? entry.volume(kind, bytes, n) : algorithms::ring_volume(kind, bytes, n);
}

}  // namespace foreshard
