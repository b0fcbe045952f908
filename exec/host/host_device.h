// The host as the device of one rank: arenas are ordinary memory (for Space::Nvme a mapped file), and every stream is a worker thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/base/file_memory.h"
#include "exec/base/stop.h"
#include "exec/device/device.h"

namespace foreshard {

class HostDevice : public DeviceBackend {
 public:
  // `alone`: if not null, a mutex that each compute locks. All devices that share it run one compute at a time, so that no other compute
  // disturbs the measured CPU time.
  HostDevice(const Stop& stop, std::mutex* alone) : stop_(stop), alone_(alone) {}
  ~HostDevice() override;  // ends the streams; blocks until their running tasks have ended

  std::byte* arena(Space space, Bytes bytes) override;
  std::unique_ptr<StreamTask> compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                      std::span<const Operand> writes, const OpArguments& arguments) override;
  std::unique_ptr<StreamTask> host_compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                           std::span<const Operand> writes, const OpArguments& arguments) override {
    return compute(stream, what, reads, writes, arguments);
  }
  std::unique_ptr<StreamTask> copy(std::byte* to, const std::byte* from, Bytes bytes) override;
  void open(std::span<const StreamId> streams, int events, int commands, StepObserver& observer) override;
  void wait(StreamId stream, int event) override;
  void record(StreamId stream, int event) override;
  void launch(StreamId stream, int step, StreamTask* task, int run) override;
  void synchronize() override;
  std::int64_t clock() const override;
  Bytes overhead() const override;

  bool ended_within(std::chrono::milliseconds patience) override;
  bool works() override;

 private:
  struct Release {
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte, Release>;
  static Memory allocate(Bytes bytes);

  enum class Kind : std::uint8_t { Wait, Record, Step };
  struct Command {
    Kind kind = Kind::Step;
    int index = 0, run = 0;   // index: of the event or the step
    std::uint64_t value = 0;  // Wait, Record: number of the event's record, from 1
    StreamTask* task = nullptr;
  };
  struct Event {
    std::uint64_t wanted = 0;             // records issued; used by the issuing thread only
    std::atomic<std::uint64_t> done = 0;  // records that the streams have executed
  };
  struct Stream {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Command> ring;
    std::size_t head = 0, count = 0;  // count includes the command that runs
    bool closed = false;              // no command will follow
    std::atomic<bool> over = false;   // the thread has ended
    std::int64_t cpu_time = 0;        // of the thread at the last call of `works`, in nanoseconds
    Memory workspace;                 // scratch memory that all kernels of the stream share
    Bytes workspace_bytes = {};
    std::thread thread;
  };
  class ComputeTask;

  void push(StreamId stream, const Command& command);
  void work(Stream& stream, StepObserver& observer);
  void run(const Command& command, StepObserver& observer);

  const Stop& stop_;
  std::mutex* alone_;
  std::vector<Memory> arenas_;
  std::vector<FileMemory> files_ = {};
  std::deque<Stream> streams_;  // [StreamId]; a stream that no step uses has no thread
  std::deque<Event> events_;
  std::mutex event_mutex_;
  std::condition_variable event_done_;
};

// CPU time that the calling thread has used, in nanoseconds.
std::int64_t thread_cpu_time();

}  // namespace foreshard
