// A GPU as the device of one rank. Every stream has a thread that puts its tasks on the CUDA stream, in order and far ahead of the GPU; a
// task that meets other ranks blocks that thread only. The rank's own thread hears in issue order of the steps that have ended.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "exec/base/stop.h"
#include "exec/cuda/gpu_kernel.h"
#include "exec/cuda/gpu_memory.h"
#include "exec/cuda/gpu_ranks.h"
#include "exec/cuda/product_choice.h"
#include "exec/cuda/step_graphs.h"
#include "exec/device/device.h"

namespace foreshard::gpu {

// What a task puts on its stream.
struct OnStream {
  Runtime& runtime;
  Stream* stream;
  std::byte *scratch, *workspace;
  Event* met;  // null: nobody asks for times
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
  std::unique_ptr<StreamTask> copy(std::byte* to, const std::byte* from, Bytes bytes) override;
  std::vector<JoinedTasks> prepare(std::span<const TaskRow> rows) override;
  void open(std::span<const StreamId> streams, int events, int commands, StepObserver& observer) override;
  void wait(StreamId stream, int event) override;
  void record(StreamId stream, int event) override;
  void launch(StreamId stream, int step, StreamTask* task, int run) override;
  void synchronize() override;
  std::int64_t clock() const override;
  Bytes overhead() const override;
  bool ended_within(std::chrono::milliseconds patience) override;
  bool works() override;

  int gpu() const { return gpu_; }
  const std::vector<std::pair<std::byte*, Bytes>>& arenas() const { return arenas_; }  // on the GPU

 private:
  class ComputeTask;
  class CopyTask;
  enum class Kind : std::uint8_t { Wait, Record, Step, Graph };
  struct Pending;
  struct Command {
    Kind kind = Kind::Step;
    int index = 0, run = 0;  // event, step or unit of steps
    GpuTask* task = nullptr;
    Pending* pending = nullptr;
  };
  struct Channel {  // a stream of the plan
    Stream* stream = nullptr;
    bool computes = false;
    std::atomic<bool> loads = false;  // its thread is inside a task that meets nobody: a library may be at work
    Bytes scratch_bytes = {}, workspace_bytes = {};
    std::byte *scratch = nullptr, *workspace = nullptr;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Command> ring;
    std::size_t head = 0, count = 0;
    bool closed = false;
    std::atomic<bool> over = false;
    std::thread thread;
  };
  // One per run that may be under way and the one before, so that a stream far ahead does not record what another has yet to wait for.
  struct Mark {
    std::vector<Event*> events = {};
    std::uint64_t wanted = 0;                // records issued, by the rank's thread
    std::atomic<std::uint64_t> recorded{0};  // records made, by the stream's
  };
  struct Kept {
    int step = 0;
    Operand at = {};
    std::byte* copies = nullptr;  // pinned, one per run that may be under way

    Bytes bytes() const { return size_of(at.dtype) * at.elements; }
    std::byte* copy_of(int run) const { return copies + bytes().value * (run % kRunsUnderWay); }
  };
  struct Pending {
    int step = 0, run = 0;
    Event *begin = nullptr, *met = nullptr, *end = nullptr;  // timed; null where times are not asked for
    Event* border = nullptr;                                 // timed, before the first step of a run that is not timed
    Event* over = nullptr;  // tells that `end` can be read; of a step by itself `end`, in a graph recorded after it
    bool has_met = false, in_graph = false;  // in a graph: the events are the graph's
    bool meets = false;                      // it may wait for another rank, which is no work
    const Kept* kept = nullptr;
    const std::string* name = nullptr;
    bool begun = false;  // the observer has heard of it
    std::atomic<bool> enqueued = false;
  };
  void enter() const { runtime_.select(gpu_); }  // by every thread, before it asks anything of the runtime
  Channel& channel(StreamId stream);
  void push(StreamId stream, const Command& command);
  void work(Channel& channel);
  void run(Channel& on, const Command& command);
  void put(Channel& on, Pending& pending, GpuTask* task, int run);
  void put_unit(Channel& on, int unit, int run);
  void join_unit(StreamId stream, StepGraphs::Place place, Pending& step, int run);
  void yield() const;
  void poll();  // hears of what has ended; throws Stopped after a failure
  void begin(Pending& oldest);
  void deliver(const Pending& done);
  void start_clock();
  void use(Channel& on, const Kernel& kernel);
  std::optional<JoinedTasks> join(const TaskRow& row, std::size_t at, Channel& on);
  std::optional<JoinedTasks> join_forward(const TaskRow& row, std::size_t at, Channel& on);
  std::optional<JoinedTasks> join_backward(const TaskRow& row, std::size_t at, Channel& on);
  static std::size_t bias_behind(const TaskRow& row, std::size_t first, std::size_t activation);
  void choose_algorithms();
  bool timed(int run) const { return run >= timed_from_; }
  void rebase(Event* event, std::int64_t time, int run);
  std::int64_t time_of(Event* event) { return base_time_ + runtime_.nanoseconds(base_, event); }

  Runtime& runtime_;
  GpuMemory& memory_;
  ProductChoice& choice_;
  int gpu_;
  const bool fuses_;
  const std::vector<int> cpus_;  // near the GPU
  bool settled_ = false;         // the rank's thread is there
  const Stop& stop_;
  std::mutex* alone_;
  StepObserver* observer_ = nullptr;
  std::deque<Channel> channels_;  // [StreamId]
  Stream* outside_ = nullptr;     // copies between runs
  std::vector<std::pair<std::byte*, Bytes>> arenas_;
  std::vector<ComputeTask*> tasks_;
  std::deque<Mark> events_;
  std::mutex recorded_mutex_;
  std::condition_variable recorded_;
  EventPool times_, marks_;
  std::deque<Kept> kept_;
  std::deque<Pending> pending_;       // in issue order
  std::map<int, std::string> names_;  // of steps, as a trace has them; made when they are first issued
  std::atomic<bool> busy_ = false;    // the GPU runs the oldest of them
  Event* base_ = nullptr;             // of the first step of a run; a float of milliseconds is exact enough from there
  std::int64_t base_time_ = 0;
  int base_run_ = -1, issued_run_ = -1;
  int timed_from_ = 0;
  std::int64_t timing_ = 0;  // what two timed events with nothing between are apart; asked for when runs take turns
  std::optional<StepGraphs> graphs_ = {};
  std::deque<std::array<std::vector<Pending*>, kRunsUnderWay>> unit_steps_;  // [unit][run][step]
  Bytes staged_ = {};
};

}  // namespace foreshard::gpu
