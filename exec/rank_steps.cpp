#include "exec/rank_steps.h"

#include <map>
#include <string>

#include "core/error.h"
#include "core/program_order.h"

namespace foreshard {

namespace {

class StepList {
 public:
  StepList(const Plan& plan, const Ranks& ranks, RankId rank)
      : plan_(plan), ranks_(ranks), rank_(rank), role_(plan.roles[ranks.role(rank).index()]) {}

  std::vector<RankStep> build() {
    find_last_records();
    for (std::size_t a = 0; a < role_.actions.size(); ++a) {
      first_of_action_ = static_cast<int>(steps_.size());
      const Segment& segment = plan_.segments[role_.actions[a].segment.index()];
      for (std::size_t i = 0; i < segment.instructions.size(); ++i)
        add(static_cast<std::int32_t>(a), static_cast<std::int32_t>(i), segment.instructions[i]);
    }
    return std::move(steps_);
  }

 private:
  using EventSlot = std::pair<EventId, std::int32_t>;

  // The records that a wait at the start of a run binds to: the last ones of the run before.
  void find_last_records() {
    int step = 0;
    for (const Action& action : role_.actions)
      for (const Instruction& instruction : plan_.segments[action.segment.index()].instructions) {
        for (const EventUse& use : instruction.records) last_of_run_[{use.event, value_of(use.slot, action)}] = step;
        ++step;
      }
  }

  void add(std::int32_t a, std::int32_t i, const Instruction& instruction) {
    const Action& action = role_.actions[static_cast<std::size_t>(a)];
    const int own = static_cast<int>(steps_.size());
    RankStep step{.action = a, .instruction = i, .stream = instruction.stream};
    for (const std::int32_t earlier : instruction.after) depend(step, first_of_action_ + earlier);
    for (const EventUse& use : instruction.waits) {
      const EventSlot key{use.event, value_of(use.slot, action)};
      if (const auto known = recorded_.find(key); known != recorded_.end())
        depend(step, known->second);
      else if (const auto last = last_of_run_.find(key); last != last_of_run_.end())
        step.after_previous.push_back(last->second);
    }
    for (const EventUse& use : instruction.records) recorded_[{use.event, value_of(use.slot, action)}] = own;
    if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
      step.members = ranks_.members(collective->group, rank_);
      step.sequence = collectives_[collective->group]++;
    } else if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
      if (exchange->to) step.to = peer(*exchange->to, instruction), step.sent = sent_[{step.to, exchange->tag}]++;
      if (exchange->from)
        step.from = peer(*exchange->from, instruction), step.received = received_[{step.from, exchange->tag}]++;
    }
    steps_.push_back(std::move(step));
  }

  void depend(RankStep& step, int on) const {
    if (steps_[static_cast<std::size_t>(on)].stream != step.stream) step.after.push_back(on);
  }

  RankId peer(const Peer& peer, const Instruction& instruction) const {
    const RankId other = ranks_.peer(rank_, peer);
    if (!other.valid())
      throw Error("plan", "rank " + std::to_string(rank_.value) + ", " + instruction.name, "a peer that does not exist",
                  "a role and coordinate of the plan");
    return other;
  }

  const Plan& plan_;
  const Ranks& ranks_;
  RankId rank_;
  const Role& role_;
  std::vector<RankStep> steps_;
  int first_of_action_ = 0;
  std::map<EventSlot, int> last_of_run_, recorded_;
  std::map<GroupId, std::int64_t> collectives_;
  std::map<std::pair<RankId, std::string>, std::int64_t> sent_, received_;
};

}  // namespace

std::vector<RankStep> steps_of(const Plan& plan, const Ranks& ranks, RankId rank) {
  return StepList(plan, ranks, rank).build();
}

}  // namespace foreshard
