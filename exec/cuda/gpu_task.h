// GpuTask: a task that a thread enqueues on a CUDA stream; the GPU runs it later.
#pragma once

#include <thread>

#include "exec/base/stop.h"
#include "exec/cuda/runtime.h"
#include "exec/device/device.h"

namespace foreshard::gpu {

// The stream on which a task is to be enqueued, and the memory that the tasks of this stream share.
struct OnStream {
  Runtime& runtime;
  Stream* stream;
  std::byte *scratch, *workspace;
  Event* met;  // recorded when all ranks that take part have arrived; null: the run is not timed
  bool has_met = false;

  // A task that communicates calls it at the point of its enqueued work at which the other ranks have arrived.
  void tell_met() {
    if (!met) return;
    runtime.record(met, stream);
    has_met = true;
  }
};

class GpuTask : public StreamTask {
 public:
  virtual void enqueue(OnStream& on, int run) = 0;
  virtual bool meets() const { return false; }  // it may wait for other ranks
  // It enqueues exactly the same work in every run, so a CUDA graph can replay it
  virtual bool repeats() const { return false; }
  TaskTimes run(int run) override;  // never called; asserts
};

// Called in loops that poll the GPU: yields the processor; throws Stopped if the run has failed.
inline void yield_unless_stopped(const Stop& stop) {
  if (stop.raised()) throw Stopped{};
  std::this_thread::yield();
}

}  // namespace foreshard::gpu
