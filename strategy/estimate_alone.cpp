#include "strategy/estimate_alone.h"

#include <algorithm>
#include <unordered_map>

namespace foreshard {

namespace {

using Loads = std::unordered_map<std::int32_t, double>;  // bytes by link; only looked up, never listed

double slowest(const Network& network, const std::vector<LinkId>& links, const Loads& loads) {
  double longest = 0;
  for (const LinkId link : links) longest = std::max(longest, loads.at(link.value) / network.link(link).bandwidth.value);
  return longest;
}

}  // namespace

std::vector<RankId> AloneTimes::neighbours(RoleId role) const {
  const RankId first = ranks_.first(role);
  const int node = network_.node(ranks_.device(first));
  std::vector<RankId> here;
  for (int i = 0; i < ranks_.count(role); ++i) {
    const RankId rank{first.value + i};
    if (network_.node(ranks_.device(rank)) == node) here.push_back(rank);
  }
  return here;
}

// Phase by phase: what all instances that share the first rank's node put on the links of its own instance.
double AloneTimes::measure(RoleId role, const Collective& what) const {
  std::vector<std::vector<CollectiveFlow>> instances;
  std::vector<RankId> seen;
  for (const RankId rank : neighbours(role)) {
    const std::vector<RankId> members = ranks_.members(what.group, rank);
    if (members.empty() || std::find(seen.begin(), seen.end(), members.front()) != seen.end()) continue;
    seen.push_back(members.front());
    std::vector<DeviceId> devices;
    for (const RankId member : members) devices.push_back(ranks_.device(member));
    instances.push_back(collective_phases(network_, what, devices));
  }
  if (instances.empty()) return 0;
  double seconds = 0;
  for (std::size_t phase = 0; phase < instances.front().size(); ++phase) {
    Loads loads;
    for (const auto& instance : instances)
      if (phase < instance.size())
        for (const LinkId link : instance[phase].links) loads[link.value] += instance[phase].bytes;
    seconds += slowest(network_, instances.front()[phase].links, loads);
  }
  return seconds;
}

// Bytes only scale the flows, so one size per kind of collective is measured.
double AloneTimes::wire(RoleId role, const Collective& what) {
  for (const Known& known : known_)
    if (known.role == role && known.what.kind == what.kind && known.what.algorithm == what.algorithm &&
        known.what.group == what.group && known.what.bytes.value > 0)
      return known.seconds * static_cast<double>(what.bytes.value) / static_cast<double>(known.what.bytes.value);
  known_.push_back({role, what, measure(role, what)});
  return known_.back().seconds;
}

double AloneTimes::hop(RoleId role, const Peer& peer) {
  for (const KnownHop& known : hops_)
    if (known.role == role && known.peer == peer) return known.seconds_per_byte;
  Loads loads;
  std::vector<LinkId> own;
  for (const RankId rank : neighbours(role)) {
    const RankId other = ranks_.peer(rank, peer);
    if (!other.valid()) continue;
    const Route route = network_.route(ranks_.device(rank), ranks_.device(other));
    for (const LinkId link : route.links) loads[link.value] += 1;
    if (rank == ranks_.first(role)) own.assign(route.links.begin(), route.links.end());
  }
  hops_.push_back({role, peer, slowest(network_, own, loads)});
  return hops_.back().seconds_per_byte;
}

double AloneTimes::receive(RoleId role, const Exchange& what, const Cost& cost) {
  return to_seconds(cost.busy).value + cost.wire_factor * hop(role, *what.from) * static_cast<double>(what.bytes.value);
}

double AloneTimes::duration(RoleId role, const Instruction& instruction, const Cost& cost) {
  const double busy = to_seconds(cost.busy).value;
  if (const auto* what = std::get_if<Collective>(&instruction.what)) return busy + cost.wire_factor * wire(role, *what);
  if (const auto* what = std::get_if<Exchange>(&instruction.what)) {
    if (!what->to) return 0;
    return busy + cost.wire_factor * hop(role, *what->to) * static_cast<double>(what->bytes.value);
  }
  return busy;
}

}  // namespace foreshard
