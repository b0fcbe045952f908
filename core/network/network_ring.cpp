// Rings of a group: the order of its members.
#include <algorithm>
#include <map>
#include <span>

#include "core/network/network.h"

namespace foreshard {

namespace {
// Cyclic orders inside a node, in local indices.
struct Cycle {
  std::vector<int> order = {};
  int shares = 1;
};

// Bandwidths of direct NVLinks between the given GPUs, in units of the smallest; empty if they are joined by a switch or have no NVLink.
std::vector<std::vector<int>> mesh(const NodeShape& shape, const std::vector<int>& locals) {
  double unit = 0;
  const auto direct = [&](const NodeLink& link) {
    return link.kind == LinkKind::NvLink && link.from < shape.gpus && link.to < shape.gpus;
  };
  for (const NodeLink& link : shape.links)
    if (direct(link) && (unit == 0 || link.bandwidth.value < unit)) unit = link.bandwidth.value;
  if (unit == 0) return {};
  std::vector<int> position(static_cast<std::size_t>(shape.gpus), -1);
  for (std::size_t i = 0; i < locals.size(); ++i) position[static_cast<std::size_t>(locals[i])] = static_cast<int>(i);
  std::vector<std::vector<int>> width(locals.size(), std::vector<int>(locals.size()));
  for (const NodeLink& link : shape.links) {
    if (!direct(link)) continue;
    const int a = position[static_cast<std::size_t>(link.from)], b = position[static_cast<std::size_t>(link.to)];
    if (a < 0 || b < 0) continue;
    const int units = static_cast<int>(std::min(64.0, link.bandwidth.value / unit + 1e-9));
    width[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] += units;
    width[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] += units;
  }
  return width;
}

// The closed tour over all positions whose smallest bandwidth is largest, by depth-first search with the best so far as
// bound.
class WidestTour {
 public:
  explicit WidestTour(const std::vector<std::vector<int>>& width) : width_(width), used_(width.size()), path_{0} {
    used_[0] = true;
    extend(64);
  }
  int shares() const { return best_; }
  const std::vector<int>& order() const { return order_; }

 private:
  void extend(int thinnest) {
    const auto last = static_cast<std::size_t>(path_.back());
    if (path_.size() == width_.size()) {
      thinnest = std::min(thinnest, width_[last][0]);
      if (thinnest > best_) best_ = thinnest, order_ = path_;
      return;
    }
    for (std::size_t next = 1; next < width_.size(); ++next) {
      const int edge = std::min(thinnest, width_[last][next]);
      if (used_[next] || edge <= best_) continue;
      used_[next] = true;
      path_.push_back(static_cast<int>(next));
      extend(edge);
      path_.pop_back();
      used_[next] = false;
    }
  }
  const std::vector<std::vector<int>>& width_;
  std::vector<bool> used_;
  std::vector<int> path_, order_;
  int best_ = 0;
};

// The search for a tour is not tried above this number of GPUs joined by direct links.
constexpr std::size_t kMostInTour = 10;

std::vector<Cycle> cycles(const NodeShape& shape, const std::vector<int>& locals) {
  std::vector<Cycle> found;
  if (locals.size() > 2 && locals.size() <= kMostInTour) {
    std::vector<std::vector<int>> width = mesh(shape, locals);
    while (!width.empty()) {
      const WidestTour tour(width);
      const int shares = tour.shares();
      if (shares == 0) break;
      Cycle cycle{{}, shares};
      for (std::size_t i = 0; i < locals.size(); ++i) {
        const auto a = static_cast<std::size_t>(tour.order()[i]),
                   b = static_cast<std::size_t>(tour.order()[(i + 1) % locals.size()]);
        cycle.order.push_back(locals[a]);
        width[a][b] -= shares;
        width[b][a] -= shares;
      }
      found.push_back(cycle);
      std::reverse(cycle.order.begin() + 1, cycle.order.end());  // the links' other direction
      found.push_back(cycle);
    }
  }
  if (found.empty()) found.push_back({locals, 1});
  return found;
}

// The members of one node, and how rings pass them: by one of its cycles, in either direction if the order is free, which begins at the
// member nearest to one of its NICs.
struct Stop {
  std::span<const DeviceId> cycles = {};   // one after the other
  std::span<const DeviceId> entries = {};  // of each NIC that members use, the member nearest to it
  std::size_t members = 0;
  std::span<const DeviceId> cycle(std::size_t ring) const {
    return cycles.subspan(ring % (cycles.size() / members) * members, members);
  }
  DeviceId entry(std::size_t ring) const { return entries[ring % entries.size()]; }
  bool is_free() const { return cycles.size() == members; }
};

// The nodes that a ring passes. Most large groups have one member per node, and then no cycles inside nodes are searched.
class Stops {
 public:
  Stops(const Network& network, std::size_t members) : network_(network) {
    cycles_.reserve(members);
    entries_.reserve(members);
  }
  void add(int node, const std::vector<int>& locals) {
    const DeviceId first = network_.first_device(node);
    if (locals.size() == 1) {
      cycles_.push_back({first.value + locals.front()});
      entries_.push_back(cycles_.back());
    } else {
      const std::vector<Cycle> found = cycles(network_.node_shape(node), locals);
      add_cycles(first, found);
      std::map<int, DeviceId> by_nic;
      for (const int local : found.front().order) {
        const DeviceId member{first.value + local};
        const auto [nearest, fresh] = by_nic.try_emplace(network_.nic(member), member);
        if (!fresh && network_.nic_cost(member) < network_.nic_cost(nearest->second)) nearest->second = member;
      }
      for (const auto& [nic, entry] : by_nic) entries_.push_back(entry);
    }
    members_.push_back(locals.size());
    const std::size_t ways = (cycles_.size() - cycles_end_.back()) / locals.size(),
                      nics = entries_.size() - entries_end_.back();
    rings_ = std::max(rings_, nics * ((ways + nics - 1) / nics));  // each NIC takes as many
    cycles_end_.push_back(cycles_.size());
    entries_end_.push_back(entries_.size());
  }
  std::size_t size() const { return members_.size(); }
  std::size_t rings() const { return rings_; }
  Stop operator[](std::size_t s) const { return {part(cycles_, cycles_end_, s), part(entries_, entries_end_, s), members_[s]}; }

 private:
  // Those with more shares more often.
  void add_cycles(DeviceId first, const std::vector<Cycle>& found) {
    int least = found.front().shares, most = 0;
    for (const Cycle& cycle : found) least = std::min(least, cycle.shares), most = std::max(most, cycle.shares);
    for (int round = 1; round <= most / least; ++round)
      for (const Cycle& cycle : found)
        if (cycle.shares / least >= round)
          for (const int local : cycle.order) cycles_.push_back({first.value + local});
  }
  template <class T>
  static std::span<const T> part(const std::vector<T>& all, const std::vector<std::size_t>& ends, std::size_t s) {
    return {all.data() + ends[s], all.data() + ends[s + 1]};
  }
  const Network& network_;
  std::vector<DeviceId> cycles_ = {}, entries_ = {};
  std::vector<std::size_t> members_ = {}, cycles_end_ = {0}, entries_end_ = {0};
  std::size_t rings_ = 1;
};

// The order in which a ring passes the members of a node. If the order is free, the ring leaves by the NIC by which it came: its last member
// is one with that NIC, a neighbour of the entry if one has it; else the neighbour that is nearer to the next node, and if both are as near,
// the one by which fewer rings left so far, since each GPU has its own link to the NICs. `exits`: [member of the cycle] how many.
void pass(const Network& network, const Stop& stop, std::size_t number, DeviceId next, std::span<int> exits,
          std::vector<DeviceId>& ring) {
  const std::span<const DeviceId> around = stop.cycle(number);
  const auto entry = static_cast<std::size_t>(std::ranges::find(around, stop.entry(number)) - around.begin());
  const std::size_t n = stop.members, before = (entry + n - 1) % n, after = (entry + 1) % n;
  bool backwards = false;
  std::size_t last = before;
  if (n > 2 && stop.is_free()) {
    const int nic = network.nic(around[entry]);
    const auto same = [&](std::size_t member) { return network.nic(around[member]) == nic; };
    const std::size_t forth = network.route(around[before], next).links.size();
    const std::size_t back = network.route(around[after], next).links.size();
    const bool fewer = exits[after] < exits[before];
    backwards = same(after) != same(before) ? same(after) : back < forth || (back == forth && fewer);
    last = backwards ? after : before;
    for (std::size_t member = 0; member < n && !same(last); ++member)
      if (member != entry && same(member)) last = member;
  }
  ++exits[last];
  const std::size_t begin = ring.size();
  for (std::size_t i = 0; i < n; ++i) ring.push_back(around[(entry + (backwards ? n - i : i)) % n]);
  if (n > 2) {
    const auto moved = std::find(ring.begin() + static_cast<std::ptrdiff_t>(begin), ring.end(), around[last]);
    std::rotate(moved, moved + 1, ring.end());
  }
}

std::vector<RingOrder> rings_inside(const Network& network, int node, const std::vector<int>& locals) {
  std::vector<RingOrder> orders;
  for (const Cycle& cycle : cycles(network.node_shape(node), locals)) {
    orders.push_back({{}, cycle.shares});
    for (const int local : cycle.order) orders.back().order.push_back({network.first_device(node).value + local});
  }
  return orders;
}
}  // namespace

std::vector<RingOrder> ring_orders(const Network& network, std::vector<DeviceId> members) {
  std::sort(members.begin(), members.end());
  Stops stops(network, members.size());
  std::vector<int> locals;
  for (std::size_t i = 0, last = members.size() - 1; i < members.size(); ++i) {
    const int node = network.node(members[i]), first = network.first_device(node).value;
    locals.push_back(members[i].value - first);
    if (i < last && members[i + 1].value < first + network.node_shape(node).gpus) continue;
    if (stops.size() == 0 && i + 1 == members.size()) return rings_inside(network, node, locals);
    stops.add(node, locals);
    locals.clear();
  }
  std::vector<RingOrder> orders(stops.size() == 0 ? 0 : stops.rings());
  std::vector<int> exits(members.size());  // of the stops, one after the other
  for (std::size_t c = 0; c < orders.size(); ++c) {
    orders[c].order.reserve(members.size());
    std::size_t passed = 0;
    for (std::size_t s = 0; s < stops.size(); ++s) {
      const Stop stop = stops[s], next = stops[(s + 1) % stops.size()];
      pass(network, stop, c, next.entry(c), std::span(exits).subspan(passed, stop.members), orders[c].order);
      passed += stop.members;
    }
  }
  return orders;
}

std::vector<DeviceId> ring_order(const Network& network, std::vector<DeviceId> members) {
  std::vector<RingOrder> orders = ring_orders(network, std::move(members));
  return orders.empty() ? std::vector<DeviceId>{} : std::move(orders.front().order);
}

}  // namespace foreshard
