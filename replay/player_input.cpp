#include "replay/player_input.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "core/base/error.h"
#include "core/plan/cost_tables.h"

namespace foreshard::player {
namespace {

class PlayerInputBuilder {
 public:
  PlayerInputBuilder(const Plan& plan, const Patterns& patterns, const Flows& flows, const Quotient& quotient,
                     const FlowPaths& paths, const std::vector<RankSpeed>& paces, Granularity granularity, int runs)
      : plan_(plan),
        patterns_(patterns),
        flows_(flows),
        q_(quotient),
        paths_(paths),
        paces_(paces),
        granularity_(granularity),
        runs_(runs),
        meeting_points_(find_meeting_points(plan)) {}

  PlayerInput build() {
    input_.slots = patterns_.slot_count();
    input_.points = static_cast<int>(meeting_points_.points.size());
    input_.runs = runs_;
    for (std::size_t r = 0; r < plan_.roles.size(); ++r) {
      const RoleId role{static_cast<std::int32_t>(r)};
      input_.programs.push_back(read_role(plan_, meeting_points_, role));
      costs_.push_back(&costs_of(plan_, plan_.roles[r]));
      points_.push_back(points_of(input_.programs.back()));
      copies_.push_back(!patterns_.slots[r].empty() && patterns_.slots[r].back() >= patterns_.copy_slot(0));
    }
    input_.phases.resize(q_.classes.size() * static_cast<std::size_t>(input_.slots));
    input_.meeting_of.assign(q_.classes.size() * static_cast<std::size_t>(input_.points), -1);
    for (std::size_t c = 0; c < q_.classes.size(); ++c) add_player(c);
    for (const FlowClass& flow : q_.flows)
      input_.owner.push_back(q_.class_of[flows_.parties(flow.example).front().index()].value);
    check_groups();
    count_spans();
    return std::move(input_);
  }

 private:
  static std::vector<int> points_of(const RoleProgram& program) {
    std::vector<int> points;
    for (std::size_t p = 0; p < program.uses_per_run.size(); ++p)
      if (program.uses_per_run[p] > 0) points.push_back(static_cast<int>(p));
    return points;
  }

  void add_player(std::size_t c) {
    const RankId rank = q_.classes[c].members.front();
    const RoleId role = q_.classes[c].role;
    for (const int slot : patterns_.slots[role.index()]) {
      const Flows::Asked& asked = flows_.at(rank, slot);
      input_.phases[c * static_cast<std::size_t>(input_.slots) + static_cast<std::size_t>(slot)] = {
          static_cast<std::int32_t>(input_.phase_flows.size()), asked.phases};
      for (int p = 0; p < asked.phases; ++p)
        input_.phase_flows.push_back(q_.flow_of[static_cast<std::size_t>(asked.first + p)]);
    }
    for (const int point : points_[role.index()]) meet(c, rank, point);
    const auto streams = static_cast<std::int32_t>(plan_.roles[role.index()].streams.size());
    input_.players.push_back({role, &input_.programs[role.index()], steps_of(c, rank, role), input_.streams, streams});
    input_.streams += streams;
  }

  // Players meet at (flow class, tag) for an exchange and at (flow class of the group's first collective, group) for a
  // group.
  void meet(std::size_t c, RankId rank, int number) {
    const MeetingPoint& point = meeting_points_.points[static_cast<std::size_t>(number)];
    int flow = -1, second = 0;
    if (point.kind != MeetingPoint::Kind::Collective) {
      const auto peer =
          static_cast<int>(std::find(patterns_.peers.begin(), patterns_.peers.end(), point.peer) - patterns_.peers.begin());
      flow =
          flows_.at(rank, point.kind == MeetingPoint::Kind::Send ? patterns_.to_slot(peer) : patterns_.from_slot(peer)).first;
      second = point.tag;
    } else {
      second = -1 - point.group.value;
      for (std::size_t k = 0; flow < 0; ++k)
        if (patterns_.collectives[k].group == point.group)
          flow = flows_.at(rank, patterns_.collective_slot(static_cast<int>(k))).first;
    }
    const auto [at, added] =
        meetings_.try_emplace({q_.flow_of[static_cast<std::size_t>(flow)], second}, static_cast<int>(input_.meetings.size()));
    if (added) {
      input_.meetings.emplace_back();
      if (second >= 0)  // sender and receiver
        input_.meetings.back() = {2, {static_cast<std::int32_t>(input_.phase_flows.size()), 1}};
      if (second >= 0) input_.phase_flows.push_back(q_.flow_of[static_cast<std::size_t>(flow)]);
    }
    if (second < 0) ++input_.meetings[static_cast<std::size_t>(at->second)].parties;
    input_.meeting_of[c * static_cast<std::size_t>(input_.points) + static_cast<std::size_t>(number)] = at->second;
  }

  void count_spans() {
    std::int64_t spans = 0;
    for (const PlayerInput::Player& player : input_.players)
      for (int s = 0; s < player.streams; ++s) {
        input_.first_span.push_back(static_cast<std::int32_t>(spans));
        for (std::size_t segment = 0; segment < player.steps->size(); ++segment)
          if (const SegmentSteps* steps = (*player.steps)[segment])
            spans += std::int64_t{runs_} * player.program->times_issued[segment] * steps->count(s);
        FS_ASSERT(spans < std::int64_t{1} << 31);
      }
    input_.first_span.push_back(static_cast<std::int32_t>(spans));
  }

  void check_groups() const {
    for (const auto& [where, meeting] : meetings_) {
      if (where.second >= 0) continue;
      const int flow = q_.flows[static_cast<std::size_t>(where.first)].example;
      std::vector<ClassId> classes;
      for (const RankId member : flows_.parties(flow)) classes.push_back(q_.class_of[member.index()]);
      std::sort(classes.begin(), classes.end());
      const auto members = std::unique(classes.begin(), classes.end()) - classes.begin();
      if (input_.meetings[static_cast<std::size_t>(meeting)].parties != static_cast<std::int32_t>(members))
        throw Error("plan", "group '" + plan_.groups[static_cast<std::size_t>(-1 - where.second)].name + "'",
                    "a member that never takes part", "every member of a group in all of its collectives");
    }
  }

  // For a collective that all members issue at the same time and that shares its links with nothing: seconds per byte, and the action
  // before which that holds. No seconds: it must be simulated.
  struct Isolated {
    double seconds = -1;
    std::int32_t before = 0;
    auto operator<=>(const Isolated&) const = default;
  };
  Isolated isolated(std::size_t collective, RankId rank) const {
    const Flows::Asked& asked = flows_.at(rank, patterns_.collective_slot(static_cast<int>(collective)));
    const auto parties = flows_.parties(asked.first);
    const auto twin = [&](RankId member) { return q_.twins[member.index()] == q_.twins[rank.index()]; };
    if (!std::all_of(parties.begin(), parties.end(), twin)) return {};
    Isolated found{.seconds = 0, .before = std::numeric_limits<std::int32_t>::max()};
    for (int p = 0; p < asked.phases; ++p) {
      const auto flow = static_cast<std::size_t>(q_.flow_of[static_cast<std::size_t>(asked.first + p)]);
      const FlowPath& path = paths_.of_flow[flow];
      if (!path.exclusive) found.before = std::min(found.before, runs_ == 1 ? path.exclusive_before : 0);
      found.seconds += q_.flows[flow].bytes * path.seconds_per_byte;
    }
    return found;
  }

  const std::vector<const SegmentSteps*>* steps_of(std::size_t c, RankId rank, RoleId role) {
    const StepVariant plain{costs_[role.index()], paces_[rank.index()], copies_[role.index()] ? role : RoleId{}, {}};
    std::vector<Isolated> all;
    if (granularity_ == Granularity::Stage) {
      all.resize(patterns_.collectives.size());
      for (std::size_t k = 0; k < all.size(); ++k)
        if (input_.phases_at(static_cast<int>(c), patterns_.collective_slot(static_cast<int>(k))).count > 0)
          all[k] = isolated(k, rank);
    }
    const int streams = static_cast<int>(plan_.roles[role.index()].streams.size());
    const auto [at, added] = sets_.try_emplace({role, plain, all}, nullptr);
    if (!added) return at->second;
    std::vector<std::int32_t> last(plan_.segments.size(), -1);  // action that issues a segment
    const std::vector<Action>& actions = plan_.roles[role.index()].actions;
    for (std::size_t a = 0; a < actions.size(); ++a) last[actions[a].segment.index()] = static_cast<std::int32_t>(a);
    std::vector<const SegmentSteps*>& set = input_.step_sets.emplace_back(plan_.segments.size(), nullptr);
    for (const SegmentId s : patterns_.segments[role.index()]) {
      StepVariant variant = plain;
      for (const Isolated& each : all) variant.merged.push_back(last[s.index()] < each.before ? each.seconds : -1);
      const auto [steps, fresh] = steps_.try_emplace({s, streams, variant}, nullptr);
      if (fresh)
        steps->second = &input_.all_steps.emplace_back(
            make_steps(plan_, patterns_, s, meeting_points_.segments[s.index()], variant, streams, granularity_));
      set[s.index()] = steps->second;
    }
    return at->second = &set;
  }

  const Plan& plan_;
  const Patterns& patterns_;
  const Flows& flows_;
  const Quotient& q_;
  const FlowPaths& paths_;
  const std::vector<RankSpeed>& paces_;
  Granularity granularity_;
  int runs_;
  MeetingPoints meeting_points_;
  std::vector<const CostTable*> costs_ = {};   // [role]
  std::vector<std::vector<int>> points_ = {};  // [role]: meeting points that it uses
  std::vector<char> copies_ = {};              // [role]
  std::map<std::pair<int, int>, int> meetings_ = {};
  std::map<std::tuple<RoleId, StepVariant, std::vector<Isolated>>, const std::vector<const SegmentSteps*>*> sets_ = {};
  std::map<std::tuple<SegmentId, int, StepVariant>, const SegmentSteps*> steps_ = {};
  PlayerInput input_ = {};
};

}  // namespace

PlayerInput make_player_input(const Plan& plan, const Patterns& patterns, const Flows& flows, const Quotient& quotient,
                              const FlowPaths& paths, const std::vector<RankSpeed>& paces, Granularity granularity, int runs) {
  return PlayerInputBuilder(plan, patterns, flows, quotient, paths, paces, granularity, runs).build();
}

}  // namespace foreshard::player
