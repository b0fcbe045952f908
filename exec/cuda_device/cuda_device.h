// A GPU as the device of one rank. Every stream has a thread that puts its tasks on the CUDA stream, in order and far ahead of the GPU; a
// task that meets other ranks blocks that thread only. The rank's own thread hears in issue order of the steps that have ended.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "exec/cuda/command_ring.h"
#include "exec/cuda/gpu_ranks.h"
#include "exec/cuda/run_clock.h"
#include "exec/cuda/step_graphs.h"
#include "exec/cuda/stream_events.h"
#include "exec/cuda_device/compute_task.h"
#include "exec/cuda_device/issued_steps.h"

namespace foreshard::gpu {

class CudaDevice : public DeviceBackend {
 public:
  // `alone`: all runs are timed, and none has graphs.
  CudaDevice(Runtime& runtime, GpuMemory& memory, ProductChoice& choice, int gpu, const Stop& stop, std::mutex* alone,
             GpuRuns runs = {});
  ~CudaDevice() override;

  std::byte* arena(Space space, Bytes bytes) override;
  void read(std::byte* to, const std::byte* arena, Bytes bytes) const override;
  void write(std::byte* arena, const std::byte* from, Bytes bytes) override;
  void fill(std::byte* arena, std::byte with, Bytes bytes) override;
  bool fills_in_steps() const override { return false; }
  bool keep(int step, const Operand& numbers) override;
  std::unique_ptr<StreamTask> compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                      std::span<const Operand> writes, const OpArguments& arguments) override;
  std::unique_ptr<StreamTask> host_compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                           std::span<const Operand> writes, const OpArguments& arguments) override;
  std::unique_ptr<StreamTask> copy(std::byte* to, const std::byte* from, Bytes bytes) override;
  std::vector<JoinedTasks> prepare(std::span<const TaskRow> rows) override;
  void open(std::span<const StreamId> streams, int events, int commands, StepObserver& observer) override;
  void wait(StreamId stream, int event) override;
  void record(StreamId stream, int event) override;
  void launch(StreamId stream, int step, StreamTask* task, int run) override;
  void synchronize() override;
  std::int64_t clock() const override { return RunClock::now(); }
  Bytes overhead() const override;
  bool ended_within(std::chrono::milliseconds patience) override;
  bool works() override;

  int gpu() const { return gpu_; }
  const std::vector<std::pair<std::byte*, Bytes>>& arenas() const { return arenas_; }  // on the GPU

 private:
  struct Channel {  // a stream of the plan
    Stream* stream = nullptr;
    bool computes = false;
    std::atomic<bool> loads = false;  // its thread is inside a task without communication: a library may be at work
    StreamMemory needs = {};
    std::byte *scratch = nullptr, *workspace = nullptr;
    CommandRing commands;
    std::atomic<bool> over = false;
    std::thread thread;
  };
  void enter() const { runtime_.select(gpu_); }  // by every thread, before it asks anything of the runtime
  Channel& channel(StreamId stream);
  void empty_streams() const;
  void choose_algorithms();
  // By the rank's thread.
  void push(StreamId stream, const Command& command);
  void join_unit(StreamId stream, StepGraphs::Place place, IssuedStep& step);
  // By the stream's.
  void work(Channel& on);
  void run(Channel& on, const Command& command);
  void put_step(Channel& on, const Command& command);
  void put(Channel& on, IssuedStep& step, GpuTask* task);
  void put_unit(Channel& on, int unit, int run);

  Runtime& runtime_;
  GpuMemory& memory_;
  ProductChoice& choice_;
  int gpu_;
  const bool fuses_, any_order_;
  const std::vector<int> cpus_;  // near the GPU
  bool settled_ = false;         // the rank's thread is there
  const Stop& stop_;
  std::mutex* alone_;
  std::deque<Channel> channels_;  // [StreamId]
  Stream* outside_ = nullptr;     // copies between runs
  std::vector<std::pair<std::byte*, Bytes>> arenas_;
  std::vector<ComputeTask*> tasks_;
  EventPool marks_;  // events without a time
  RunClock clock_;
  StreamEvents events_;
  IssuedSteps steps_;
  std::optional<StepGraphs> graphs_ = {};
};

}  // namespace foreshard::gpu
