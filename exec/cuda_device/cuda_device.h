// A GPU as the device of one rank. Every stream of the plan has a CUDA stream and a thread that enqueues its tasks there, in order and
// ahead of the GPU. A task that has to wait for other ranks on the host blocks that thread only. The rank's own thread issues the steps,
// and tells the observer in issue order which of them have ended.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
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
  // `alone`: if not null, a mutex of all devices that share it: each compute and copy locks it until the GPU has done it, so that tasks are
  // timed with no other running. Then all runs are timed, and none uses CUDA graphs. All references must outlive the device. Throws
  // DeviceError.
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
  // After `prepare`: the layers (OpArguments::layer) whose fused attention is computed by our own kernels, by the reason for it; with the
  // reason "", by the library.
  std::map<std::string, std::set<std::uint64_t>> attention() const;
  const std::vector<std::pair<std::byte*, Bytes>>& arenas() const { return arenas_; }  // those in the memory of the GPU

 private:
  struct Channel {  // a stream of the plan
    Stream* stream = nullptr;
    bool computes = false;
    // Its thread is enqueuing a task without communication; a library may compute on the CPU then
    std::atomic<bool> loads = false;
    StreamMemory needs = {};
    std::byte *scratch = nullptr, *workspace = nullptr;
    CommandRing commands;
    std::atomic<bool> over = false;  // its thread has ended
    std::thread thread;
  };
  void enter() const { runtime_.select(gpu_); }  // every thread calls it before it uses the runtime
  Channel& channel(StreamId stream);
  void empty_streams() const;
  void choose_algorithms();
  void settle_attention();
  // Called by the rank's thread.
  void push(StreamId stream, const Command& command);                          // blocks while the stream's command ring is full
  void join_unit(StreamId stream, StepGraphs::Place place, IssuedStep& step);  // the step is part of a CUDA graph
  // Called by the thread of the stream.
  void work(Channel& on);                                  // its main function
  void run(Channel& on, const Command& command);           // executes one command
  void put_step(Channel& on, const Command& command);      // enqueues a step
  void put(Channel& on, IssuedStep& step, GpuTask* task);  // enqueues the step's task and its events
  void put_unit(Channel& on, int unit, int run);           // launches a CUDA graph; captures it first if there is none yet

  Runtime& runtime_;
  GpuMemory& memory_;
  ProductChoice& choice_;
  int gpu_;
  const bool fuses_;             // as in GpuRuns
  const Libraries libraries_;    // that kernels may use
  const std::vector<int> cpus_;  // the CPUs of the GPU's NUMA node
  bool settled_ = false;         // the rank's thread is bound to them
  const Stop& stop_;
  std::mutex* alone_;
  std::deque<Channel> channels_;  // [StreamId]
  Stream* outside_ = nullptr;     // for `read`, `write` and `fill`
  std::vector<std::pair<std::byte*, Bytes>> arenas_;
  std::vector<std::pair<StreamId, ComputeTask*>> tasks_;
  EventPool marks_;  // CUDA events without timing
  RunClock clock_;
  StreamEvents events_;
  IssuedSteps steps_;
  std::optional<StepGraphs> graphs_ = {};
};

// What computes the fused attention of the layers of these devices, for the user: "attention of 24 layers: cuDNN's".
std::vector<std::string> attention_notes(const std::vector<const CudaDevice*>& devices);

}  // namespace foreshard::gpu
