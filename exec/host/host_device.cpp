#include "exec/host/host_device.h"

#include <ctime>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/count_text.h"
#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "exec/base/steady_now.h"
#include "exec/host/host_ops.h"

namespace foreshard {

namespace {

constexpr std::align_val_t kPage{4096};

class CopyTask : public StreamTask {
 public:
  CopyTask(std::byte* to, const std::byte* from, Bytes bytes) : to_(to), from_(from), bytes_(bytes) {}
  TaskTimes run(int) override {
    const std::int64_t before = thread_cpu_time();
    if (to_ != from_) std::memcpy(to_, from_, static_cast<std::size_t>(bytes_.value));
    return {.own = thread_cpu_time() - before};
  }

 private:
  std::byte* to_;
  const std::byte* from_;
  Bytes bytes_;
};

}  // namespace

std::int64_t thread_cpu_time() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

class HostDevice::ComputeTask : public StreamTask {
 public:
  ComputeTask(HostOp op, std::span<const Operand> reads, std::span<const Operand> writes, const OpArguments& arguments,
              const Memory& workspace, std::mutex* alone)
      : op_(std::move(op)),
        reads_(reads.begin(), reads.end()),
        writes_(writes.begin(), writes.end()),
        arguments_(arguments),
        workspace_(workspace),
        bytes_(static_cast<std::size_t>(op_.workspace().value)),
        alone_(alone) {}

  TaskTimes run(int run) override {
    std::unique_lock<std::mutex> lock;
    if (alone_) lock = std::unique_lock(*alone_);
    const std::int64_t before = thread_cpu_time();
    op_.run(reads_, writes_, {workspace_.get(), bytes_}, in_run(arguments_, run));
    return {.own = thread_cpu_time() - before};
  }

 private:
  HostOp op_;
  std::vector<Operand> reads_, writes_;
  OpArguments arguments_;
  const Memory& workspace_;  // of the stream; allocated when it opens
  std::size_t bytes_;
  std::mutex* alone_;
};

void HostDevice::Release::operator()(std::byte* memory) const { ::operator delete(memory, kPage); }

HostDevice::Memory HostDevice::allocate(Bytes bytes) {
  if (bytes.value == 0) return {};
  const auto size = static_cast<std::size_t>(bytes.value);
  auto* memory = static_cast<std::byte*>(::operator new(size, kPage, std::nothrow));
  if (!memory)
    throw DeviceError("allocation of " + in_size(bytes) + " for a rank",
                      "out of memory (of the machine, or of what ulimit -v allows); --memory-limit says what a plan needs");
  std::memset(memory, 0, size);
  return Memory(memory);
}

HostDevice::~HostDevice() {
  for (Stream& stream : streams_) {
    const std::lock_guard lock(stream.mutex);
    stream.closed = true;
    stream.changed.notify_all();
  }
  for (Stream& stream : streams_)
    if (stream.thread.joinable()) stream.thread.join();
}

std::byte* HostDevice::arena(Space space, Bytes bytes) {
  if (space == Space::Nvme) return files_.emplace_back(bytes).data();
  arenas_.push_back(allocate(bytes));
  return arenas_.back().get();
}

std::unique_ptr<StreamTask> HostDevice::compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                                std::span<const Operand> writes, const OpArguments& arguments) {
  if (streams_.size() <= stream.index()) streams_.resize(stream.index() + 1);
  HostOp op(what, reads, writes);
  Stream& on = streams_[stream.index()];
  on.workspace_bytes = std::max(on.workspace_bytes, op.workspace());
  return std::make_unique<ComputeTask>(std::move(op), reads, writes, arguments, on.workspace, alone_);
}

std::unique_ptr<StreamTask> HostDevice::copy(std::byte* to, const std::byte* from, Bytes bytes) {
  return std::make_unique<CopyTask>(to, from, bytes);
}

void HostDevice::open(std::span<const StreamId> streams, int events, int commands, StepObserver& observer) {
  events_.resize(static_cast<std::size_t>(events));
  for (const StreamId id : streams) {
    if (streams_.size() <= id.index()) streams_.resize(id.index() + 1);
    Stream& stream = streams_[id.index()];
    stream.ring.resize(static_cast<std::size_t>(commands));
    stream.workspace = allocate(stream.workspace_bytes);
  }
  for (const StreamId id : streams) {
    Stream& stream = streams_[id.index()];
    stream.thread = start_thread([this, &stream, &observer] { work(stream, observer); });
  }
}

void HostDevice::push(StreamId id, const Command& command) {
  Stream& stream = streams_[id.index()];
  std::unique_lock lock(stream.mutex);
  stop_.wait(lock, stream.changed, [&] { return stream.count < stream.ring.size(); });
  stream.ring[(stream.head + stream.count) % stream.ring.size()] = command;
  if (++stream.count == 1) stream.changed.notify_all();
}

void HostDevice::wait(StreamId stream, int event) {
  const std::uint64_t wanted = events_[static_cast<std::size_t>(event)].wanted;
  if (wanted > 0) push(stream, {.kind = Kind::Wait, .index = event, .value = wanted});
}

void HostDevice::record(StreamId stream, int event) {
  const std::uint64_t wanted = ++events_[static_cast<std::size_t>(event)].wanted;
  push(stream, {.kind = Kind::Record, .index = event, .value = wanted});
}

void HostDevice::launch(StreamId stream, int step, StreamTask* task, int run) {
  push(stream, {.kind = Kind::Step, .index = step, .run = run, .task = task});
}

void HostDevice::synchronize() {
  for (Stream& stream : streams_) {
    std::unique_lock lock(stream.mutex);
    stop_.wait(lock, stream.changed, [&] { return stream.count == 0; });
  }
}

void HostDevice::run(const Command& command, StepObserver& observer) {
  switch (command.kind) {
    case Kind::Wait: {
      Event& event = events_[static_cast<std::size_t>(command.index)];
      const auto done = [&] { return event.done.load(std::memory_order_acquire) >= command.value; };
      if (done()) return;
      std::unique_lock lock(event_mutex_);
      stop_.wait(lock, event_done_, done);
      return;
    }
    case Kind::Record: {
      const std::lock_guard lock(event_mutex_);
      events_[static_cast<std::size_t>(command.index)].done.store(command.value, std::memory_order_release);
      event_done_.notify_all();
      return;
    }
    case Kind::Step:
      try {
        observer.begins(command.index, command.run);
        observer.ends(command.index, command.run, command.task ? command.task->run(command.run) : TaskTimes{});
      } catch (const std::exception& problem) {
        observer.fails(command.index, problem.what());
        throw Stopped{};
      }
      return;
  }
}

void HostDevice::work(Stream& stream, StepObserver& observer) {
  try {
    while (true) {
      Command command;
      {
        std::unique_lock lock(stream.mutex);
        stop_.wait(lock, stream.changed, [&] { return stream.count > 0 || stream.closed; });
        if (stream.count == 0) break;
        command = stream.ring[stream.head];
      }
      if (stop_.raised()) break;
      run(command, observer);
      const std::lock_guard lock(stream.mutex);
      stream.head = (stream.head + 1) % stream.ring.size();
      const bool was_full = stream.count == stream.ring.size();
      if (--stream.count == 0 || was_full) stream.changed.notify_all();
    }
  } catch (const Stopped&) {  // the reason is told by whoever stopped
  }
  stream.over.store(true);
}

std::int64_t HostDevice::clock() const { return steady_now(); }

Bytes HostDevice::overhead() const {
  Bytes total = {};
  for (const Stream& stream : streams_) total += stream.workspace_bytes;
  return total;
}

bool HostDevice::ended_within(std::chrono::milliseconds patience) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  for (Stream& stream : streams_) {
    if (!stream.thread.joinable()) continue;
    while (!stream.over.load()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return true;
}

bool HostDevice::works() {
  constexpr std::int64_t kMillisecond = 1'000'000;  // less is what looking for a stop costs
  bool any = false;
  for (Stream& stream : streams_) {
    clockid_t clock = {};
    timespec time = {};
    if (!stream.thread.joinable() || stream.over.load() || pthread_getcpuclockid(stream.thread.native_handle(), &clock) != 0 ||
        clock_gettime(clock, &time) != 0)
      continue;
    const std::int64_t now = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    any = any || now - stream.cpu_time > kMillisecond;
    stream.cpu_time = now;
  }
  return any;
}

}  // namespace foreshard
