#include "strategy/estimate_together.h"

#include <algorithm>
#include <array>
#include <set>

#include "strategy/estimate_solo.h"

namespace foreshard {

namespace {

constexpr std::size_t kBefore = 8, kAfter = 2;  // actions that are played before and after a moment
constexpr std::size_t kWarm = 6;                // of those before: not counted
constexpr int kPasses = 3;

// F; B or I; W.
std::size_t row(Work work) { return work == Work::F ? 0 : work == Work::W ? 2 : 1; }

// Seconds by work and stage, and how many were seen.
struct Seen {
  std::vector<std::array<double, 3>> seconds = {}, count = {};
  explicit Seen(std::size_t stages) : seconds(stages), count(stages) {}
};

std::array<double, 3> by_work(const StageDurations& stage, bool splits) {
  if (!splits) return {stage.forward, stage.backward, 0};
  return {stage.forward, stage.backward - stage.weights, stage.weights};
}

void play(const Plan& plan, AloneTimes& times, const ScheduleTiming<double>& timing, double moment, Seen& seen) {
  struct Added {
    std::size_t index = 0;
    Does does = {};
    double begin = 0;
  };
  Solo solo(plan, times, {0});
  std::vector<Added> counted;
  std::size_t added = 0;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const Role& role = plan.roles[r];
    const std::vector<std::size_t> listed = listed_actions(role);
    const std::vector<double>& begins = timing.begin[r];
    const auto next = static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), moment) - begins.begin());
    const std::size_t now = next > 0 ? next - 1 : 0, from = now > kBefore ? now - kBefore : 0;
    const std::size_t to = std::min(now + kAfter + 1, listed.size());
    solo.turn_to({static_cast<std::int32_t>(r)});
    for (std::size_t k = from; k < to; ++k) {
      solo.wait_until(begins[k]);
      for (std::size_t i = k == from ? listed[k] : listed[k - 1] + 1; i <= listed[k]; ++i, ++added) solo.add(role.actions[i]);
      if (k > from + (from > 0 ? kWarm : 0)) counted.push_back({added - 1, role.actions[listed[k]].does.front(), begins[k]});
    }
  }
  solo.run();
  for (const Added& each : counted) {
    const auto stage = static_cast<std::size_t>(each.does.stage);
    const double begin = std::max(each.begin, solo.compute_end(each.index - 1));
    seen.seconds[stage][row(each.does.work)] += solo.compute_end(each.index) - begin;
    seen.count[stage][row(each.does.work)] += 1;
  }
}

// Where a stage was not seen it is as much longer as the others.
std::vector<StageDurations> longer(const std::vector<StageDurations>& alone, const Seen& seen, bool splits) {
  std::array<double, 3> all = {}, all_alone = {};
  for (std::size_t s = 0; s < alone.size(); ++s)
    for (std::size_t w = 0; w < 3; ++w)
      if (seen.count[s][w] > 0) {
        all[w] += seen.seconds[s][w] / seen.count[s][w];
        all_alone[w] += by_work(alone[s], splits)[w];
      }
  std::vector<StageDurations> stages = alone;
  for (std::size_t s = 0; s < alone.size(); ++s) {
    std::array<double, 3> now = by_work(alone[s], splits);
    for (std::size_t w = 0; w < 3; ++w) {
      const double factor = all_alone[w] > 0 ? all[w] / all_alone[w] : 1;
      now[w] = std::max(now[w], seen.count[s][w] > 0 ? seen.seconds[s][w] / seen.count[s][w] : now[w] * factor);
    }
    StageDurations& stage = stages[s];
    stage.communication += now[0] + now[1] + now[2] - stage.forward - stage.backward;
    stage.forward_communication += now[0] - stage.forward;
    stage.forward = now[0], stage.backward = now[1] + now[2];
    if (splits) stage.weights = now[2];
  }
  return stages;
}

}  // namespace

std::vector<std::size_t> listed_actions(const Role& role) {
  std::vector<std::size_t> listed;
  for (std::size_t i = 0; i < role.actions.size(); ++i)
    if (!role.actions[i].does.empty() && role.actions[i].does.front().work != Work::Update) listed.push_back(i);
  return listed;
}

bool stages_meet(const Plan& plan, AloneTimes& alone) {
  std::vector<std::set<int>> kinds(plan.roles.size());
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    std::set<std::int32_t> segments;
    for (const Action& action : plan.roles[r].actions) segments.insert(action.segment.value);
    for (const std::int32_t segment : segments)
      for (const Instruction& run : plan.segments[static_cast<std::size_t>(segment)].instructions) {
        const auto* what = std::get_if<Collective>(&run.what);
        if (!what || plan.groups[what->group.index()].roles.size() > 1) continue;
        if (const int kind = alone.kind({static_cast<std::int32_t>(r)}, run); kind >= 0) kinds[r].insert(kind);
      }
  }
  for (std::size_t a = 0; a < kinds.size(); ++a)
    for (std::size_t b = a + 1; b < kinds.size(); ++b)
      for (const int left : kinds[a])
        for (const int right : kinds[b])
          if (alone.meet(left, right)) return true;
  return false;
}

std::vector<StageDurations> measure_together(
    const Plan& plan, AloneTimes& times, const std::vector<StageDurations>& alone,
    const std::function<ScheduleTiming<double>(const std::vector<StageDurations>&)>& timing_of) {
  std::vector<StageDurations> stages = alone;
  const Role& middle = plan.roles[plan.roles.size() / 2];
  const std::vector<std::size_t> listed = listed_actions(middle);
  bool splits = false;
  for (const std::size_t i : listed) splits |= middle.actions[i].does.front().work == Work::W;
  for (int pass = 0; pass < kPasses; ++pass) {
    const ScheduleTiming<double> timing = timing_of(stages);
    const std::vector<double>& begins = timing.begin[plan.roles.size() / 2];
    Seen seen(stages.size());
    for (const std::size_t quarter : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
      play(plan, times, timing, begins[(listed.size() - 1) * quarter / 4], seen);
    stages = longer(alone, seen, splits);
  }
  return stages;
}

}  // namespace foreshard
