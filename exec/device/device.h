// The device of one rank, as the interpreter sees it: arenas, in-order streams, events, and tasks made ready before the first
// run. The same calls in the same order drive the host (streams are worker threads) and CUDA.
#pragma once

#include <array>
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

inline constexpr std::size_t kMostKept = 8;

// What a task tells about a run of it, in nanoseconds. `met`: on the device's clock, when all ranks that take part were there;
// 0: it does not communicate. `own`: what it cost by itself, without waiting (CPU time of the thread).
// `begin`, `end`: on the device's clock, where the device hears of a run later than it happened; 0: now.
struct TaskTimes {
  std::int64_t met = 0, own = 0;
  std::int64_t begin = 0, end = 0;
  std::array<double, kMostKept> kept = {};  // of a step that has numbers that the device keeps
};

// One instruction with its operands. Runs on a stream, once per run of the plan; allocates nothing.
class StreamTask {
 public:
  virtual ~StreamTask() = default;
  virtual TaskTimes run(int run) = 0;
};

// Computes of one action that one stream runs one after the other: but for the first none waits for another stream, but for the last no other stream
// waits for one.
struct TaskRow {
  struct Member {
    StreamTask* task = nullptr;
    std::vector<std::span<const std::byte>> begins = {}, ends = {};  // blocks that it acquires and releases
  };
  StreamId stream = {};
  std::vector<Member> members = {};
};
// Members of a row that cannot be told apart when they run: their time is one.
struct JoinedTasks {
  std::size_t row = 0, first = 0, count = 1;
};

// Hears from the streams what happens, on their threads. `now` is on the device's clock.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void begins(int step, int run) = 0;  // everything that it waits for on this rank is done
  virtual void ends(int step, int run, const TaskTimes& times) = 0;
  virtual void fails(int step, const std::string& why) = 0;
  virtual std::string label(int step) const = 0;  // what a trace calls it; the same in every run
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  // Zeroed memory of this space, aligned to 4096 bytes; lives as long as the device.
  virtual std::byte* arena(Space space, Bytes bytes) = 0;

  // What the arenas hold, seen from outside a run: between runs, when all streams are empty. Memory of the host by default.
  virtual void read(std::byte* to, const std::byte* arena, Bytes bytes) const {
    std::memcpy(to, arena, static_cast<std::size_t>(bytes.value));
  }
  virtual void write(std::byte* arena, const std::byte* from, Bytes bytes) {
    std::memcpy(arena, from, static_cast<std::size_t>(bytes.value));
  }
  virtual void fill(std::byte* arena, std::byte with, Bytes bytes) {
    std::memset(arena, static_cast<int>(with), static_cast<std::size_t>(bytes.value));
  }
  // Whether `fill` may be called by an observer, while streams run.
  virtual bool fills_in_steps() const { return true; }
  // Keeps the numbers (kMostKept at most) that stand there when the step ends, and tells them in TaskTimes::kept; before the first run.
  // False: whoever hears of the end of the step may read them then.
  virtual bool keep(int /*step*/, const Operand& /*numbers*/) { return false; }

  // Tasks. `arguments` are those of run 0. Throw Error for what the device cannot do.
  virtual std::unique_ptr<StreamTask> compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                              std::span<const Operand> writes, const OpArguments& arguments) = 0;
  // On the processor of the node, with operands in host memory.
  virtual std::unique_ptr<StreamTask> host_compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                                   std::span<const Operand> writes, const OpArguments& arguments) = 0;
  virtual std::unique_ptr<StreamTask> copy(std::byte* to, const std::byte* from, Bytes bytes) = 0;

  // Once, when all tasks are made and the arenas still hold zeros, which they do afterwards: the device may make tasks of a row into fewer.
  virtual std::vector<JoinedTasks> prepare(std::span<const TaskRow> /*rows*/) { return {}; }

  // Starts the streams. At most `commands` calls per stream are outstanding before a call blocks.
  virtual void open(std::span<const StreamId> streams, int events, int commands, StepObserver& observer) = 0;

  // Put on the stream; return at once. A wait is for what was recorded before this call; an event never recorded does not
  // block. A step without a task only passes.
  virtual void wait(StreamId stream, int event) = 0;
  virtual void record(StreamId stream, int event) = 0;
  virtual void launch(StreamId stream, int step, StreamTask* task, int run) = 0;
  virtual void synchronize() = 0;  // until all streams are empty

  virtual std::int64_t clock() const = 0;  // nanoseconds
  virtual Bytes overhead() const = 0;      // memory outside the arenas: workspaces

  // Whether all streams have ended within `patience`; they end soon after a stop, unless a task hangs.
  virtual bool ended_within(std::chrono::milliseconds patience) = 0;
  // Whether a stream has worked since the last call. For one thread that watches.
  virtual bool works() = 0;
};

// The arguments of a later run of the plan: the next samples, the next optimizer step.
inline OpArguments in_run(OpArguments arguments, int run) {
  arguments.first_sample += run * arguments.samples_of_step;
  arguments.step += std::int64_t{run} * arguments.updates_of_run;
  return arguments;
}

}  // namespace foreshard
