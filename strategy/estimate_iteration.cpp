#include "strategy/estimate_iteration.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "strategy/estimate_steps.h"
#include "strategy/estimate_traffic.h"

namespace foreshard {

namespace {

constexpr double kLeastLeft = 0.02;  // of the compute units, as on the simulator

std::size_t at(int n) { return static_cast<std::size_t>(n); }

// Steps of all actions, and who waits for whom.
class Ensemble {
 public:
  Ensemble(const Plan& plan, AloneTimes& alone, const PlayedPlan& program);
  bool run();  // false: the ranks wait for each other
  Iteration result() const;

 private:
  struct Instance {
    const PlayedStep* of = nullptr;
    const PlayedSegment* segment = nullptr;
    std::int32_t base = 0, action = 0;          // first step of its action; of the role
    std::int32_t first_wait = 0, end_wait = 0;  // waits_
    std::int32_t send = -1, receive = -1;       // transfers_
  };
  enum class Phase : std::uint8_t { Idle, Setup, Links, Busy, Waiting };
  struct Lane {
    int role = 0;
    bool main = false, disturbs = false;  // the compute stream; its kernels have computes beside them
    std::vector<std::int32_t> steps = {};
    std::size_t next = 0;
    Phase phase = Phase::Idle;
    int parts = 0;     // transfers of the step that have not ended
    double share = 0;  // of the compute units, now
    double begun = 0;
    double compute = 0, communication = 0;  // seconds in forwards and backwards so far
    // Of a compute under way: where in its step it is, and what is left.
    const PlayedStretch *stretch = nullptr, *end = nullptr;
    double gone = 0, computing = 0, fixed = 0, since = 0, left = 1;
  };
  struct Transfer {
    int needed = 2;
    std::vector<int> lanes = {};  // that are there
    double setup = 0, bytes = 0, work = 0;
    int kind = -1;
    Phase phase = Phase::Idle;
  };
  struct Flow {  // bytes of a lane or, from lanes_.size() on, of a transfer, in seconds alone
    double work = 0, speed = 0, since = 0;
  };
  struct Timer {
    double when = 0;
    std::int64_t order = 0;
    int owner = 0;
    std::uint32_t version = 0;
    bool operator>(const Timer& other) const { return std::pair(when, order) > std::pair(other.when, other.order); }
  };

  void lay_out(RoleId role);
  int transfer(int channel, std::vector<int>& used);
  bool begin_one(int lane);
  bool ready(const Instance& step) const;
  void arrive(int lane, int transfer, const PlayedStep& step, bool sends);
  void depart(int transfer);
  void take(int lane, double share);
  void set_timer(int owner, double when);
  void elapsed(Lane& lane) const;
  void pace(int role);
  void share_out();
  void count(Lane& lane, const PlayedStep& step);
  void complete(int lane);
  void end_transfer(int transfer);
  void timed(int owner);
  void settle();

  const Plan& plan_;
  const AloneTimes& alone_;
  const PlayedPlan& program_;
  std::vector<Instance> steps_ = {};
  std::vector<char> done_ = {};
  std::vector<std::int32_t> waits_ = {};
  std::vector<Lane> lanes_ = {};
  std::vector<std::pair<int, int>> lanes_of_ = {};  // [role]: first, end
  std::vector<Transfer> transfers_ = {};
  std::vector<std::vector<int>> of_channel_ = {};  // [channel]: transfers, in order
  std::vector<std::uint32_t> versions_ = {};       // [owner]
  std::vector<Flow> flows_ = {};                   // [owner]
  std::optional<Traffic> traffic_ = {};
  bool traffic_changed_ = false;
  std::vector<char> is_slowed_ = {};
  std::vector<int> slowed_ = {}, awake_ = {};  // roles
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_ = {};
  std::int64_t order_ = 0;
  double now_ = 0, last_backward_ = 0;
};

Ensemble::Ensemble(const Plan& plan, AloneTimes& alone, const PlayedPlan& program)
    : plan_(plan), alone_(alone), program_(program) {
  steps_.reserve(program.steps());
  of_channel_.resize(at(program.channels()));
  for (std::size_t r = 0; r < plan.roles.size(); ++r) lay_out({static_cast<std::int32_t>(r)});
  done_.assign(steps_.size(), false);
  versions_.assign(lanes_.size() + transfers_.size(), 0);
  flows_.resize(versions_.size());
  traffic_.emplace(alone, versions_.size());
  is_slowed_.assign(plan.roles.size(), false);
}

// The manieth use of a channel by one of its ends.
int Ensemble::transfer(int channel, std::vector<int>& used) {
  if (channel < 0) return -1;
  std::vector<int>& all = of_channel_[at(channel)];
  const int number = used[at(channel)]++;
  if (number == static_cast<int>(all.size())) {
    all.push_back(static_cast<int>(transfers_.size()));
    transfers_.push_back({.needed = program_.parties(channel)});
  }
  return all[at(number)];
}

void Ensemble::lay_out(RoleId id) {
  const Role& role = plan_.roles[id.index()];
  const auto first = static_cast<int>(lanes_.size());
  for (std::size_t s = 0; s < role.streams.size(); ++s) lanes_.push_back({.role = id.value, .main = s == 0});
  lanes_of_.emplace_back(first, static_cast<int>(lanes_.size()));
  std::vector<std::vector<std::int32_t>> newest;  // [event][slot]: step
  for (const Event& event : role.events) newest.emplace_back(at(event.slots), -1);
  std::vector<int> sent(at(program_.channels())), received = sent;
  std::vector<char> computes(role.streams.size());
  for (std::size_t a = 0; a < role.actions.size(); ++a) {
    const Action& action = role.actions[a];
    const auto slot = [&](const EventUse& use) -> std::int32_t& {
      const auto* fixed = std::get_if<std::int32_t>(&use.slot.which);
      return newest[use.event.index()][at(fixed ? *fixed : action.args[std::get<ParamId>(use.slot.which).index()])];
    };
    const PlayedSegment& segment = program_.at(id, action.segment);
    const auto base = static_cast<std::int32_t>(steps_.size());
    for (const PlayedStep& step : segment.steps) {
      computes[at(step.stream)] |= static_cast<char>(step.computes);
      Instance one{.of = &step, .segment = &segment, .base = base, .action = static_cast<std::int32_t>(a)};
      one.send = transfer(step.send, sent), one.receive = transfer(step.receive, received);
      lanes_[at(first + step.stream)].steps.push_back(static_cast<std::int32_t>(steps_.size()));
      steps_.push_back(one);
    }
    for (const PlayedEvent& event : segment.events) {
      Instance& one = steps_[at(base + event.step)];
      if (event.records) {
        slot(event.use) = base + event.step;
      } else if (const std::int32_t record = slot(event.use); record >= 0) {
        if (one.first_wait == one.end_wait) one.first_wait = static_cast<std::int32_t>(waits_.size());
        waits_.push_back(record);
        one.end_wait = static_cast<std::int32_t>(waits_.size());
      }
    }
  }
  const auto all = std::count(computes.begin(), computes.end(), char{1});
  for (std::size_t s = 0; s < computes.size(); ++s) lanes_[at(first) + s].disturbs = all > computes[s];
}

bool Ensemble::ready(const Instance& step) const {
  for (const std::int32_t after : step.of->after)
    if (!done_[at(step.base + after)]) return false;
  for (std::int32_t w = step.first_wait; w < step.end_wait; ++w)
    if (!done_[at(waits_[at(w)])]) return false;
  return true;
}

// True when it ended at once.
bool Ensemble::begin_one(int number) {
  Lane& lane = lanes_[at(number)];
  if (lane.phase != Phase::Idle || lane.next == lane.steps.size()) return false;
  const Instance& step = steps_[at(lane.steps[lane.next])];
  if (!ready(step)) return false;
  const PlayedStep& of = *step.of;
  if (step.send >= 0 || step.receive >= 0) {
    lane.phase = Phase::Waiting;
    lane.parts = (step.send >= 0 ? 1 : 0) + (step.receive >= 0 ? 1 : 0);
    if (step.send >= 0) arrive(number, step.send, of, true);
    if (step.receive >= 0) arrive(number, step.receive, of, false);
    return false;
  }
  lane.begun = now_;
  if (of.computing + of.fixed + of.work <= 0) {
    complete(number);
    return true;
  }
  if (of.computes) {
    lane.phase = Phase::Busy;
    lane.stretch = step.segment->stretches.data() + of.first_stretch;
    lane.end = step.segment->stretches.data() + of.end_stretch;
    lane.gone = 0, lane.computing = of.computing, lane.fixed = of.fixed, lane.since = now_;
    set_timer(number, now_ + lane.computing / lane.left + lane.fixed);
    return false;
  }
  take(number, of.share);
  lane.phase = of.kind >= 0 ? Phase::Setup : Phase::Busy;
  set_timer(number, now_ + of.fixed);
  return false;
}

void Ensemble::arrive(int lane, int number, const PlayedStep& step, bool sends) {
  Transfer& transfer = transfers_[at(number)];
  transfer.setup = std::max(transfer.setup, step.fixed);
  transfer.bytes = std::max(transfer.bytes, step.bytes);
  if (sends && (transfer.kind < 0 || step.work > transfer.work)) transfer.kind = step.kind, transfer.work = step.work;
  transfer.lanes.push_back(lane);
  if (static_cast<int>(transfer.lanes.size()) == transfer.needed) depart(number);
}

void Ensemble::depart(int number) {
  Transfer& transfer = transfers_[at(number)];
  for (const int lane : transfer.lanes) {
    Lane& party = lanes_[at(lane)];
    party.begun = now_;
    take(lane, steps_[at(party.steps[party.next])].of->share);
  }
  transfer.work = transfer.bytes * alone_.per_byte(transfer.kind);  // each end has a cost of its own
  transfer.phase = Phase::Setup;
  set_timer(static_cast<int>(lanes_.size()) + number, now_ + transfer.setup);
}

void Ensemble::take(int number, double share) {
  Lane& lane = lanes_[at(number)];
  if (!lane.disturbs || lane.share == share) return;
  lane.share = share;
  if (!std::exchange(is_slowed_[at(lane.role)], true)) slowed_.push_back(lane.role);
}

void Ensemble::set_timer(int owner, double when) { timers_.push({when, order_++, owner, ++versions_[at(owner)]}); }

// Passes over what a compute has done since the last time.
void Ensemble::elapsed(Lane& lane) const {
  double passed = now_ - std::exchange(lane.since, now_);
  if (lane.stretch == lane.end) {
    lane.computing = std::max(0.0, lane.computing - passed * lane.left);
    return;
  }
  while (lane.stretch != lane.end && passed > 0) {
    const double speed = lane.stretch->computes ? lane.left : 1, rest = lane.stretch->seconds - lane.gone;
    const double step = std::min(rest, passed * speed);
    double& left = lane.stretch->computes ? lane.computing : lane.fixed;
    left = std::max(0.0, left - step);
    lane.gone += step, passed -= step / speed;
    if (step < rest) return;
    ++lane.stretch, lane.gone = 0;
  }
}

// How fast the computes of a role are beside its kernels.
void Ensemble::pace(int role) {
  const auto [first, end] = lanes_of_[at(role)];
  double taken = 0;
  for (int lane = first; lane < end; ++lane) taken += lanes_[at(lane)].share;
  const double left = std::max(kLeastLeft, 1 - taken);
  for (int number = first; number < end; ++number) {
    Lane& lane = lanes_[at(number)];
    if (left == lane.left) continue;
    const bool computes = lane.phase == Phase::Busy && steps_[at(lane.steps[lane.next])].of->computes;
    if (computes) elapsed(lane);
    lane.left = left;
    if (computes) set_timer(number, now_ + lane.computing / left + lane.fixed);
  }
}

void Ensemble::share_out() {
  traffic_changed_ = false;
  for (const auto& [owner, speed] : traffic_->speeds()) {
    Flow& flow = flows_[at(owner)];
    if (speed == flow.speed) continue;
    flow.work = std::max(0.0, flow.work - (now_ - flow.since) * flow.speed);
    flow.since = now_, flow.speed = speed;
    set_timer(owner, now_ + flow.work / speed);
  }
}

// A step of a forward or backward on the compute stream.
void Ensemble::count(Lane& lane, const PlayedStep& step) {
  last_backward_ = now_;
  const double passed = now_ - lane.begun;
  if (step.computes) lane.compute += passed - step.fixed, lane.communication += step.fixed;
  if (!step.computes && step.send < 0 && step.receive < 0) lane.communication += passed;
}

void Ensemble::complete(int number) {
  Lane& lane = lanes_[at(number)];
  const Instance& step = steps_[at(lane.steps[lane.next])];
  done_[at(lane.steps[lane.next])] = true;
  take(number, 0);
  if (lane.main) {
    const Action& action = plan_.roles[at(lane.role)].actions[at(step.action)];
    if (!action.does.empty() && action.does.front().work != Work::Update) count(lane, *step.of);
  }
  ++lane.next;
  lane.phase = Phase::Idle;
  awake_.push_back(lane.role);
}

void Ensemble::end_transfer(int number) {
  for (const int lane : transfers_[at(number)].lanes)
    if (--lanes_[at(lane)].parts == 0) complete(lane);
}

// What an owner waited for is over: the setup, the bytes, or a compute.
void Ensemble::timed(int owner) {
  const int number = owner - static_cast<int>(lanes_.size());
  Phase& phase = number < 0 ? lanes_[at(owner)].phase : transfers_[at(number)].phase;
  const PlayedStep* step = number < 0 ? steps_[at(lanes_[at(owner)].steps[lanes_[at(owner)].next])].of : nullptr;
  const int kind = step ? step->kind : transfers_[at(number)].kind;
  const double work = step ? step->work : transfers_[at(number)].work;
  if (phase == Phase::Setup && kind >= 0 && work > 0) {
    phase = Phase::Links;
    flows_[at(owner)] = {.work = work, .since = now_};
    traffic_->begin(owner, kind);
    traffic_changed_ = true;
    return;
  }
  if (phase == Phase::Links) {
    traffic_->end(owner);
    traffic_changed_ = true;
  }
  if (number < 0)
    complete(owner);
  else
    end_transfer(number);
}

void Ensemble::settle() {
  while (!awake_.empty()) {
    const auto [first, end] = lanes_of_[at(awake_.back())];
    awake_.pop_back();
    for (int lane = first; lane < end; ++lane)
      while (begin_one(lane)) {
      }
  }
}

bool Ensemble::run() {
  for (std::size_t role = plan_.roles.size(); role-- > 0;) awake_.push_back(static_cast<int>(role));
  settle();
  for (;;) {
    while (!timers_.empty() && timers_.top().version != versions_[at(timers_.top().owner)]) timers_.pop();
    if (timers_.empty() || timers_.top().when > now_) {  // nothing more happens now
      for (const int role : slowed_) is_slowed_[at(role)] = false, pace(role);
      slowed_.clear();
      if (traffic_changed_) share_out();
      while (!timers_.empty() && timers_.top().version != versions_[at(timers_.top().owner)]) timers_.pop();
      if (timers_.empty()) break;
    }
    const Timer timer = timers_.top();
    timers_.pop();
    ++versions_[at(timer.owner)];
    now_ = std::max(now_, timer.when);
    timed(timer.owner);
    settle();
  }
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.next == lane.steps.size(); });
}

Iteration Ensemble::result() const {
  Iteration played{.end = now_, .last_backward = last_backward_};
  for (const Lane& lane : lanes_)
    if (lane.main && lane.compute + lane.communication > played.compute + played.communication)
      played.compute = lane.compute, played.communication = lane.communication;
  return played;
}

}  // namespace

Iteration play_iteration(const Plan& plan, AloneTimes& alone) {
  const PlayedPlan program(plan, alone);
  Ensemble ensemble(plan, alone, program);
  if (!ensemble.run()) throw Error("plan", "order of exchanges and collectives", "ranks that wait for each other", "one order");
  return ensemble.result();
}

}  // namespace foreshard
