#include "strategy/cost/settle_algorithms.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/network/algorithms.h"
#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "strategy/cost/communication_path.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

static std::vector<std::int32_t> over_nodes(const Network& network, const std::vector<DeviceId>& members) {
  std::map<int, int> seen;  // [node]: members so far
  std::vector<std::pair<int, std::int32_t>> order;
  for (std::size_t m = 0; m < members.size(); ++m)
    order.emplace_back(seen[network.node(members[m])]++, static_cast<std::int32_t>(m));
  std::ranges::stable_sort(order, {}, &std::pair<int, std::int32_t>::first);
  std::vector<std::int32_t> all;
  for (const auto& [turn, member] : order) all.push_back(member);
  return all;
}

std::vector<std::int32_t> server_places(const Network& network, const std::vector<DeviceId>& members, int servers,
                                        ServerPlacement placement) {
  const auto n = static_cast<std::int64_t>(members.size());
  const std::int64_t k = std::min<std::int64_t>(servers, n);
  std::vector<std::int32_t> places(static_cast<std::size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  if (placement == ServerPlacement::Nodes) places = over_nodes(network, members);
  if (placement == ServerPlacement::Spread)
    for (std::int64_t s = 0; s < k; ++s) places[static_cast<std::size_t>(s)] = static_cast<std::int32_t>(s * n / k);
  places.resize(static_cast<std::size_t>(k));
  return places;
}

namespace {

using Devices = std::vector<DeviceId>;

class Settling {
 public:
  Settling(const Plan& plan, const Cluster& cluster) : network_(cluster), ranks_(plan), roles_(plan.segments.size()) {
    for (std::size_t r = 0; r < plan.roles.size(); ++r)
      for (const Action& action : plan.roles[r].actions) {
        std::vector<RoleId>& of = roles_[action.segment.index()];
        const RoleId role{static_cast<std::int32_t>(r)};
        if (std::ranges::find(of, role) == of.end()) of.push_back(role);
      }
  }

  // The devices of a group as the first rank of each role that runs the segment sees it.
  const std::vector<Devices>& places(std::size_t segment, GroupId group) {
    std::vector<Devices>& known = places_[{segment, group}];
    if (known.empty())
      for (const RoleId role : roles_[segment]) {
        Devices devices;
        for (const RankId member : ranks_.members(group, ranks_.first(role))) devices.push_back(ranks_.device(member));
        known.push_back(std::move(devices));
      }
    return known;
  }

  bool applies(const Collective& what, const std::vector<Devices>& places) const {
    return std::ranges::all_of(places, [&](const Devices& devices) {
      if (!algorithm_applies(what, static_cast<int>(devices.size()))) return false;
      const int node = network_.node(devices.front());
      const bool one_node = std::ranges::all_of(devices, [&](DeviceId device) { return network_.node(device) == node; });
      return what.algorithm != Algorithm::NvlinkSharp || (one_node && network_.node_shape(node).nvlink_sharp);
    });
  }

  // Collective::servers of the algorithm: the number of parameter servers; for hierarchies and trees, the members per node if they are
  // consecutive and equally many on each node; else 1.
  int number(const Collective& what, const std::vector<Devices>& places, int servers) const {
    int number = 0;
    for (const Devices& devices : places) {
      const int members = static_cast<int>(devices.size());
      int own = 1;
      if (what.algorithm == Algorithm::ParameterServer) own = servers == 0 ? members : std::min(servers, members);
      if (what.algorithm == Algorithm::Hierarchical || what.algorithm == Algorithm::Tree ||
          what.algorithm == Algorithm::DoubleTree)
        own = per_node(devices);
      if (number > 0 && own != number) return 1;
      number = own;
    }
    return std::max(1, number);
  }

  Seconds alone(const Collective& what, const std::vector<Devices>& places) const {
    Seconds longest = {};
    for (const Devices& devices : places) {
      const CommunicationPath path = communication_path(network_, what, devices);
      const Cost cost = collective_cost(network_.gpu(devices.front()), what, path);
      longest = max(longest, to_seconds(cost.busy) + path.flow * cost.wire_factor);
    }
    return longest;
  }

  Collective settled(Collective what, const std::vector<Devices>& places, const CommunicationChoice& choice) const {
    what.servers = number(what, places, choice.servers);
    what.served_by.clear();
    if (!applies(what, places)) what.algorithm = Algorithm::Ring, what.servers = 1;
    if (what.algorithm == Algorithm::ParameterServer)
      what.served_by = served_by(what.servers, places.front(), choice.server_placement);
    return what;
  }

  // The first of `algorithms` with the least isolated time; the first one applies to everything.
  Collective cheapest(Collective what, const std::vector<Devices>& places, const CommunicationChoice& choice,
                      const std::vector<Algorithm>& algorithms) const {
    Collective best = what;
    Seconds least = {};
    for (const Algorithm algorithm : algorithms) {
      what.algorithm = algorithm;
      const Collective as = settled(what, places, choice);
      if (as.algorithm != algorithm || (algorithm == Algorithm::ParameterServer && what.kind != CollectiveKind::AllReduce))
        continue;
      const Seconds time = alone(as, places);
      if (algorithm == algorithms.front() || time < least) best = as, least = time;
    }
    return best;
  }

  // Whether every instance of the group is on more than `nodes` nodes.
  bool on_more_than(int nodes, const std::vector<Devices>& places) const {
    return std::ranges::all_of(places, [&](const Devices& devices) {
      std::set<int> of;
      return std::ranges::any_of(devices, [&](DeviceId device) {
        of.insert(network_.node(device));
        return static_cast<int>(of.size()) > nodes;
      });
    });
  }

 private:
  // The members that serve, in the order of the parts; empty: the first ones.
  std::vector<std::int32_t> served_by(int servers, const Devices& members, ServerPlacement placement) const {
    std::vector<std::int32_t> places = server_places(network_, members, servers, placement);
    for (std::size_t s = 0; s < places.size(); ++s)
      if (places[s] != static_cast<std::int32_t>(s)) return places;
    return {};
  }
  int per_node(const Devices& devices) const {
    std::size_t length = 0;
    for (std::size_t begin = 0, end = 0; begin < devices.size(); begin = end) {
      while (end < devices.size() && network_.node(devices[end]) == network_.node(devices[begin])) ++end;
      if (length > 0 && end - begin != length) return 1;
      length = end - begin;
    }
    return static_cast<int>(length);
  }

  Network network_;
  Ranks ranks_;
  std::vector<std::vector<RoleId>> roles_ = {};  // [segment]
  std::map<std::pair<std::size_t, GroupId>, std::vector<Devices>> places_ = {};
};

bool has_rounds(const Collective& what) { return what.kind != CollectiveKind::AllToAll; }

// The algorithms that `auto` compares.
std::vector<Algorithm> compared() {
  std::vector<Algorithm> all;
  for (const AlgorithmEntry& entry : algorithm_table())
    if (entry.compared) all.push_back(entry.algorithm);
  return all;
}

constexpr int kFewNodes = 4;  // on so few nodes NCCL's trees send other amounts than ours

}  // namespace

void settle_algorithms(Plan& plan, const Cluster& cluster, const Strategy& strategy) {
  const CommunicationChoice& choice = strategy.communication;
  const bool nccl = choice.algorithm == Algorithm::Ring && framework_preset(strategy.framework).messages.nccl_chooses;
  if (choice.algorithm == Algorithm::Ring && (!nccl || node_count(cluster) <= kFewNodes)) return;
  const std::vector<Algorithm> algorithms = nccl ? std::vector{Algorithm::Ring, Algorithm::DoubleTree} : compared();
  Settling settling(plan, cluster);
  std::map<std::tuple<std::vector<Devices>, CollectiveKind, Bytes>, Collective> known;
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (Instruction& run : plan.segments[s].instructions) {
      auto* what = std::get_if<Collective>(&run.what);
      if (!what || !has_rounds(*what) || (nccl && what->kind != CollectiveKind::AllReduce)) continue;
      const std::vector<Devices>& places = settling.places(s, what->group);
      if (places.empty() || (nccl && !settling.on_more_than(kFewNodes, places))) continue;
      if (choice.algorithm && !nccl) {
        *what = settling.settled(*what, places, choice);
        continue;
      }
      const auto [best, fresh] = known.try_emplace({places, what->kind, what->bytes});
      if (fresh) best->second = settling.cheapest(*what, places, choice, algorithms);
      what->algorithm = best->second.algorithm, what->servers = best->second.servers;
      what->served_by = best->second.served_by;
    }
}

std::vector<SettledCollective> settled_collectives(const Plan& plan, const Cluster& cluster) {
  Settling settling(plan, cluster);
  std::vector<SettledCollective> all;
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (const Instruction& run : plan.segments[s].instructions) {
      const auto* what = std::get_if<Collective>(&run.what);
      const bool known = what && std::ranges::any_of(all, [&](const SettledCollective& other) {
                           return other.what == *what && other.name == run.name;
                         });
      if (!what || known || settling.places(s, what->group).empty()) continue;
      const std::vector<Devices>& places = settling.places(s, what->group);
      all.push_back({.name = run.name,
                     .group = plan.groups[what->group.index()].name,
                     .what = *what,
                     .members = static_cast<int>(places.front().size()),
                     .alone = settling.alone(*what, places)});
    }
  return all;
}

}  // namespace foreshard
