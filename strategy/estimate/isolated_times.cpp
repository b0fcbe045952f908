#include "strategy/estimate/isolated_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace foreshard {

std::vector<RankId> IsolatedTimes::neighbours(RoleId role) const {
  const RankId first = ranks_.first(role);
  const int node = network_.node(ranks_.device(first));
  std::vector<RankId> here;
  for (int i = 0; i < ranks_.count(role); ++i) {
    const RankId rank{first.value + i};
    if (network_.node(ranks_.device(rank)) == node) here.push_back(rank);
  }
  return here;
}

std::vector<RankId> IsolatedTimes::everyone(RoleId role) const {
  std::vector<RankId> all;
  for (int i = 0; i < ranks_.count(role); ++i) all.push_back({ranks_.first(role).value + i});
  return all;
}

// Measures a kind of collective phase by phase: the bytes that all instances with a rank on the first rank's node put on the links of the
// first rank's instance.
IsolatedTimes::Kind IsolatedTimes::measured(RoleId role, const Collective& what) const {
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
  Kind kind{.role = role, .what = what, .bytes = std::max(1.0, static_cast<double>(what.bytes.value))};
  LinkId first{std::numeric_limits<std::int32_t>::max()}, last{-1};
  for (const auto& instance : instances)
    for (const CollectiveFlow& flow : instance)
      for (const LinkId link : flow.links) first = std::min(first, link), last = std::max(last, link);
  const auto between = static_cast<std::size_t>(last.value - std::min(first, last).value + 1);
  const auto at = [&](LinkId link) { return static_cast<std::size_t>(link.value - first.value); };
  std::vector<double> all(between), bytes;  // [link from `first` on]
  for (std::size_t phase = 0; !instances.empty() && phase < instances.front().size(); ++phase) {
    bytes.assign(between, 0);
    for (const auto& instance : instances)
      if (phase < instance.size())
        for (const LinkId link : instance[phase].links) bytes[at(link)] += instance[phase].bytes;
    double seconds = 0;
    for (const LinkId link : instances.front()[phase].links)
      seconds = std::max(seconds, bytes[at(link)] / network_.link(link).rate().value);
    kind.seconds += seconds;
    for (std::size_t link = 0; link < between; ++link) all[link] += bytes[link];
  }
  for (std::size_t link = 0; link < between; ++link)
    if (all[link] > 0) kind.loads.push_back({{first.value + static_cast<std::int32_t>(link)}, all[link] / kind.bytes});
  kind.rate = kind.seconds > 0 ? kind.bytes / kind.seconds : 0;
  return kind;
}

// Bytes only scale the flows, so one size per kind of collective is measured.
int IsolatedTimes::collective_kind(RoleId role, const Collective& what) {
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    const auto* known = std::get_if<Collective>(&kinds_[i].what);
    if (known && kinds_[i].role == role && known->kind == what.kind && known->algorithm == what.algorithm &&
        known->group == what.group && known->bytes.value > 0)
      return static_cast<int>(i);
  }
  kinds_.push_back(measured(role, what));
  return static_cast<int>(kinds_.size()) - 1;
}

int IsolatedTimes::transfer_kind(RoleId role, const Peer& peer) {
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    const auto* known = std::get_if<Peer>(&kinds_[i].what);
    if (known && kinds_[i].role == role && *known == peer) return static_cast<int>(i);
  }
  // Transfers inside a role (rings) are as fast as their slowest pair, since all ranks wait for it sooner or later.
  const bool round = peer.role_shift == 0;
  std::map<LinkId, Load> loads;
  std::vector<RouteLinks> routes;
  std::optional<std::size_t> own;  // the first rank's
  for (const RankId rank : round ? everyone(role) : neighbours(role)) {
    const RankId other = ranks_.peer(rank, peer);
    if (!other.valid()) continue;
    routes.push_back(network_.route(ranks_.device(rank), ranks_.device(other)).links);
    for (const LinkId link : routes.back()) loads[link].crossings += 1;
    if (rank == ranks_.first(role)) own = routes.size() - 1;
  }
  const auto slowness = [&](const RouteLinks& route) {
    double seconds = 0;
    for (const LinkId link : route) seconds = std::max(seconds, loads[link].crossings / network_.link(link).rate().value);
    return seconds;
  };
  Kind kind{.role = role, .what = peer};
  for (std::size_t i = 0; i < routes.size(); ++i)
    if (round || i == own) kind.seconds = std::max(kind.seconds, slowness(routes[i]));
  for (auto& [link, load] : loads) load.link = link, kind.loads.push_back(load);
  kind.rate = kind.seconds > 0 ? 1 / kind.seconds : 0;
  kinds_.push_back(std::move(kind));
  return static_cast<int>(kinds_.size()) - 1;
}

int IsolatedTimes::kind(RoleId role, const Instruction& instruction) {
  int found = -1;
  if (const auto* what = std::get_if<Collective>(&instruction.what)) found = collective_kind(role, *what);
  if (const auto* what = std::get_if<Exchange>(&instruction.what))
    found = transfer_kind(role, what->to ? *what->to : *what->from);
  return found >= 0 && kinds_[static_cast<std::size_t>(found)].rate > 0 ? found : -1;
}

// Each new kind splits the classes of links of which it crosses only some, or which it crosses with different loads.
void IsolatedTimes::tell_links_apart() {
  if (telling_.size() == kinds_.size()) return;
  for (std::size_t kind = telling_.size(); kind < kinds_.size(); ++kind) {
    std::map<std::tuple<int, double, double>, int> parted;
    for (const Load& load : kinds_[kind].loads) {
      if (load.link.index() >= class_of_.size()) class_of_.resize(load.link.index() + 1, 0);
      int& known = class_of_[load.link.index()];
      const auto key = std::tuple(known, network_.link(load.link).rate().value, load.crossings);
      const auto [found, fresh] = parted.try_emplace(key, classes_);
      if (fresh) ++classes_;
      known = found->second;
    }
  }
  std::vector<LinkId> first(static_cast<std::size_t>(classes_));
  for (std::size_t link = class_of_.size(); link-- > 0;)
    first[static_cast<std::size_t>(class_of_[link])] = {static_cast<std::int32_t>(link)};
  telling_.assign(kinds_.size(), {});
  crossed_.assign(kinds_.size(), {});
  bandwidth_.assign(static_cast<std::size_t>(classes_), 0);
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind)
    for (const Load& load : kinds_[kind].loads) {
      const int which = class_of_[load.link.index()];
      if (first[static_cast<std::size_t>(which)] != load.link) continue;
      telling_[kind].push_back({which, load.crossings});
      crossed_[kind].push_back({which, load.crossings * kinds_[kind].rate / network_.link(load.link).rate().value});
      bandwidth_[static_cast<std::size_t>(which)] = network_.link(load.link).rate().value;
    }
}

std::vector<double> IsolatedTimes::shared_out(const std::vector<int>& kinds) {
  tell_links_apart();
  std::vector<std::span<const player::LinkShare>> flows;
  for (const int kind : kinds) flows.emplace_back(telling_[static_cast<std::size_t>(kind)]);
  const std::span<const double> rates = max_min_.share(bandwidth_, flows);
  std::vector<double> speeds;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    speeds.push_back(std::clamp(rates[i] / kinds_[static_cast<std::size_t>(kinds[i])].rate, 1e-3, 1.0));
  return speeds;
}

const std::vector<double>& IsolatedTimes::speeds(const std::vector<int>& kinds) {
  const auto found = speeds_.find(kinds);
  if (found != speeds_.end()) return found->second;
  return speeds_.emplace(kinds, shared_out(kinds)).first->second;
}

bool IsolatedTimes::meet(int a, int b) const {
  const auto& left = kinds_[static_cast<std::size_t>(a)].loads;
  const auto& right = kinds_[static_cast<std::size_t>(b)].loads;
  for (auto l = left.begin(), r = right.begin(); l != left.end() && r != right.end();) {  // both by link
    if (l->link == r->link) return true;
    l->link < r->link ? ++l : ++r;
  }
  return false;
}

const std::vector<IsolatedTimes::Crossing>& IsolatedTimes::crossed(int kind) {
  tell_links_apart();
  return crossed_[static_cast<std::size_t>(kind)];
}

int IsolatedTimes::crossings() {
  tell_links_apart();
  return classes_;
}

double IsolatedTimes::per_byte(int kind) const {
  if (kind < 0) return 0;
  const Kind& known = kinds_[static_cast<std::size_t>(kind)];
  return known.seconds / known.bytes;
}

double IsolatedTimes::on_links(RoleId role, const Instruction& instruction, const Cost& cost) {
  const auto* what = std::get_if<Collective>(&instruction.what);
  const int found = kind(role, instruction);
  if (found < 0) return 0;
  const Bytes bytes = what ? what->bytes : std::get<Exchange>(instruction.what).bytes;
  return cost.wire_factor * per_byte(found) * static_cast<double>(bytes.value);
}

double IsolatedTimes::duration(RoleId role, const Instruction& instruction, const Cost& cost) {
  if (const auto* what = std::get_if<Exchange>(&instruction.what); what && !what->to) return 0;
  return to_seconds(cost.busy).value + on_links(role, instruction, cost);
}

}  // namespace foreshard
