#include "core/network/collective_rounds.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"

namespace foreshard {

namespace {

using Members = std::vector<int>;  // of a ring, in order

bool reduces_and_spreads(CollectiveKind kind) { return kind == CollectiveKind::AllReduce; }
bool is_half(CollectiveKind kind) { return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather; }

// What several rings do at the same time is one round.
void join(std::vector<MessageRound>& rounds, std::size_t at, MessageRound more) {
  if (rounds.size() <= at) rounds.resize(at + 1);
  rounds[at].insert(rounds[at].end(), more.begin(), more.end());
}

// From round `first` on: n - 1 rounds after which ring[i] has the sum of slices[i], or, from there, everybody has all of them.
void ring_pass(std::vector<MessageRound>& rounds, std::size_t first, const Members& ring,
               const std::vector<std::vector<int>>& slices, bool adds) {
  const int n = static_cast<int>(ring.size());
  for (int t = 0; t + 1 < n; ++t)
    for (int i = 0; i < n; ++i) {
      const int which = ((i - t - (adds ? 1 : 0)) % n + n) % n;
      for (const int slice : slices[static_cast<std::size_t>(which)])
        join(rounds, first + static_cast<std::size_t>(t),
             {{.from = ring[static_cast<std::size_t>(i)],
               .to = ring[static_cast<std::size_t>((i + 1) % n)],
               .slice = slice,
               .adds = adds}});
    }
}

// Everybody in order of the group, one slice each.
void whole_ring(CollectiveRounds& out, int n, bool reduces, bool spreads) {
  Members ring;
  std::vector<std::vector<int>> slices;
  for (int i = 0; i < n; ++i) ring.push_back(i), slices.push_back({i});
  if (reduces) ring_pass(out.rounds, 0, ring, slices, true);
  if (spreads) ring_pass(out.rounds, out.rounds.size(), ring, slices, false);
}

// Slice after slice along the chain: broadcast 0 1 ... n-1, reduce 1 2 ... n-1 0.
void chain(CollectiveRounds& out, int n, bool towards_first) {
  for (int slice = 0; slice < n; ++slice)
    for (int hop = 0; hop + 1 < n; ++hop) {
      const int from = hop + (towards_first ? 1 : 0);
      join(out.rounds, static_cast<std::size_t>(slice + hop),
           {{.from = from, .to = (from + 1) % n, .slice = slice, .adds = towards_first}});
    }
}

// Rows of `columns` members: rings along the rows, then along the columns. Slice m belongs to member m at the turn.
void grid(CollectiveRounds& out, int n, int columns, CollectiveKind kind) {
  const int rows = n / columns;
  const auto member = [&](int row, int column) { return row * columns + column; };
  const auto along_rows = [&](bool adds) {
    const std::size_t first = out.rounds.size();
    for (int row = 0; row < rows; ++row) {
      Members ring;
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
      Members ring;
      std::vector<std::vector<int>> slices;
      for (int row = 0; row < rows; ++row) ring.push_back(member(row, column)), slices.push_back({member(row, column)});
      ring_pass(out.rounds, first, ring, slices, adds);
    }
  };
  if (kind != CollectiveKind::AllGather) along_rows(true), along_columns(true);
  if (kind != CollectiveKind::ReduceScatter) along_columns(false), along_rows(false);
}

int depth_of(int node) { return static_cast<int>(std::bit_width(static_cast<unsigned>(node + 1))) - 1; }

// Node i hangs below node (i - 1) / 2; mirrored, the nodes are counted from the end. Members of a node are a chain to its first one.
void tree(CollectiveRounds& out, int n, int per_node, int slice, bool mirrored) {
  const int nodes = n / per_node, depth = depth_of(nodes - 1);
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
      if (depth_of(node) == level) round.push_back({head(node), head((node - 1) / 2), slice, true});
    up.push_back(round);
  }
  for (std::size_t t = 0; t < up.size(); ++t) join(out.rounds, t, up[t]);
  for (std::size_t t = 0; t < up.size(); ++t) {
    MessageRound down = up[up.size() - 1 - t];
    for (SliceMessage& message : down) std::swap(message.from, message.to), message.adds = false;
    join(out.rounds, up.size() + t, down);
  }
}

void serve(CollectiveRounds& out, int n, int servers) {
  MessageRound push, pull;
  for (int server = 0; server < servers; ++server)
    for (int worker = 0; worker < n; ++worker) {
      if (worker == server) continue;
      push.push_back({worker, server, server, true});
      pull.push_back({server, worker, server, false});
    }
  out.rounds = {push, pull};
}

int per_node_of(const Collective& collective, int members) {
  const int k = collective.servers;
  return k > 1 && members % k == 0 ? k : 1;
}

}  // namespace

int grid_columns(int members) {
  for (int columns = 1; columns < members; ++columns)
    if (columns * columns >= members && members % columns == 0) return columns;
  return members;
}

bool algorithm_applies(const Collective& collective, int members) {
  const CollectiveKind kind = collective.kind;
  switch (collective.algorithm) {
    case Algorithm::Ring: return true;
    case Algorithm::Tree:
    case Algorithm::DoubleTree:
    case Algorithm::ParameterServer:
    case Algorithm::GatherToRoot: return reduces_and_spreads(kind);
    case Algorithm::NvlinkSharp: return reduces_and_spreads(kind) || is_half(kind);
    case Algorithm::Hierarchical: {
      const int k = per_node_of(collective, members);
      return (reduces_and_spreads(kind) || is_half(kind)) && k > 1 && k < members;
    }
    case Algorithm::TwoDimensional: return (reduces_and_spreads(kind) || is_half(kind)) && grid_columns(members) < members;
  }
  return false;
}

CollectiveRounds collective_rounds(const Collective& collective, int members) {
  CollectiveRounds out{.slices = members};
  const CollectiveKind kind = collective.kind;
  if (members < 2 || kind == CollectiveKind::AllToAll) return out;
  switch (algorithm_applies(collective, members) ? collective.algorithm : Algorithm::Ring) {
    case Algorithm::Ring:
      if (kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce)
        chain(out, members, kind == CollectiveKind::Reduce);
      else
        whole_ring(out, members, kind != CollectiveKind::AllGather, kind != CollectiveKind::ReduceScatter);
      return out;
    case Algorithm::Tree:
      out.slices = 1;
      tree(out, members, per_node_of(collective, members), 0, false);
      return out;
    case Algorithm::DoubleTree:
      out.slices = 2;
      tree(out, members, per_node_of(collective, members), 0, false);
      tree(out, members, per_node_of(collective, members), 1, true);
      return out;
    case Algorithm::Hierarchical: grid(out, members, per_node_of(collective, members), kind); return out;
    case Algorithm::TwoDimensional: grid(out, members, grid_columns(members), kind); return out;
    case Algorithm::ParameterServer:
    case Algorithm::GatherToRoot:
      out.slices = collective.algorithm == Algorithm::GatherToRoot ? 1 : std::clamp(collective.servers, 1, members);
      serve(out, members, out.slices);
      return out;
    case Algorithm::NvlinkSharp: return out;
  }
  return out;
}

}  // namespace foreshard
