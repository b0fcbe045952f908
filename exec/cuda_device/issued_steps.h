// The steps of a rank that have been issued and are not known to have ended. The rank's thread hears of their ends in issue order, and tells the
// observer with their times; the streams' threads fill in what they put on the streams.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <string>

#include "exec/base/stop.h"
#include "exec/cuda/run_clock.h"
#include "exec/cuda/step_graphs.h"
#include "exec/device/device.h"

namespace foreshard::gpu {

// Numbers that stand there when the step ends.
struct KeptNumbers {
  int step = 0;
  Operand at = {};
  std::byte* copies = nullptr;  // pinned, one per run that may be under way

  Bytes bytes() const { return size_of(at.dtype) * at.elements; }
  std::byte* copy_of(int run) const { return copies + bytes().value * (run % kRunsUnderWay); }
};

struct IssuedStep {
  int step = 0, run = 0;
  Event *begin = nullptr, *met = nullptr, *end = nullptr;  // timed; null where times are not asked for
  Event* border = nullptr;                                 // timed, before the first step of a run that is not timed
  Event* over = nullptr;  // tells that `end` can be read; of a step by itself `end`, in a graph recorded after it
  bool has_met = false, in_graph = false;  // in a graph: the events are the graph's
  bool meets = false;                      // it may wait for another rank, which is no work
  const KeptNumbers* kept = nullptr;
  const std::string* name = nullptr;
  bool begun = false;  // the observer has heard of it
  std::atomic<bool> enqueued = false;
};

class IssuedSteps {
 public:
  // Runs from `timed_from` on tell their times.
  IssuedSteps(Runtime& runtime, const Stop& stop, RunClock& clock, EventPool& marks, int timed_from)
      : runtime_(runtime), stop_(stop), clock_(clock), marks_(marks), timed_from_(timed_from) {}

  void open(StepObserver& observer) { observer_ = &observer; }
  KeptNumbers& keep(int step, const Operand& numbers) { return kept_.emplace_back(KeptNumbers{.step = step, .at = numbers}); }

  // By the rank's thread.
  bool far_ahead(int run) const { return !steps_.empty() && steps_.front().run + kRunsUnderWay <= run; }
  IssuedStep& add(int step, int run, const GpuTask* task);
  void give_events(IssuedStep& step);  // its own; one of a graph has the graph's
  bool timed(int run) const { return run >= timed_from_; }
  bool all_timed() const { return timed_from_ == 0; }
  void poll();  // hears of what has ended; throws Stopped after a failure
  bool empty() const { return steps_.empty(); }

  void fails(int step, const std::string& why) { observer_->fails(step, why); }  // by any thread
  bool busy() const { return busy_.load(); }                                     // the GPU runs the oldest; for any thread

 private:
  void begin(IssuedStep& oldest);
  void deliver(const IssuedStep& done);

  Runtime& runtime_;
  const Stop& stop_;
  RunClock& clock_;
  EventPool& marks_;
  const int timed_from_;
  StepObserver* observer_ = nullptr;
  std::deque<KeptNumbers> kept_;
  std::deque<IssuedStep> steps_;      // in issue order
  std::map<int, std::string> names_;  // of steps, as a trace has them; made when they are first issued
  int issued_run_ = -1;
  std::atomic<bool> busy_ = false;
};

}  // namespace foreshard::gpu
