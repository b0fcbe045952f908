// A task of a GPU's stream: something that is put on the stream, not run by the thread that does so.
#pragma once

#include <thread>

#include "exec/base/stop.h"
#include "exec/cuda/runtime.h"
#include "exec/device/device.h"

namespace foreshard::gpu {

// What a task puts on its stream.
struct OnStream {
  Runtime& runtime;
  Stream* stream;
  std::byte *scratch, *workspace;
  Event* met;  // null: times are not asked for
  bool has_met = false;

  // By a task that meets others, when they are there.
  void tell_met() {
    if (!met) return;
    runtime.record(met, stream);
    has_met = true;
  }
};

class GpuTask : public StreamTask {
 public:
  virtual void enqueue(OnStream& on, int run) = 0;
  virtual bool meets() const { return false; }
  virtual bool repeats() const { return false; }  // puts the same on its stream in every run
  TaskTimes run(int run) override;                // never called: an assertion
};

// Between two questions to the GPU, which may never say yes.
inline void yield_unless_stopped(const Stop& stop) {
  if (stop.raised()) throw Stopped{};
  std::this_thread::yield();
}

}  // namespace foreshard::gpu
