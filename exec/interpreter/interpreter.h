// Interpreter: runs the program of one rank. It enqueues the instructions on the streams of a device in issue order, with the events
// between streams, and records when each ran. It is the same code for every kind of device.
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "core/plan/program.h"
#include "exec/arithmetic/loss_scale_state.h"
#include "exec/base/stop.h"
#include "exec/communicator/communicator.h"
#include "exec/device/device.h"
#include "exec/interpreter/expert_counts.h"
#include "exec/interpreter/rank_steps.h"
#include "exec/rank/rank_memory.h"
#include "exec/rank/rank_place.h"

namespace foreshard {

// Times of a measured step, in nanoseconds of the device's clock. `ready`: when all its dependencies had ended. `begin`: the same, but for
// communication, when all ranks that take part had arrived.
struct StepSpan {
  std::int64_t ready = 0, begin = 0, end = 0;
  std::int64_t own = 0;  // its cost without waiting (TaskTimes::own)
  // Number of steps that the device ran as one (JoinedTasks), for the first of them, which has the time of all; 0 for the others.
  int count = 1;
};

struct InterpreterOptions {
  int runs = 1;
  int first_step = 0;             // optimizer steps of the training before the first run
  std::int64_t first_sample = 0;  // samples used before the first run
  std::uint64_t seed = 0;
  OptimizerSettings optimizer = {};
  const Samples* samples = nullptr;
  MemoryChecks checks = {};
  std::function<void(RankId rank, int action, int instruction, int run)> before = {};  // ExecuteOptions::before
  std::vector<RouterName> routers = {};                                                // routers_of the plan
};

class Interpreter : public StepObserver {
 public:
  // Allocates the arenas and makes the tasks of all instructions. All arguments must outlive it. Throws Error for a plan that cannot be run
  // here.
  Interpreter(const Plan& plan, const Ranks& ranks, RankId rank, DeviceBackend& device, Communicator& communicator, Stop& stop,
              const InterpreterOptions& options);

  void open();  // starts the streams; called once
  // Enqueues one run of the program, and unless it is the last, what the program issues ahead of the next; returns when all is enqueued.
  // Then all of it can come to an end without another call.
  void issue(int run, bool last);

  RankMemory& memory() { return memory_; }
  const RankMemory& memory() const { return memory_; }
  const std::vector<RankStep>& steps() const { return steps_; }
  // The times of a run, [step]. Only those of the last kept_runs() runs are kept.
  std::span<const StepSpan> spans(int run) const { return std::span(spans_).subspan(first_span(run), steps_.size()); }
  int kept_runs() const { return kept_runs_; }
  double loss(int run) const;  // this rank's contribution to the loss; the sum over all ranks is the loss
  // With a dynamic loss scale: its state after a run; the loss scale at the start of training (0: it is not dynamic); the memory of the
  // state.
  const LossScaleState& loss_scale(int run) const { return scales_[static_cast<std::size_t>(run)]; }
  double first_loss_scale() const { return judge_ ? judge_->scale_start : 0; }
  Operand loss_scale_state() const { return judge_ ? judge_->scale_at : Operand{}; }
  // How this rank's tokens chose experts in the last run, or in the one before it; empty for another one.
  ExpertCounts experts(int run) const {
    const Counted& counted = counted_[static_cast<std::size_t>(run % 2)];
    return counted.run == run ? counted.counts : ExpertCounts{};
  }
  LiveBytes peak(int run) const;  // peak of device memory, by category, from the blocks that the steps acquired and released

  // Progress, for a watching thread; may be called at any time: number of steps ended in all runs, and the steps that run now.
  std::int64_t ended() const { return ended_.load(std::memory_order_relaxed); }
  struct Running {
    int step = 0;
    bool communicates = false;  // it may be waiting for other ranks
  };
  std::vector<Running> running() const;
  std::string name(int step) const;  // names rank, action and instruction, for messages

  void begins(int step, int run) override;
  void ends(int step, int run, const TaskTimes& times) override;
  void fails(int step, const std::string& why) override;
  std::string label(int step) const override;

 private:
  struct Bound {  // a step with its task, blocks and events
    std::unique_ptr<StreamTask> task = {};
    std::vector<int> acquires = {}, releases = {};  // blocks
    std::vector<int> waits = {};                    // events of the device
    int record = -1;                                // the event that is recorded after it; -1: none
    int loss = -1;                                  // the number, within the run, of the loss that it computes; -1: none
    Operand loss_at = {};
    Operand scale_at = {};   // the state of a dynamic loss scale that it updates; no data: none
    double scale_start = 0;  // the loss scale at the start of training
    ExpertCounting experts = {};
    bool kept = false;  // the device reports the loss, the state or the counts in TaskTimes::kept
    bool communicates = false;
    bool computes = false;
    int joined = 1;  // StepSpan::count
  };

  void issue_action(int action, int run);
  void leave_when_stopped() const;  // throws Stopped
  void bind();
  void bind_events();
  void prepare();
  Bound bind(int index);
  Bound bind_compute(int index, const Action& action, const Instruction& instruction, const std::string& where,
                     bool on_host = false);
  MemoryRange stretch(const Use& use, const Action& action, Bytes offset, const std::string& where) const;
  std::unique_ptr<StreamTask> bind_collective(const RankStep& step, const Action& action, const Instruction& instruction,
                                              const std::string& where);
  std::unique_ptr<StreamTask> bind_exchange(const RankStep& step, const Action& action, const Instruction& instruction,
                                            const std::string& where);
  std::unique_ptr<StreamTask> bind_copy(const Action& action, const Instruction& instruction, const std::string& where);
  std::size_t first_span(int run) const { return static_cast<std::size_t>(run % kept_runs_) * steps_.size(); }
  StepSpan& span(int run, std::size_t step) { return spans_[first_span(run) + step]; }
  std::vector<int> blocks(const std::vector<Block>& list, const Action& action, const Instruction& of) const;

  const Plan& plan_;
  const Ranks& ranks_;
  RankPlace place_;
  const Role& role_;
  DeviceBackend& device_;
  Communicator& communicator_;
  Stop& stop_;
  InterpreterOptions options_;
  RankMemory memory_;
  std::vector<RankStep> steps_;
  IssueOrder order_;
  std::vector<std::size_t> first_step_;  // [action]; one more than actions
  int begun_ = -1;                       // the last run of which something has been issued
  std::vector<Bound> bound_;             // [step]
  const Bound* judge_ = nullptr;         // the step with the overflow check; null: none
  int events_ = 0, losses_of_run_ = 0;

  int kept_runs_ = 1;
  std::vector<StepSpan> spans_;         // [run % kept_runs * steps + step]
  std::vector<double> losses_;          // [run * losses_of_run_ + loss]
  std::vector<LossScaleState> scales_;  // [run]
  struct Counted {
    int run = -1;
    ExpertCounts counts = {};
  };
  Counted counted_[2];                     // [run % 2]: a run may begin before the one before it has ended
  std::vector<std::atomic<int>> running_;  // [stream]: the running step; -1: none
  std::atomic<std::int64_t> ended_ = 0;
};

}  // namespace foreshard
