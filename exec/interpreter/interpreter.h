// Walks the program of one rank: puts its instructions on the streams of a device in issue order, with the events between
// them, and keeps account of what they did. The only code that walks a program; the same for every device.
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "exec/arithmetic/loss_scale_state.h"
#include "exec/base/stop.h"
#include "exec/communicator/communicator.h"
#include "exec/device/device.h"
#include "exec/interpreter/rank_steps.h"
#include "exec/rank/rank_memory.h"
#include "exec/rank/rank_place.h"

namespace foreshard {

// A measured step, in nanoseconds of the device's clock.
struct StepSpan {
  std::int64_t ready = 0, begin = 0, end = 0;
  std::int64_t own = 0;  // its cost without waiting
  int count = 1;         // of its stream, it and those behind it, which the device told as one; 0: one of those behind
};

struct InterpreterOptions {
  int runs = 1;
  int first_step = 0;  // steps of the training and samples that lie before the first run
  std::int64_t first_sample = 0;
  std::uint64_t seed = 0;
  OptimizerSettings optimizer = {};
  const Samples* samples = nullptr;
  MemoryChecks checks = {};
  // Called on the stream's thread before each instruction: tests make ranks fail here.
  std::function<void(RankId rank, int action, int instruction, int run)> before = {};
};

class Interpreter : public StepObserver {
 public:
  // Allocates the arenas, makes every instruction ready. All arguments must outlive it.
  Interpreter(const Plan& plan, const Ranks& ranks, RankId rank, DeviceBackend& device, Communicator& communicator, Stop& stop,
              const InterpreterOptions& options);

  void open();          // starts the streams
  void issue(int run);  // returns when all is on the streams

  RankMemory& memory() { return memory_; }
  const RankMemory& memory() const { return memory_; }
  const std::vector<RankStep>& steps() const { return steps_; }
  // [step], of one of the last `kept_runs()` runs.
  std::span<const StepSpan> spans(int run) const { return std::span(spans_).subspan(first_span(run), steps_.size()); }
  int kept_runs() const { return kept_runs_; }
  double loss(int run) const;  // this rank's share
  // With a dynamic loss scale: its state after a run, what it began with (0: there is none), and where the state lies.
  const LossScaleState& loss_scale(int run) const { return scales_[static_cast<std::size_t>(run)]; }
  double first_loss_scale() const { return judge_ ? judge_->scale_start : 0; }
  Operand loss_scale_state() const { return judge_ ? judge_->scale_at : Operand{}; }
  LiveBytes peak(int run) const;  // of device memory, from the blocks it acquired and released

  // For whoever watches, at any time: how many steps have ended; those that run now (waiting for partners or not).
  std::int64_t ended() const { return ended_.load(std::memory_order_relaxed); }
  struct Running {
    int step = 0;
    bool communicates = false;
  };
  std::vector<Running> running() const;
  std::string name(int step) const;

  void begins(int step, int run) override;
  void ends(int step, int run, const TaskTimes& times) override;
  void fails(int step, const std::string& why) override;
  std::string label(int step) const override;

 private:
  struct Bound {  // what a step needs beside its RankStep
    std::unique_ptr<StreamTask> task = {};
    std::vector<int> acquires = {}, releases = {};  // blocks
    std::vector<int> waits = {};                    // events of the device
    int record = -1;
    int loss = -1;  // which loss of the run it makes
    Operand loss_at = {};
    Operand scale_at = {};   // the state of a dynamic loss scale that it makes; no data: it makes none
    double scale_start = 0;  // what that began with
    bool kept = false;       // the device tells the loss, or the state
    bool communicates = false;
    bool computes = false;
    int joined = 1;  // StepSpan::count
  };

  void leave_when_stopped() const;
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
  std::vector<Bound> bound_;      // [step]
  const Bound* judge_ = nullptr;  // of overflows
  int events_ = 0, losses_of_run_ = 0;

  int kept_runs_ = 1;
  std::vector<StepSpan> spans_;            // [run % kept_runs * steps + step]
  std::vector<double> losses_;             // [run * losses_of_run_ + loss]
  std::vector<LossScaleState> scales_;     // [run]
  std::vector<std::atomic<int>> running_;  // [stream]: step, -1 none
  std::atomic<std::int64_t> ended_ = 0;
};

}  // namespace foreshard
