#include "replay/flows.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace foreshard::player {
namespace {

// Large enough that what collective_phases makes of it is exact to the last bit per byte.
constexpr std::int64_t kProbe = std::int64_t{1} << 40;

// A collective among GPUs of one node, as it was found for the first such node.
struct Inside {
  std::size_t collective = 0;
  const NodeShape* shape = nullptr;
  std::vector<int> locals = {};
  Flows::Asked phases = {};
  std::int32_t first_link = 0;  // of the node
};

class FlowFinder {
 public:
  FlowFinder(const Plan& plan, const Patterns& patterns, const Ranks& ranks, const Network& network)
      : plan_(plan), patterns_(patterns), ranks_(ranks), network_(network) {
    flows_.slot_count = patterns.slot_count();
    const auto expected = static_cast<std::size_t>(ranks.count());  // typical numbers per rank, so that little is copied
    for (auto* list : {&flows_.first_party, &flows_.first_link}) list->reserve(3 * expected);
    flows_.all_parties.reserve(8 * expected);
    flows_.all_links.reserve(28 * expected);
    flows_.asked.resize(static_cast<std::size_t>(ranks.count()) * static_cast<std::size_t>(flows_.slot_count));
  }

  Flows find() {
    for (std::size_t r = 0; r < plan_.roles.size(); ++r)
      for (const int slot : patterns_.slots[r]) {
        const RoleId role{static_cast<std::int32_t>(r)};
        const int peers = static_cast<int>(patterns_.peers.size());
        if (slot < peers)
          add_sends(role, slot);
        else if (slot < 2 * peers)
          continue;
        else if (slot < patterns_.copy_slot(0))
          add_collectives(role, slot - patterns_.collective_slot(0));
        else
          add_copies(role, slot - patterns_.copy_slot(0));
      }
    check_receives();
    return std::move(flows_);
  }

 private:
  Flows::Asked& asked(RankId rank, int slot) {
    return flows_.asked[rank.index() * static_cast<std::size_t>(flows_.slot_count) + static_cast<std::size_t>(slot)];
  }
  std::int32_t close_flow(std::uint64_t kind, double bytes, bool exchange = false) {
    flows_.exchange.push_back(exchange);
    flows_.kind.push_back(kind);
    flows_.bytes.push_back(bytes);
    flows_.first_party.push_back(static_cast<std::int32_t>(flows_.all_parties.size()));
    flows_.first_link.push_back(static_cast<std::int32_t>(flows_.all_links.size()));
    return flows_.count() - 1;
  }
  template <class Links>
  void add_links(const Links& links) {
    flows_.all_links.insert(flows_.all_links.end(), links.begin(), links.end());
  }
  bool uses(RoleId role, int slot) const {
    const std::vector<int>& slots = patterns_.slots[role.index()];
    return std::binary_search(slots.begin(), slots.end(), slot);
  }

  // The peer, seen from `receiver`, that `sender` is; -1: the receiver never receives from it. Neighbours share the
  // answer.
  int peer_back(RankId receiver, RankId sender, int guess) const {
    const auto is = [&](int peer) {
      return uses(ranks_.role(receiver), patterns_.from_slot(peer)) &&
             ranks_.peer(receiver, patterns_.peers[static_cast<std::size_t>(peer)]) == sender;
    };
    if (guess >= 0 && is(guess)) return guess;
    for (int peer = 0; peer < static_cast<int>(patterns_.peers.size()); ++peer)
      if (is(peer)) return peer;
    return -1;
  }

  void add_sends(RoleId role, int peer) {
    int back = -1;
    for (int i = 0; i < ranks_.count(role); ++i) {
      const RankId sender{ranks_.first(role).value + i};
      const RankId receiver = ranks_.peer(sender, patterns_.peers[static_cast<std::size_t>(peer)]);
      if (!receiver.valid()) throw no_other_end(sender, "sends to", peer);
      back = peer_back(receiver, sender, back);
      if (back < 0) throw no_other_end(sender, "sends to a rank that never receives from it:", peer);
      flows_.all_parties.push_back(sender);
      flows_.all_parties.push_back(receiver);
      add_links(network_.route(ranks_.device(sender), ranks_.device(receiver)).links);
      const std::int32_t flow =
          close_flow(mixed(mixed(1, static_cast<std::uint64_t>(peer)), static_cast<std::uint64_t>(back)), 1, true);
      asked(sender, patterns_.to_slot(peer)) = {flow, 1};
      asked(receiver, patterns_.from_slot(back)) = {flow, 1};
    }
  }

  void check_receives() const {
    for (std::size_t r = 0; r < plan_.roles.size(); ++r)
      for (const int slot : patterns_.slots[r]) {
        const int peer = slot - patterns_.from_slot(0);
        if (peer < 0 || peer >= static_cast<int>(patterns_.peers.size())) continue;
        const RoleId role{static_cast<std::int32_t>(r)};
        for (int i = 0; i < ranks_.count(role); ++i) {
          const RankId rank{ranks_.first(role).value + i};
          if (flows_.at(rank, slot).first < 0) throw no_other_end(rank, "receives from a rank that never sends to it:", peer);
        }
      }
  }

  Error no_other_end(RankId rank, const std::string& what, int peer) const {
    const Peer& p = patterns_.peers[static_cast<std::size_t>(peer)];
    std::string found = what + " role " + std::to_string(ranks_.role(rank).value + p.role_shift);
    for (const AxisId axis : p.axes) found += ", " + plan_.axes[axis.index()].name;
    if (!p.axes.empty()) found += " + " + std::to_string(p.shift);
    return Error("plan", "role '" + plan_.roles[ranks_.role(rank).index()].name + "', rank " + std::to_string(rank.value),
                 found, "a send and a receive for every exchange");
  }

  void add_collectives(RoleId role, int collective) {
    const auto c = static_cast<std::size_t>(collective);
    const int slot = patterns_.collective_slot(collective), like = patterns_.collective_slot(patterns_.links_like[c]);
    for (int i = 0; i < ranks_.count(role); ++i) {
      const RankId rank{ranks_.first(role).value + i};
      if (asked(rank, slot).first >= 0) continue;  // its instance is known
      if (asked(rank, like).first >= 0) {          // the same links as another collective of the group
        asked(rank, slot) = asked(rank, like);
        continue;
      }
      const std::vector<RankId> members = ranks_.members(patterns_.collectives[c].group, rank);
      const Flows::Asked phases = add_instance(static_cast<std::size_t>(patterns_.links_like[c]), members);
      for (const RankId member : members) asked(member, slot) = asked(member, like) = phases;
    }
  }

  // At least one flow, so that folding relates the members to each other even when no bytes move.
  Flows::Asked add_instance(std::size_t collective, const std::vector<RankId>& members) {
    devices_.clear();
    for (const RankId member : members) devices_.push_back(ranks_.device(member));
    const int node = network_.node(devices_.front());
    Inside here{collective, &network_.node_shape(node), {}, {}, network_.first_link(node).value};
    for (const DeviceId device : devices_) {
      if (network_.node(device) != node) return add_phases(collective, members);
      here.locals.push_back(device.value - network_.first_device(node).value);
    }
    for (const Inside& known : inside_)
      if (known.collective == collective && known.shape == here.shape && known.locals == here.locals)
        return add_moved(known.phases, here.first_link - known.first_link, members);
    here.phases = add_phases(collective, members);
    inside_.push_back(std::move(here));
    return inside_.back().phases;
  }

  Flows::Asked add_phases(std::size_t collective, const std::vector<RankId>& members) {
    Collective probe = patterns_.collectives[collective];
    probe.bytes = {kProbe};
    std::vector<CollectiveFlow> phases = collective_phases(network_, probe, devices_);
    if (phases.empty()) phases.emplace_back();
    const Flows::Asked added{flows_.count(), static_cast<std::int32_t>(phases.size())};
    for (std::size_t p = 0; p < phases.size(); ++p) {
      flows_.all_parties.insert(flows_.all_parties.end(), members.begin(), members.end());
      add_links(phases[p].links);
      close_flow(mixed(mixed(2, collective), p), phases[p].bytes / static_cast<double>(kProbe));
    }
    return added;
  }

  // The same collective among the same GPUs of another node of that shape: the same links, `by` numbers on.
  Flows::Asked add_moved(const Flows::Asked& phases, std::int32_t by, const std::vector<RankId>& members) {
    const Flows::Asked added{flows_.count(), phases.phases};
    for (std::int32_t f = phases.first; f < phases.first + phases.phases; ++f) {
      const auto i = static_cast<std::size_t>(f);
      flows_.all_parties.insert(flows_.all_parties.end(), members.begin(), members.end());
      for (auto k = static_cast<std::size_t>(flows_.first_link[i]); k < static_cast<std::size_t>(flows_.first_link[i + 1]); ++k)
        flows_.all_links.push_back({flows_.all_links[k].value + by});
      close_flow(flows_.kind[i], flows_.bytes[i]);
    }
    return added;
  }

  void add_copies(RoleId role, int copy) {
    const CopyPattern& pattern = patterns_.copies[static_cast<std::size_t>(copy)];
    for (int i = 0; i < ranks_.count(role); ++i) {
      const RankId rank{ranks_.first(role).value + i};
      flows_.all_parties.push_back(rank);
      for (const LinkId link : network_.host_route(ranks_.device(rank), pattern.end, pattern.to_device).links) {
        const LinkKind kind = network_.link(link).kind;
        if (!pattern.host_only || kind == LinkKind::NvmeBus || kind == LinkKind::DramBus) flows_.all_links.push_back(link);
      }
      asked(rank, patterns_.copy_slot(copy)) = {close_flow(mixed(3, static_cast<std::uint64_t>(copy)), 1), 1};
    }
  }

  const Plan& plan_;
  const Patterns& patterns_;
  const Ranks& ranks_;
  const Network& network_;
  Flows flows_ = {};
  std::vector<DeviceId> devices_ = {};
  std::vector<Inside> inside_ = {};
};

}  // namespace

Flows find_flows(const Plan& plan, const Patterns& patterns, const Ranks& ranks, const Network& network) {
  return FlowFinder(plan, patterns, ranks, network).find();
}

}  // namespace foreshard::player
