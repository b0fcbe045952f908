#include "exec/cuda/run_clock.h"

#include "exec/base/steady_now.h"

namespace foreshard::gpu {

std::int64_t RunClock::now() { return steady_now(); }

void RunClock::start(Stream* idle) {
  base_ = events_.take();
  runtime_.record(base_, idle);
  runtime_.synchronize(idle);
  base_time_ = now();
}

void RunClock::rebase(Event* event, std::int64_t time, int run) {
  if (run == base_run_) return events_.give(event);
  base_run_ = run;
  base_time_ = time;
  events_.give(base_);
  base_ = event;
}

}  // namespace foreshard::gpu
