#include "replay/flow_paths.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

namespace foreshard::player {
namespace {

// visit(slot) of all that an instruction uses.
template <class Visit>
void each_slot(const Patterns& patterns, const Role& role, const Instruction& instruction, const InstructionUse& use,
               const Visit& visit) {
  if (use.to >= 0) visit(patterns.to_slot(use.to));
  if (use.from >= 0) visit(patterns.from_slot(use.from));
  if (use.collective >= 0) visit(patterns.collective_slot(use.collective));
  if (!use.copy) return;
  if (const int copy = copy_pattern(patterns, role, instruction); copy >= 0) visit(patterns.copy_slot(copy));
}

class PathFinder {
 public:
  PathFinder(const Plan& plan, const Ranks& ranks, const Patterns& patterns, const Flows& flows, const Quotient& quotient)
      : plan_(plan), ranks_(ranks), patterns_(patterns), flows_(flows), q_(quotient), streams_(slot_streams(plan, patterns)) {}

  FlowPaths find() {
    FlowPaths paths;
    std::vector<char> takes_turns, limits;
    for (const Bundle& bundle : q_.bundles) takes_turns.push_back(one_at_a_time(bundle));
    for (int b = 0; b < static_cast<int>(q_.bundles.size()); ++b) limits.push_back(can_limit(b) && !dominated(b));
    std::vector<int> link_of(q_.bundles.size(), -1), share(q_.bundles.size(), 1);
    for (const FlowClass& flow : q_.flows) {
      FlowPath path;
      const auto in_turn = [&](const Crossing& c) { return takes_turns[static_cast<std::size_t>(c.flow)] != 0; };
      const auto harmless = [&](const Crossing& c) { return in_turn(c) || !can_limit(c.flow); };
      path.exclusive = std::all_of(flow.bundles.begin(), flow.bundles.end(), in_turn);
      path.isolated = std::all_of(flow.bundles.begin(), flow.bundles.end(), harmless);
      if (!path.exclusive) path.exclusive_before = exclusive_before(flow, takes_turns);
      for (const Crossing& c : flow.bundles) {
        const auto b = static_cast<std::size_t>(c.flow);
        if (!can_limit(c.flow)) continue;
        path.seconds_per_byte = std::max(path.seconds_per_byte, c.times / q_.bundles[b].narrowest.value);
        if (path.isolated || !limits[b]) continue;
        if (link_of[b] < 0) {
          share[b] = common_share(q_.bundles[b]);
          link_of[b] = static_cast<int>(paths.links.size());
          paths.links.push_back({q_.bundles[b].narrowest.value / share[b]});
        }
        path.route.insert(path.route.end(), static_cast<std::size_t>(c.times / share[b]), link_of[b]);
      }
      paths.of_flow.push_back(std::move(path));
    }
    return paths;
  }

 private:
  bool can_limit(int bundle) const { return q_.bundles[static_cast<std::size_t>(bundle)].narrowest.value > 0; }
  static int common_share(const Bundle& bundle) {
    int share = 0;
    for (const Crossing& c : bundle.crossings) share = std::gcd(share, c.times);
    return share;
  }

  // The stream of `rank` that carries the flow, when there is exactly one.
  int stream_of(RankId rank, int flow) const {
    const RoleId role = ranks_.role(rank);
    int stream = kNoStream;
    for (const int slot : patterns_.slots[role.index()]) {
      const Flows::Asked& asked = flows_.at(rank, slot);
      if (flow < asked.first || flow >= asked.first + asked.phases) continue;
      const int here = streams_[role.index()][static_cast<std::size_t>(slot)];
      if (stream != kNoStream && here != stream) return kManyStreams;
      stream = here;
    }
    return stream;
  }

  // All flows on a link of the bundle pass one by one through one stream of one rank.
  bool one_at_a_time(const Bundle& bundle) const {
    const auto carries_all = [&](RankId rank) {
      const int stream = stream_of(rank, bundle.crossings.front().example);
      return stream >= 0 && std::all_of(bundle.crossings.begin(), bundle.crossings.end(),
                                        [&](const Crossing& c) { return stream_of(rank, c.example) == stream; });
    };
    for (const Crossing& c : bundle.crossings)
      if (c.several) return false;
    // A rank that carries all flows is a party of each of them; so only the parties of the flow with the fewest are tried. Members of one
    // group are alike, so a few of them are enough.
    constexpr std::size_t kMostTried = 8;
    std::span<const RankId> parties = flows_.parties(bundle.crossings.front().example);
    for (const Crossing& c : bundle.crossings)
      if (const auto other = flows_.parties(c.example); other.size() < parties.size()) parties = other;
    return std::any_of(parties.begin(), parties.begin() + static_cast<std::ptrdiff_t>(std::min(kMostTried, parties.size())),
                       carries_all);
  }

  // FlowPath::exclusive_before of a flow whose parties are of one role: the latest action for which one of its parties can show it, by
  // carrying all traffic on the flow's links.
  std::int32_t exclusive_before(const FlowClass& flow, const std::vector<char>& takes_turns) {
    constexpr std::size_t kMostTried = 8;
    const std::span<const RankId> parties = flows_.parties(flow.example);
    const RoleId role = ranks_.role(parties.front());
    if (!std::ranges::all_of(parties, [&](RankId party) { return ranks_.role(party) == role; })) return 0;
    std::int32_t latest = 0;
    for (const RankId rank : parties.first(std::min(kMostTried, parties.size()))) {
      const int stream = stream_of(rank, flow.example);
      std::int32_t before = stream < 0 ? 0 : kNever;
      for (const Crossing& c : flow.bundles)
        if (before > latest && !takes_turns[static_cast<std::size_t>(c.flow)])
          before = std::min(before, first_beside(rank, stream, q_.bundles[static_cast<std::size_t>(c.flow)]));
      if (before != kNever) latest = std::max(latest, before);
    }
    return latest;
  }

  // The first action in which the rank issues traffic over the bundle on another stream; 0: not known.
  std::int32_t first_beside(RankId rank, int stream, const Bundle& bundle) {
    std::int32_t first = kNever;
    for (const Crossing& c : bundle.crossings) {
      const int other = stream_of(rank, c.example);
      if (c.several || other < 0) return 0;
      if (other == stream) continue;
      for (const int slot : patterns_.slots[ranks_.role(rank).index()]) {
        const Flows::Asked& asked = flows_.at(rank, slot);
        if (c.example >= asked.first && c.example < asked.first + asked.phases)
          first = std::min(first, first_use(ranks_.role(rank), slot, stream));
      }
    }
    return first;
  }

  // The first action that uses the slot, if this use waits for an instruction of the same action on `stream`; else 0. kNever: no action.
  std::int32_t first_use(RoleId role, int slot, int stream) {
    const auto [known, is_new] = first_uses_.try_emplace({role.value, slot, stream}, 0);
    if (!is_new) return known->second;
    const std::vector<Action>& actions = plan_.roles[role.index()].actions;
    std::vector<char> seen(plan_.segments.size());
    for (std::size_t a = 0; a < actions.size(); ++a) {
      const std::size_t segment = actions[a].segment.index();
      if (std::exchange(seen[segment], 1)) continue;
      const int instruction = using_slot(role, segment, slot);
      if (instruction < 0) continue;
      return known->second =
                 follows(plan_.segments[segment].instructions, instruction, stream) ? static_cast<std::int32_t>(a) : 0;
    }
    return known->second = kNever;
  }

  int using_slot(RoleId role, std::size_t segment, int slot) const {
    const std::vector<Instruction>& instructions = plan_.segments[segment].instructions;
    int user = -1;
    for (std::size_t i = 0; i < instructions.size() && user < 0; ++i)
      each_slot(patterns_, plan_.roles[role.index()], instructions[i], patterns_.uses[segment][i], [&](int used) {
        if (used == slot) user = static_cast<int>(i);
      });
    return user;
  }

  // Whether the instruction, or one before it on its stream in the segment, comes after an instruction on `stream`.
  static bool follows(const std::vector<Instruction>& instructions, int instruction, int stream) {
    const StreamId own = instructions[static_cast<std::size_t>(instruction)].stream;
    for (int i = 0; i <= instruction; ++i) {
      const Instruction& each = instructions[static_cast<std::size_t>(i)];
      if (each.stream == own && std::ranges::any_of(each.after, [&](std::int32_t before) {
            return instructions[static_cast<std::size_t>(before)].stream.value == stream;
          }))
        return true;
    }
    return false;
  }

  int times(int flow, int bundle) const {
    for (const Crossing& c : q_.flows[static_cast<std::size_t>(flow)].bundles)
      if (c.flow == bundle) return c.times;
    return 0;
  }

  // Another bundle is full before this one can be: it takes at least the same share of every flow of this one. Of two
  // bundles that dominate each other the first stays.
  bool dominated(int b) const {
    const Bundle& bundle = q_.bundles[static_cast<std::size_t>(b)];
    const auto shortest =
        std::min_element(bundle.crossings.begin(), bundle.crossings.end(), [&](const Crossing& a, const Crossing& c) {
          return q_.flows[static_cast<std::size_t>(a.flow)].bundles.size() <
                 q_.flows[static_cast<std::size_t>(c.flow)].bundles.size();
        });
    for (const Crossing& other : q_.flows[static_cast<std::size_t>(shortest->flow)].bundles) {
      if (other.flow == b || !can_limit(other.flow)) continue;
      const Bundle& rival = q_.bundles[static_cast<std::size_t>(other.flow)];
      bool covers = true, equal = rival.crossings.size() == bundle.crossings.size();
      for (const Crossing& c : bundle.crossings) {
        const double mine = c.times * rival.narrowest.value, its = times(c.flow, other.flow) * bundle.narrowest.value;
        covers = covers && its >= mine;
        equal = equal && its == mine;
        if (!covers) break;
      }
      if (covers && !(equal && b < other.flow)) return true;
    }
    return false;
  }

  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

  const Plan& plan_;
  const Ranks& ranks_;
  const Patterns& patterns_;
  const Flows& flows_;
  const Quotient& q_;
  SlotStreams streams_;
  std::map<std::tuple<std::int32_t, int, int>, std::int32_t> first_uses_ = {};  // {role, slot, stream}
};

}  // namespace

SlotStreams slot_streams(const Plan& plan, const Patterns& patterns) {
  SlotStreams streams;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    std::vector<int> of_slot(static_cast<std::size_t>(patterns.slot_count()), kNoStream);
    const auto note = [&](int slot, StreamId stream) {
      int& known = of_slot[static_cast<std::size_t>(slot)];
      known = known == kNoStream || known == stream.value ? stream.value : kManyStreams;
    };
    for (const SegmentId s : patterns.segments[r]) {
      const std::vector<Instruction>& instructions = plan.segments[s.index()].instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i)
        each_slot(patterns, plan.roles[r], instructions[i], patterns.uses[s.index()][i],
                  [&](int slot) { note(slot, instructions[i].stream); });
    }
    streams.push_back(std::move(of_slot));
  }
  return streams;
}

FlowPaths find_flow_paths(const Plan& plan, const Ranks& ranks, const Patterns& patterns, const Flows& flows,
                          const Quotient& quotient) {
  return PathFinder(plan, ranks, patterns, flows, quotient).find();
}

}  // namespace foreshard::player
