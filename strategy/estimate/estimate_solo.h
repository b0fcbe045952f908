// One rank playing its actions with nobody else about: its streams, its events, its transfers. Communications of different
// streams share the links they meet on, as on the simulator, and slow the computes beside them. Internal to strategy/.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/trace.h"
#include "strategy/estimate/estimate_alone.h"

namespace foreshard {

// add() the actions in issue order, then run(), then ask. What a peer would delay is in the schedule's recurrence.
class Solo {
 public:
  Solo(const Plan& plan, AloneTimes& alone, RoleId role);

  // The computes of the next action do not begin before.
  void wait_until(double when) { not_before_ = std::max(not_before_, when); }
  void add(const Action& action);
  void run();

  double compute_end(std::size_t added) const { return compute_ends_[added]; }  // of the compute stream, after that action
  double end() const { return end_; }
  // A span per instruction, in issue order; `number` of the first action that was added.
  void write(std::vector<Span>& spans, std::int32_t number) const;

  double talk(const Action& action);  // seconds of its collectives on the compute stream, alone
  double send(SegmentId id);          // of the send of a segment, if it has one

 private:
  // Setup, then bytes on the links, or a compute.
  struct Step {
    const Instruction* run = nullptr;
    std::size_t lane = 0;
    std::int32_t action = 0, instruction = 0;  // as added
    double setup = 0, work = 0, share = 0;     // seconds alone; of the compute units
    int kind = -1;                             // of traffic
    double not_before = 0;
    std::vector<std::int32_t> after = {};  // steps
    double begin = -1, end = -1;
  };
  struct Lane {
    std::vector<std::int32_t> steps = {};
    std::size_t next = 0;
    std::int32_t running = -1;
  };
  // What is under way: a step of a lane, or a receive, which holds nobody up but has a kernel and bytes.
  struct Running {
    std::int32_t step = -1;  // -1: a receive
    double setup = 0, work = 0, share = 0;
    int kind = -1;
    bool computes = false, aside = false;  // aside: on another stream than the computes
    double speed = 1;
  };

  Step step_of(const Instruction& run, const Cost& cost);
  void bind(const Instruction& run, const Action& action, std::int32_t first, Step& step) const;
  bool begin_one(std::size_t lane);
  void finish(std::int32_t step);
  void set_speeds();
  double next_moment() const;
  void advance(double to);
  const Cost& cost(SegmentId segment, std::size_t i) const { return costs_->by_segment[segment.index()][i]; }
  static std::int32_t slot(const Slot& slot, const Action& action);

  const Plan& plan_;
  AloneTimes& alone_;
  RoleId role_;
  const CostTable* costs_;                                                     // of the role's devices
  std::int32_t newest_compute_ = -1;                                           // step on the compute stream
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> events_ = {};  // {event, slot}: the newest record
  double not_before_ = 0;
  std::vector<Step> steps_ = {};
  std::vector<Lane> lanes_ = {};
  std::vector<std::int32_t> last_compute_ = {};  // [action]: the newest step on the compute stream; -1: none yet
  std::vector<double> compute_ends_ = {};
  std::vector<Running> running_ = {};
  std::vector<std::pair<int, std::size_t>> talking_ = {};  // kind, index of what is under way
  std::vector<int> kinds_ = {};
  double now_ = 0, end_ = 0;
};

}  // namespace foreshard
