// Times of what a GPU has done, on the host's clock. CUDA gives the time between two events as a float of milliseconds, so all are taken from an
// event of the same run: its base.
#pragma once

#include <cstdint>

#include "exec/cuda/gpu_memory.h"

namespace foreshard::gpu {

class RunClock {
 public:
  RunClock(Runtime& runtime, int gpu) : runtime_(runtime), events_(runtime, gpu, true) {}

  static std::int64_t now();  // nanoseconds
  void start(Stream* idle);   // before the first run
  void measure_timing(Stream* idle) { timing_ = time_of_timing(runtime_, events_, idle); }

  // Events that have a time.
  Event* take() { return events_.take(); }
  void give(Event* event) { events_.give(event); }

  std::int64_t time_of(Event* event) { return base_time_ + runtime_.nanoseconds(base_, event); }
  // The first event of a run, which happened at this time, is what times of that run are taken from. Gives an event back.
  void rebase(Event* event, std::int64_t time, int run);
  std::int64_t timing() const { return timing_; }  // what two events with nothing between are apart; 0: not measured

 private:
  Runtime& runtime_;
  EventPool events_;
  Event* base_ = nullptr;
  std::int64_t base_time_ = 0;
  int base_run_ = -1;
  std::int64_t timing_ = 0;
};

}  // namespace foreshard::gpu
