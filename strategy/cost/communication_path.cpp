#include "strategy/cost/communication_path.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

namespace foreshard {

static constexpr Bytes kReferenceBytes{std::int64_t{1} << 30};  // paths are kept for a collective of so many

// Of links that are busy equally long, the one with the lowest id.
static void busiest_link(const Network& network, const CollectiveFlow& flow, CommunicationPath& path, Seconds& slowest) {
  BusyLink busiest;
  CommunicationPath::Phase phase;
  for (const BusyLink& link : busy_links(network, flow)) {
    Seconds& of_kind = network.link(link.id).kind == LinkKind::NvLink ? phase.nvlink : phase.others;
    of_kind = max(of_kind, link.busy);
    if (link.busy > busiest.busy) busiest = link;
  }
  path.flow = path.flow + busiest.busy;
  if (!(busiest.busy > Seconds{})) return;
  add_phase(path, phase);
  path.bytes += flow.bytes * busiest.times;
  if (!(busiest.busy > slowest)) return;
  slowest = busiest.busy;
  path.link = network.link(busiest.id).kind;
  path.bandwidth = network.link(busiest.id).rate();
}

// Between the first two members that share a node, the kind whose latency NCCL counts: NVLink, unless the route takes another one.
static LinkKind inside_link(const Network& network, const std::vector<DeviceId>& devices) {
  std::unordered_map<int, DeviceId> seen;
  for (const DeviceId device : devices) {
    const auto [first, fresh] = seen.try_emplace(network.node(device), device);
    if (fresh) continue;
    for (const LinkId link : network.route(first->second, device).links)
      if (network.link(link).kind != LinkKind::NvLink) return network.link(link).kind;
    return LinkKind::NvLink;
  }
  return LinkKind::NvLink;
}

// Of an all-to-all, what the first member sends over NVLink to the others of its node.
static Seconds inside_of(const Network& network, const Collective& what, const std::vector<DeviceId>& devices) {
  const double part = static_cast<double>(what.bytes.value) / static_cast<double>(devices.size());
  Seconds time = {};
  for (const DeviceId other : devices) {
    if (other == devices.front() || network.node(other) != network.node(devices.front())) continue;
    const Route route = network.route(devices.front(), other);
    if (!route.links.empty() && network.link(route.links[0]).kind == LinkKind::NvLink)
      time += Bytes{std::llround(part)} / route.rate;
  }
  return time;
}

static CommunicationPath found_path(const Network& network, const Collective& what, const std::vector<DeviceId>& devices) {
  std::vector<int> nodes;
  for (const DeviceId device : devices) nodes.push_back(network.node(device));
  std::sort(nodes.begin(), nodes.end());
  CommunicationPath path{.members = static_cast<int>(devices.size()),
                         .nodes = static_cast<int>(std::unique(nodes.begin(), nodes.end()) - nodes.begin())};
  Seconds slowest;
  for (const CollectiveFlow& phase : collective_phases(network, what, devices)) {
    path.steps += phase.steps;
    path.step_latency = max(path.step_latency, phase.step_latency);
    busiest_link(network, phase, path, slowest);
  }
  if (path.nodes > 1) path.inside_link = inside_link(network, devices);
  if (what.kind == CollectiveKind::AllToAll && path.nodes > 1) path.inside = inside_of(network, what, devices);
  return path;
}

namespace {

// What the path of a collective depends on besides its bytes.
struct PathKey {
  CollectiveKind kind = {};
  Algorithm algorithm = {};
  int servers = 0;
  std::vector<std::int32_t> served_by = {};
  std::vector<DeviceId> devices = {};
  auto operator<=>(const PathKey&) const = default;
};

// The paths that plans for one network asked for.
class KnownPaths {
 public:
  const CommunicationPath& of(const Network& network, const Collective& what, const std::vector<DeviceId>& devices) {
    if (!network_ || !network_->same_as(network) || paths_.size() > kMostPaths) network_ = network, paths_.clear();
    const auto [known, fresh] = paths_.try_emplace({what.kind, what.algorithm, what.servers, what.served_by, devices});
    if (fresh) {
      Collective reference = what;
      reference.bytes = kReferenceBytes;
      known->second = found_path(network, reference, devices);
    }
    return known->second;
  }

 private:
  static constexpr std::size_t kMostPaths = 20'000;  // then it begins anew, so that a long search does not fill the memory
  std::optional<Network> network_ = {};
  std::map<PathKey, CommunicationPath> paths_ = {};
};

}  // namespace

CommunicationPath communication_path(const Network& network, const Collective& what, const std::vector<DeviceId>& devices) {
  thread_local KnownPaths known;
  return part_of(known.of(network, what, devices),
                 static_cast<double>(what.bytes.value) / static_cast<double>(kReferenceBytes.value));
}

CommunicationPath part_of(CommunicationPath path, double share) {
  path.bytes *= share, path.flow = path.flow * share, path.inside = path.inside * share;
  for (CommunicationPath::Phase& phase : path.phases) phase = {phase.nvlink * share, phase.others * share};
  return path;
}

CommunicationPath route_path(const Network& network, DeviceId from, DeviceId to, Bytes bytes) {
  const Route route = network.route(from, to);
  CommunicationPath path{.members = 2,
                         .nodes = network.node(from) == network.node(to) ? 1 : 2,
                         .steps = 1,
                         .step_latency = route.latency,
                         .bytes = static_cast<double>(bytes.value),
                         .bandwidth = route.rate};
  if (route.rate.value > 0) path.flow = bytes / route.rate;
  CommunicationPath::Phase phase;
  for (const LinkId id : route.links) {
    const NetworkLink link = network.link(id);
    if (link.rate() == route.rate) path.link = link.kind;
    Seconds& of_kind = link.kind == LinkKind::NvLink ? phase.nvlink : phase.others;
    of_kind = max(of_kind, bytes / link.rate());
  }
  add_phase(path, phase);
  return path;
}

}  // namespace foreshard
