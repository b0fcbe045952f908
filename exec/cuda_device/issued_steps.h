// The steps of a rank that have been issued and are not known to have ended. The rank's thread polls them in issue order, and tells the
// observer which have ended and when. The threads of the streams set the events that they enqueue for a step.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <string>

#include "exec/base/stop.h"
#include "exec/cuda/gpu_memory.h"
#include "exec/cuda/run_clock.h"
#include "exec/cuda/step_graphs.h"
#include "exec/device/device.h"

namespace foreshard::gpu {

// Numbers that are copied to the host whenever the step ends (DeviceBackend::keep).
struct KeptNumbers {
  Operand at = {};              // the numbers on the GPU
  std::byte* copies = nullptr;  // pinned memory for one copy per run that may be under way

  Bytes bytes() const { return size_of(at.dtype) * at.elements; }
  std::byte* copy_of(int run) const { return copies + bytes().value * (run % kRunsUnderWay); }
};

struct IssuedStep {
  int step = 0, run = 0;
  Event *begin = nullptr, *met = nullptr, *end = nullptr;  // CUDA events with timing; null if the run is not timed
  Event* border = nullptr;  // CUDA event with timing at the start of a run that is not timed; else null
  // The step has ended when this event is done: `end`, or for a step in a graph an event after the graph
  Event* over = nullptr;
  // has_met: `met` has been recorded. in_graph: the step is part of a CUDA graph, which owns its events.
  bool has_met = false, in_graph = false;
  bool meets = false;  // the step may wait for another rank; such waiting does not count as computing
  const KeptNumbers* kept = nullptr;
  const std::string* name = nullptr;   // StepObserver::label
  bool begun = false;                  // the observer has been told that it begins
  std::atomic<bool> enqueued = false;  // all of it is on the CUDA stream
};

class IssuedSteps {
 public:
  // Runs from number `timed_from` on are timed: the observer is told when each of their steps began and ended on the GPU.
  IssuedSteps(Runtime& runtime, const Stop& stop, RunClock& clock, EventPool& marks, int timed_from)
      : runtime_(runtime), stop_(stop), clock_(clock), marks_(marks), timed_from_(timed_from) {}

  void open(StepObserver& observer) { observer_ = &observer; }
  // Before the first run, in this order: what to keep, and memory for it.
  void keep(int step, const Operand& numbers) { kept_[step].at = numbers; }
  void allocate_kept(GpuMemory& memory);

  // Called by the rank's thread.
  // Whether `run` must not be issued yet, because kRunsUnderWay runs before it have not ended.
  bool far_ahead(int run) const { return !steps_.empty() && steps_.front().run + kRunsUnderWay <= run; }
  IssuedStep& add(int step, int run, const GpuTask* task);  // the reference is valid until the step has ended
  void give_events(IssuedStep& step);                       // gives it events of its own; a step in a graph uses the graph's
  bool timed(int run) const { return run >= timed_from_; }
  bool all_timed() const { return timed_from_ == 0; }
  // Tells the observer of the steps that have ended since the last call; does not block; throws Stopped after a failure
  void poll();
  bool empty() const { return steps_.empty(); }

  // Called by any thread.
  void fails(int step, const std::string& why) { observer_->fails(step, why); }
  // At the last `poll`, the oldest step was on the GPU, and not waiting for other ranks
  bool busy() const { return busy_.load(); }

 private:
  void begin(IssuedStep& oldest);
  void deliver(const IssuedStep& done);

  Runtime& runtime_;
  const Stop& stop_;
  RunClock& clock_;
  EventPool& marks_;
  const int timed_from_;
  StepObserver* observer_ = nullptr;
  std::map<int, KeptNumbers> kept_;   // of a step
  std::deque<IssuedStep> steps_;      // in issue order
  std::map<int, std::string> names_;  // label of each step, made when it is first issued
  int issued_run_ = -1;
  std::atomic<bool> busy_ = false;
};

}  // namespace foreshard::gpu
