// Converts CUDA events to times on the host's clock. CUDA gives the time between two events as a float in milliseconds, which is precise
// only for short times. So the time of an event is measured from an event of the same run, the base.
#pragma once

#include <cstdint>

#include "exec/cuda/gpu_memory.h"

namespace foreshard::gpu {

class RunClock {
 public:
  RunClock(Runtime& runtime, int gpu) : runtime_(runtime), events_(runtime, gpu, true) {}

  static std::int64_t now();  // the host's steady clock, nanoseconds
  void start(Stream* idle);   // makes the first base; called once before the first run with a stream that is empty
  void measure_timing(Stream* idle) { timing_ = event_overhead(runtime_, events_, idle); }

  // Events with timing, from a pool.
  Event* take() { return events_.take(); }
  void give(Event* event) { events_.give(event); }

  // Nanoseconds; the event is done
  std::int64_t time_of(Event* event) { return base_time_ + runtime_.nanoseconds(base_, event); }
  // Makes `event`, which happened at `time`, the base of `run` and returns the old base to the pool. If the run has a base already, `event`
  // itself is returned to the pool.
  void rebase(Event* event, std::int64_t time, int run);
  // Nanoseconds between two events recorded without work between them; 0: not measured
  std::int64_t timing() const { return timing_; }

 private:
  Runtime& runtime_;
  EventPool events_;
  Event* base_ = nullptr;
  std::int64_t base_time_ = 0;
  int base_run_ = -1;
  std::int64_t timing_ = 0;
};

}  // namespace foreshard::gpu
