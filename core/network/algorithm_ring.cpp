// Ring: every member sends to the next one. It replaces any algorithm that does not apply.
#include <algorithm>

#include "core/network/algorithms.h"

namespace foreshard {

namespace algorithms {

void FlowBuilder::hop(DeviceId from, DeviceId to, int times) {
  const Route route = network_.route(from, to);
  for (int i = 0; i < times; ++i) flow_.links.insert(flow_.links.end(), route.links.begin(), route.links.end());
  flow_.step_latency = max(flow_.step_latency, route.latency);
}
CollectiveFlow FlowBuilder::done(double bytes, int steps) {
  flow_.bytes = bytes;
  flow_.steps = steps;
  return std::move(flow_);
}

static  // Closed rings. `volume` crosses every edge, spread over the rings by their shares.
    CollectiveFlow
    closed_ring(const Network& network, const std::vector<RingOrder>& rings, double volume, int steps) {
  FlowBuilder flow(network);
  int shares = 0;
  for (const RingOrder& ring : rings) {
    shares += ring.shares;
    for (std::size_t i = 0; i < ring.order.size(); ++i)
      flow.hop(ring.order[i], ring.order[(i + 1) % ring.order.size()], ring.shares);
  }
  return flow.done(volume / std::max(1, shares), steps);
}

static  // Rings opened at the root: broadcast away from it, reduce towards it.
    CollectiveFlow
    chain(const Network& network, std::vector<RingOrder> rings, DeviceId root, bool towards, double volume) {
  FlowBuilder flow(network);
  int shares = 0;
  std::size_t n = 0;
  for (RingOrder& ring : rings) {
    n = ring.order.size();
    std::rotate(ring.order.begin(), std::find(ring.order.begin(), ring.order.end(), root), ring.order.end());
    if (towards) std::rotate(ring.order.begin(), ring.order.begin() + 1, ring.order.end());
    shares += ring.shares;
    for (std::size_t i = 0; i + 1 < n; ++i) flow.hop(ring.order[i], ring.order[i + 1], ring.shares);
  }
  return flow.done(volume / std::max(1, shares), static_cast<int>(n) - 1);
}

static CollectiveFlow all_to_all(const Network& network, const Devices& members, double held) {
  FlowBuilder flow(network);
  for (const DeviceId from : members)
    for (const DeviceId to : members)
      if (from != to) flow.hop(from, to);
  const int n = static_cast<int>(members.size());
  return flow.done(held / n, n - 1);
}

static CollectiveFlow ring(const Network& network, const Collective& collective, const Devices& members) {
  const std::vector<RingOrder> rings = ring_orders(network, members);
  const int n = static_cast<int>(members.size());
  const double volume = ring_volume(collective.kind, full(collective), n).bytes;
  switch (collective.kind) {
    case CollectiveKind::AllReduce: return closed_ring(network, rings, volume, 2 * (n - 1));
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather: return closed_ring(network, rings, volume, n - 1);
    case CollectiveKind::Broadcast: return chain(network, rings, members.front(), false, volume);
    case CollectiveKind::Reduce: return chain(network, rings, members.front(), true, volume);
    case CollectiveKind::AllToAll: return all_to_all(network, members, full(collective));
  }
  return {};
}

std::vector<CollectiveFlow> ring_phases(const Network& network, const Collective& collective, const Devices& members) {
  return {ring(network, collective, members)};
}

CollectiveVolume ring_volume(CollectiveKind kind, double bytes, int n) {
  const double part = bytes * (n - 1) / n;
  switch (kind) {
    case CollectiveKind::AllReduce: return {2 * part, 2 * (n - 1)};
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather:
    case CollectiveKind::AllToAll: return {part, n - 1};
    case CollectiveKind::Broadcast:
    case CollectiveKind::Reduce: return {bytes, n - 1};
  }
  return {};
}

std::vector<Devices> by_node(const Network& network, const Devices& order) {
  std::vector<Devices> nodes;
  for (const DeviceId member : order) {
    if (nodes.empty() || network.node(nodes.back().front()) != network.node(member)) nodes.emplace_back();
    nodes.back().push_back(member);
  }
  return nodes;
}

void join(std::vector<MessageRound>& rounds, std::size_t at, const MessageRound& more) {
  if (rounds.size() <= at) rounds.resize(at + 1);
  rounds[at].insert(rounds[at].end(), more.begin(), more.end());
}

void ring_pass(std::vector<MessageRound>& rounds, std::size_t first, const std::vector<int>& ring,
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

// All members in the order of the group, one slice each.
static void whole_ring(CollectiveRounds& out, int n, bool reduces, bool spreads) {
  std::vector<int> ring;
  std::vector<std::vector<int>> slices;
  for (int i = 0; i < n; ++i) ring.push_back(i), slices.push_back({i});
  if (reduces) ring_pass(out.rounds, 0, ring, slices, true);
  if (spreads) ring_pass(out.rounds, out.rounds.size(), ring, slices, false);
}

// Slice after slice along the chain: broadcast 0 1 ... n-1, reduce 1 2 ... n-1 0.
static void chain_rounds(CollectiveRounds& out, int n, bool towards_first) {
  for (int slice = 0; slice < n; ++slice)
    for (int hop = 0; hop + 1 < n; ++hop) {
      const int from = hop + (towards_first ? 1 : 0);
      join(out.rounds, static_cast<std::size_t>(slice + hop),
           {{.from = from, .to = (from + 1) % n, .slice = slice, .adds = towards_first}});
    }
}

}  // namespace algorithms

static bool always(CollectiveKind, int, int) { return true; }

static void ring_rounds(CollectiveRounds& out, const Collective& collective, int members, int) {
  const CollectiveKind kind = collective.kind;
  if (kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce)
    algorithms::chain_rounds(out, members, kind == CollectiveKind::Reduce);
  else
    algorithms::whole_ring(out, members, kind != CollectiveKind::AllGather, kind != CollectiveKind::ReduceScatter);
}

AlgorithmEntry ring_algorithm() {
  return {.algorithm = Algorithm::Ring,
          .applies = always,
          .rounds = ring_rounds,
          .phases = algorithms::ring_phases,
          .volume = algorithms::ring_volume};
}

}  // namespace foreshard
