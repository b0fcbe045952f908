// What a device tells of times. CUDA gives the time between two events as a float of milliseconds, so all are taken from an event of the same run.
#include <utility>

#include "exec/cuda/cuda_device.h"
#include "exec/host/host_convert.h"

namespace foreshard::gpu {

std::int64_t CudaDevice::clock() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void CudaDevice::start_clock() {
  base_ = times_.take();
  runtime_.record(base_, outside_);
  runtime_.synchronize(outside_);
  base_time_ = clock();
  if (alone_) timing_ = time_of_timing(runtime_, times_, outside_);
}

void CudaDevice::deliver(const Pending& done) {
  if (done.border) rebase(done.border, time_of(done.border), done.run);
  TaskTimes times;
  if (done.end) {
    times.begin = time_of(done.begin);
    times.end = std::max(time_of(done.end), times.begin + 1);
    if (done.has_met) times.met = std::clamp(time_of(done.met), times.begin, times.end);
    times.own = std::max<std::int64_t>(1, times.end - std::max(times.begin, times.met) - timing_);
  }
  if (const Kept* kept = done.kept)
    host::load({kept->copy_of(done.run), kept->at.elements, kept->at.dtype}, 0, kept->at.elements, times.kept.data());
  observer_->ends(done.step, done.run, times);
  if (done.in_graph) return;
  if (!done.end) return marks_.give(done.over);
  times_.give(done.met);
  times_.give(done.end);
  rebase(done.begin, times.begin, done.run);
}

// The first event of a run is what times of that run are taken from.
void CudaDevice::rebase(Event* event, std::int64_t time, int run) {
  if (run == base_run_) return times_.give(event);
  base_run_ = run;
  base_time_ = time;
  times_.give(base_);
  base_ = event;
}

}  // namespace foreshard::gpu
