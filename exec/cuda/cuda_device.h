// A GPU as the device of one rank. Tasks put launches on CUDA streams and return; the steps that have ended are heard of later, in
// issue order, whenever the rank's thread looks: while it waits, and before it gets too far ahead.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>

#include "exec/cuda/gpu_kernel.h"
#include "exec/device.h"
#include "exec/stop.h"

namespace foreshard::gpu {

// What a task puts on its stream.
struct OnStream {
  Runtime& runtime;
  Stream* stream;
  std::byte *scratch, *workspace;
  Event* met;  // a task that meets others records this when they are there
  bool has_met = false;
};

class GpuTask : public StreamTask {
 public:
  virtual void enqueue(OnStream& on, int run) = 0;
  virtual bool meets() const { return false; }
  TaskTimes run(int run) override;  // never called: an assertion
};

// Memory that outlives the devices of all ranks: their streams may still reach into each other's arenas when one of them ends.
class GpuMemory {
 public:
  explicit GpuMemory(Runtime& runtime) : runtime_(runtime) {}
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  std::byte* allocate(Space space, Bytes bytes);

 private:
  Runtime& runtime_;
  std::mutex mutex_;
  std::vector<std::pair<Space, std::byte*>> all_;
};

// Events are made once and used again and again.
class EventPool {
 public:
  EventPool(Runtime& runtime, bool timed) : runtime_(runtime), timed_(timed) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  Event* take();
  void give(Event* event) { free_.push_back(event); }

 private:
  Runtime& runtime_;
  bool timed_;
  std::vector<Event*> all_, free_;
};

class CudaDevice : public DeviceBackend {
 public:
  CudaDevice(Runtime& runtime, GpuMemory& memory, int gpu, const Stop& stop, std::mutex* alone);
  ~CudaDevice() override;

  std::byte* arena(Space space, Bytes bytes) override;
  void read(std::byte* to, const std::byte* arena, Bytes bytes) const override;
  void write(std::byte* arena, const std::byte* from, Bytes bytes) override;
  void fill(std::byte* arena, std::byte with, Bytes bytes) override;
  bool fills_in_steps() const override { return false; }
  bool keep_scalar(int step, const Operand& scalar) override;
  std::unique_ptr<StreamTask> compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                      std::span<const Operand> writes, const OpArguments& arguments) override;
  std::unique_ptr<StreamTask> copy(std::byte* to, const std::byte* from, Bytes bytes) override;
  void open(std::span<const StreamId> streams, int events, int commands, StepObserver& observer) override;
  void wait(StreamId stream, int event) override;
  void record(StreamId stream, int event) override;
  void launch(StreamId stream, int step, StreamTask* task, int run) override;
  void synchronize() override;
  std::int64_t clock() const override;
  Bytes overhead() const override;
  bool ended_within(std::chrono::milliseconds patience) override;
  bool works() override { return pending_count_.load() > 0; }

  // Hears of what has ended; on the rank's thread, also while it waits for another rank. Throws Stopped after a failure.
  void poll();
  int gpu() const { return gpu_; }

 private:
  class ComputeTask;
  class CopyTask;
  struct Channel {  // a stream of the plan
    Stream* stream = nullptr;
    Bytes scratch_bytes = {}, workspace_bytes = {};
    std::byte *scratch = nullptr, *workspace = nullptr;
  };
  struct Scalar {
    int step = 0;
    Operand at = {};
    std::byte* kept = nullptr;  // pinned, one place per run that may be under way
  };
  struct Pending {
    int step = 0, run = 0;
    Event *begin = nullptr, *met = nullptr, *end = nullptr;
    bool has_met = false;
    const Scalar* scalar = nullptr;
  };
  Channel& channel(StreamId stream);
  void put(StreamId stream, int step, GpuTask* task, int run);
  void deliver(const Pending& done);
  void start_clock();
  std::int64_t time_of(Event* event) { return base_time_ + runtime_.nanoseconds(base_, event); }
  template <class Call>
  void guarded(int step, const Call& call);

  Runtime& runtime_;
  GpuMemory& memory_;
  int gpu_;
  const Stop& stop_;
  std::mutex* alone_;
  StepObserver* observer_ = nullptr;
  std::deque<Channel> channels_;  // [StreamId]
  Stream* outside_ = nullptr;     // copies between runs
  std::vector<ComputeTask*> tasks_;
  std::vector<Event*> events_;
  EventPool times_, marks_;
  std::deque<Scalar> scalars_;
  std::deque<Pending> pending_;  // in issue order
  std::atomic<std::int64_t> pending_count_ = 0;
  Event* base_ = nullptr;  // of the first step of a run; a float of milliseconds is exact enough from there
  std::int64_t base_time_ = 0;
  int base_run_ = -1;
  Bytes staged_ = {};
};

}  // namespace foreshard::gpu
