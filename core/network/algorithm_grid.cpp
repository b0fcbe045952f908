// Hierarchical and two-dimensional: rings along the rows of a grid of members, then along its columns. In Hierarchical, a row is a node.
#include <algorithm>

#include "core/network/algorithms.h"

namespace foreshard {

namespace {

using namespace algorithms;

// Rings inside the rows and rings along the columns of a grid of members. A reduction starts with the rows, a gather with the columns.
// `inside`: the hops of all rows, each of `shares` rings.
std::vector<CollectiveFlow> grid(const Network& network, const Collective& collective, const std::vector<Devices>& rows,
                                 FlowBuilder inside, int shares) {
  const bool splits = collective.kind != CollectiveKind::AllGather, joins = collective.kind != CollectiveKind::ReduceScatter;
  const bool reduces = collective.kind == CollectiveKind::AllReduce;
  const std::size_t k = rows.front().size(), m = rows.size();
  const int inner = static_cast<int>(k), outer = static_cast<int>(m);
  const CollectiveFlow within = inside.done(full(collective) * (inner - 1) / inner / shares, inner - 1);
  FlowBuilder across(network);
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t row = 0; row < m; ++row) across.hop(rows[row][i], rows[(row + 1) % m][i]);
  const CollectiveFlow between =
      across.done(full(collective) / inner * (reduces ? 2 : 1) * (outer - 1) / outer, (reduces ? 2 : 1) * (outer - 1));
  std::vector<CollectiveFlow> phases;
  if (splits) phases.push_back(within);
  phases.push_back(between);
  if (joins) phases.push_back(within);
  return phases;
}

std::vector<CollectiveFlow> hierarchical(const Network& network, const Collective& collective, const Devices& members) {
  Devices sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const std::vector<Devices> nodes = by_node(network, sorted);
  const std::size_t k = nodes.front().size();
  const bool equal = std::all_of(nodes.begin(), nodes.end(), [&](const Devices& node) { return node.size() == k; });
  if (k < 2 || nodes.size() < 2 || !equal || !is_shardwise(collective.kind)) return ring_phases(network, collective, members);
  FlowBuilder inside(network);
  int shares = 0;
  for (const Devices& node : nodes) {
    shares = 0;
    for (const RingOrder& ring : ring_orders(network, node)) {
      shares += ring.shares;
      for (std::size_t i = 0; i < k; ++i) inside.hop(ring.order[i], ring.order[(i + 1) % k], ring.shares);
    }
  }
  return grid(network, collective, nodes, std::move(inside), shares);
}

// The grid of core/network/collective_rounds.h, whatever nodes its members are on.
std::vector<CollectiveFlow> two_dimensional(const Network& network, const Collective& collective, const Devices& members) {
  const auto columns = static_cast<std::size_t>(grid_columns(static_cast<int>(members.size())));
  if (columns == members.size()) return ring_phases(network, collective, members);
  std::vector<Devices> rows;
  for (std::size_t i = 0; i < members.size(); i += columns)
    rows.emplace_back(members.begin() + static_cast<std::ptrdiff_t>(i),
                      members.begin() + static_cast<std::ptrdiff_t>(i + columns));
  FlowBuilder inside(network);
  for (const Devices& row : rows)
    for (std::size_t i = 0; i < columns; ++i) inside.hop(row[i], row[(i + 1) % columns]);
  return grid(network, collective, rows, std::move(inside), 1);
}

// Rows of `columns` members: rings along the rows, then along the columns. Between the adding and the copying half, member m has slice m.
void grid_rounds(CollectiveRounds& out, int n, int columns, CollectiveKind kind) {
  const int rows = n / columns;
  const auto member = [&](int row, int column) { return row * columns + column; };
  const auto along_rows = [&](bool adds) {
    const std::size_t first = out.rounds.size();
    for (int row = 0; row < rows; ++row) {
      std::vector<int> ring;
      std::vector<std::vector<int>> slices(static_cast<std::size_t>(columns));
      for (int column = 0; column < columns; ++column) {
        ring.push_back(member(row, column));
        for (int other = 0; other < rows; ++other) slices[static_cast<std::size_t>(column)].push_back(member(other, column));
      }
      ring_pass(out.rounds, first, ring, slices, adds);
    }
  };
  const auto along_columns = [&](bool adds) {
    const std::size_t first = out.rounds.size();
    for (int column = 0; column < columns; ++column) {
      std::vector<int> ring;
      std::vector<std::vector<int>> slices;
      for (int row = 0; row < rows; ++row) ring.push_back(member(row, column)), slices.push_back({member(row, column)});
      ring_pass(out.rounds, first, ring, slices, adds);
    }
  };
  if (kind != CollectiveKind::AllGather) along_rows(true), along_columns(true);
  if (kind != CollectiveKind::ReduceScatter) along_columns(false), along_rows(false);
}

bool has_nodes(CollectiveKind kind, int members, int per_node) {
  return is_shardwise(kind) && per_node > 1 && per_node < members;
}
bool has_rows(CollectiveKind kind, int members, int) { return is_shardwise(kind) && grid_columns(members) < members; }

void hierarchical_rounds(CollectiveRounds& out, const Collective& collective, int members, int per_node) {
  grid_rounds(out, members, per_node, collective.kind);
}
void two_dimensional_rounds(CollectiveRounds& out, const Collective& collective, int members, int) {
  grid_rounds(out, members, grid_columns(members), collective.kind);
}

CollectiveVolume two_dimensional_volume(CollectiveKind kind, double bytes, int n) {
  const int columns = grid_columns(n), rows = n / columns;
  CollectiveVolume volume = ring_volume(kind, bytes, n);
  if (rows > 1) volume.steps = (is_all_reduce(kind) ? 2 : 1) * (columns - 1 + rows - 1);
  return volume;
}

}  // namespace

AlgorithmEntry hierarchical_algorithm() {
  return {.algorithm = Algorithm::Hierarchical,
          .applies = has_nodes,
          .rounds = hierarchical_rounds,
          .phases = hierarchical,
          .volume = ring_volume};
}
AlgorithmEntry two_dimensional_algorithm() {
  return {.algorithm = Algorithm::TwoDimensional,
          .applies = has_rows,
          .rounds = two_dimensional_rounds,
          .phases = two_dimensional,
          .volume = two_dimensional_volume};
}

}  // namespace foreshard
