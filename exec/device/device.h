// The device of one rank, as the interpreter sees it: arenas, in-order streams, events, and tasks that are made before the first
// run. The interpreter makes the same calls in the same order for the host (where a stream is a worker thread) and for CUDA.
//
// A step is one instruction in the program of the rank (RankStep, exec/interpreter/rank_steps.h), given by its index. A run is one
// execution of the whole plan, counted from 0; one run is one training step.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"
#include "exec/device/operand.h"

namespace foreshard {

// What a task reports after one run of it, in nanoseconds.
//   met         on the device's clock: when all participating ranks had arrived; 0: the task does not communicate
//   own         the cost of the task without any waiting; on the host the CPU time of the thread
//   begin, end  on the device's clock, if the device reports a step after it has ended; 0: the step began at StepObserver::begins and
//               ends at the call of StepObserver::ends
struct TaskTimes {
  std::int64_t met = 0, own = 0;
  std::int64_t begin = 0, end = 0;
  Operand kept = {};  // in host memory, the numbers that DeviceBackend::keep asked for; no data: none
};

// One instruction with its operands. Runs on a stream, once per run of the plan; allocates nothing.
class StreamTask {
 public:
  virtual ~StreamTask() = default;
  virtual TaskTimes run(int run) = 0;
};

// Consecutive compute instructions of one action on one stream. Only the first may wait for another stream, and other streams wait only for
// the last.
struct TaskRow {
  struct Member {
    StreamTask* task = nullptr;
    std::vector<std::span<const std::byte>> begins = {},
                                            ends = {};  // memory of the blocks that it acquires, and of those that it releases
  };
  StreamId stream = {};
  std::vector<Member> members = {};
};
// Members [first, first + count) of row `row`, which the device runs as one task: they report one time together.
struct JoinedTasks {
  std::size_t row = 0, first = 0, count = 1;
};

// Is told when steps begin, end and fail. The host calls it on the thread of the stream, a GPU on the thread of the rank; `fails` may come
// from any thread.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void begins(int step, int run) = 0;  // all steps of this rank that it waits for have ended
  virtual void ends(int step, int run, const TaskTimes& times) = 0;
  virtual void fails(int step, const std::string& why) = 0;
  virtual std::string label(int step) const = 0;  // the step's name in a trace; the same in every run
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  // Allocates zeroed memory in this space, aligned to 4096 bytes. It is freed with the device.
  virtual std::byte* arena(Space space, Bytes bytes) = 0;

  // Access to the contents of arenas between runs, when all streams are empty: `read` copies out of an arena, `write` into it, `fill` sets
  // every byte to `with`. The default is for arenas in host memory.
  virtual void read(std::byte* to, const std::byte* arena, Bytes bytes) const {
    std::memcpy(to, arena, static_cast<std::size_t>(bytes.value));
  }
  virtual void write(std::byte* arena, const std::byte* from, Bytes bytes) {
    std::memcpy(arena, from, static_cast<std::size_t>(bytes.value));
  }
  virtual void fill(std::byte* arena, std::byte with, Bytes bytes) {
    std::memset(arena, static_cast<int>(with), static_cast<std::size_t>(bytes.value));
  }
  // Whether an observer may call `fill` while streams run.
  virtual bool fills_in_steps() const { return true; }
  // Called before `open`, at most once for a step: asks the device to copy these numbers to the host whenever the step ends, and to report
  // them in TaskTimes::kept, for StepObserver::ends to read. Returns false if the device does not do so, because the host sees its memory;
  // then the observer reads the numbers themselves.
  virtual bool keep(int /*step*/, const Operand& /*numbers*/) { return false; }

  // Each makes the task of one instruction. `arguments` are those of run 0. They throw Error for an instruction that the device cannot run.
  virtual std::unique_ptr<StreamTask> compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                              std::span<const Operand> writes, const OpArguments& arguments) = 0;
  // A compute that runs on the CPU, with operands in host memory.
  virtual std::unique_ptr<StreamTask> host_compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                                   std::span<const Operand> writes, const OpArguments& arguments) = 0;
  virtual std::unique_ptr<StreamTask> copy(std::byte* to, const std::byte* from, Bytes bytes) = 0;

  // Called once, when all tasks are made and before `open`: the device may fuse neighbouring tasks of a row. Returns which members it
  // fused. The arenas hold zeros before and after the call.
  virtual std::vector<JoinedTasks> prepare(std::span<const TaskRow> /*rows*/) { return {}; }

  // Starts the streams and makes events 0 to `events` - 1. A call of wait, record or launch blocks while its stream has `commands` commands
  // that are not done.
  virtual void open(std::span<const StreamId> streams, int events, int commands, StepObserver& observer) = 0;

  // Each puts a command on the stream and returns. `wait` makes the stream wait for the last `record` of the event that was called before
  // this `wait`; if there was none, it does not wait. `launch` without a task (null) reports begin and end of the step and does nothing
  // else.
  virtual void wait(StreamId stream, int event) = 0;
  virtual void record(StreamId stream, int event) = 0;
  virtual void launch(StreamId stream, int step, StreamTask* task, int run) = 0;
  virtual void synchronize() = 0;  // blocks until all streams are empty

  virtual std::int64_t clock() const = 0;  // nanoseconds
  virtual Bytes overhead() const = 0;      // memory outside the arenas: the workspaces of kernels

  // Waits at most `patience` for all stream threads to end, and returns whether they have. After a stop they end soon, unless a task hangs.
  virtual bool ended_within(std::chrono::milliseconds patience) = 0;
  // Whether any stream has computed since the last call. Only the thread that watches for hangs may call it.
  virtual bool works() = 0;
};

// The arguments of run `run`, from those of run 0: later samples, later optimizer steps.
inline OpArguments in_run(OpArguments arguments, int run) {
  arguments.first_sample += run * arguments.samples_of_step;
  arguments.step += std::int64_t{run} * arguments.updates_of_run;
  return arguments;
}

}  // namespace foreshard
