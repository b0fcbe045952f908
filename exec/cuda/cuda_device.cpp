#include "exec/cuda/cuda_device.h"

#include <cstring>
#include <thread>

#include "core/error.h"
#include "exec/host_convert.h"

namespace foreshard::gpu {

namespace {

constexpr int kRunsUnderWay = 4;

}  // namespace

TaskTimes GpuTask::run(int) { FS_ASSERT(!"a GPU task is enqueued"); }

GpuMemory::~GpuMemory() {
  for (const auto& [space, memory] : all_) runtime_.release(space, memory);
}
std::byte* GpuMemory::allocate(Space space, Bytes bytes) {
  if (bytes.value == 0) return nullptr;
  std::byte* memory = runtime_.allocate(space, bytes);
  const std::lock_guard lock(mutex_);
  all_.emplace_back(space, memory);
  return memory;
}

EventPool::~EventPool() {
  for (Event* event : all_) runtime_.drop_event(event);
}
Event* EventPool::take() {
  if (free_.empty()) {
    all_.push_back(runtime_.make_event(timed_));
    return all_.back();
  }
  Event* event = free_.back();
  free_.pop_back();
  return event;
}

// One compute instruction. What the host makes for a run waits in pinned memory until the copy of the run before has been made.
class CudaDevice::ComputeTask : public GpuTask {
 public:
  ComputeTask(CudaDevice& device, Kernel kernel, std::span<const Operand> reads, std::span<const Operand> writes,
              const OpArguments& arguments)
      : device_(device),
        kernel_(std::move(kernel)),
        reads_(reads.begin(), reads.end()),
        writes_(writes.begin(), writes.end()),
        arguments_(arguments) {}

  // Before the first run.
  void open(GpuMemory& memory) {
    staged_ = memory.allocate(Space::PinnedHost, kernel_.staged);
    if (staged_) copied_ = device_.marks_.take();
    if (kernel_.table.empty()) return;
    const Bytes bytes = {static_cast<std::int64_t>(kernel_.table.size())};
    table_ = memory.allocate(Space::Device, bytes);
    device_.write(table_, kernel_.table.data(), bytes);
  }
  Bytes outside() const { return {static_cast<std::int64_t>(kernel_.table.size())}; }

  void enqueue(OnStream& on, int run) override {
    const OpArguments arguments = in_run(arguments_, run);
    if (staged_) {
      while (used_ && !on.runtime.done(copied_)) std::this_thread::yield();
      kernel_.prepare(staged_, arguments);
    }
    kernel_.run(Launcher(on.runtime, on.stream, on.workspace), {.reads = reads_,
                                                                .writes = writes_,
                                                                .scratch = on.scratch,
                                                                .staged = staged_,
                                                                .table = table_,
                                                                .arguments = arguments});
    if (staged_) on.runtime.record(copied_, on.stream);
    used_ = true;
  }

 private:
  CudaDevice& device_;
  Kernel kernel_;
  std::vector<Operand> reads_, writes_;
  OpArguments arguments_;
  std::byte *staged_ = nullptr, *table_ = nullptr;
  Event* copied_ = nullptr;
  bool used_ = false;
};

class CudaDevice::CopyTask : public GpuTask {
 public:
  CopyTask(std::byte* to, const std::byte* from, Bytes bytes) : to_(to), from_(from), bytes_(bytes) {}
  void enqueue(OnStream& on, int) override {
    if (to_ != from_ && bytes_.value > 0) on.runtime.copy(to_, from_, bytes_, on.stream);
  }

 private:
  std::byte* to_;
  const std::byte* from_;
  Bytes bytes_;
};

CudaDevice::CudaDevice(Runtime& runtime, GpuMemory& memory, int gpu, const Stop& stop, std::mutex* alone)
    : runtime_(runtime), memory_(memory), gpu_(gpu), stop_(stop), alone_(alone), times_(runtime, true), marks_(runtime, false) {
  runtime_.select(gpu_);
  outside_ = runtime_.open_stream();
}

CudaDevice::~CudaDevice() {
  try {
    runtime_.select(gpu_);
  } catch (const DeviceError&) {  // it has failed already: who stopped has told why
  }
  static_cast<void>(ended_within(std::chrono::milliseconds(10'000)));
  for (const Channel& channel : channels_)
    if (channel.stream) runtime_.close_stream(channel.stream);
  runtime_.close_stream(outside_);
}

CudaDevice::Channel& CudaDevice::channel(StreamId stream) {
  if (channels_.size() <= stream.index()) channels_.resize(stream.index() + 1);
  return channels_[stream.index()];
}

std::byte* CudaDevice::arena(Space space, Bytes bytes) {
  runtime_.select(gpu_);
  return memory_.allocate(space, bytes.value == 0 ? Bytes{1} : bytes);
}

void CudaDevice::read(std::byte* to, const std::byte* arena, Bytes bytes) const {
  if (bytes.value == 0) return;
  runtime_.select(gpu_);
  for (const Channel& channel : channels_)
    if (channel.stream) runtime_.synchronize(channel.stream);
  runtime_.copy(to, arena, bytes, outside_);
  runtime_.synchronize(outside_);
}
void CudaDevice::write(std::byte* arena, const std::byte* from, Bytes bytes) {
  if (bytes.value == 0) return;
  runtime_.select(gpu_);
  for (const Channel& channel : channels_)
    if (channel.stream) runtime_.synchronize(channel.stream);
  runtime_.copy(arena, from, bytes, outside_);
  runtime_.synchronize(outside_);
}
void CudaDevice::fill(std::byte* arena, std::byte with, Bytes bytes) {
  if (bytes.value == 0) return;
  runtime_.select(gpu_);
  runtime_.fill(arena, with, bytes, outside_);
  runtime_.synchronize(outside_);
}

bool CudaDevice::keep_scalar(int step, const Operand& scalar) {
  scalars_.push_back({.step = step, .at = scalar, .kept = memory_.allocate(Space::PinnedHost, {8 * kRunsUnderWay})});
  return true;
}

std::unique_ptr<StreamTask> CudaDevice::compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                                std::span<const Operand> writes, const OpArguments& arguments) {
  Kernel kernel = make_kernel(what, reads, writes);
  Channel& on = channel(stream);
  on.scratch_bytes = std::max(on.scratch_bytes, kernel.scratch);
  if (kernel.multiplies) on.workspace_bytes = kMultiplyWorkspace;
  staged_ += kernel.staged;
  auto task = std::make_unique<ComputeTask>(*this, std::move(kernel), reads, writes, arguments);
  tasks_.push_back(task.get());
  return task;
}

std::unique_ptr<StreamTask> CudaDevice::copy(std::byte* to, const std::byte* from, Bytes bytes) {
  return std::make_unique<CopyTask>(to, from, bytes);
}

void CudaDevice::open(std::span<const StreamId> streams, int events, int, StepObserver& observer) {
  runtime_.select(gpu_);
  observer_ = &observer;
  for (const StreamId id : streams) {
    Channel& on = channel(id);
    on.stream = runtime_.open_stream();
    on.scratch = memory_.allocate(Space::Device, on.scratch_bytes);
    on.workspace = memory_.allocate(Space::Device, on.workspace_bytes);
  }
  for (int e = 0; e < events; ++e) events_.push_back(marks_.take());
  for (ComputeTask* task : tasks_) task->open(memory_);
  start_clock();
}

void CudaDevice::start_clock() {
  base_ = times_.take();
  runtime_.record(base_, outside_);
  runtime_.synchronize(outside_);
  base_time_ = clock();
}

void CudaDevice::wait(StreamId stream, int event) {
  guarded(-1, [&] { runtime_.wait(channel(stream).stream, events_[static_cast<std::size_t>(event)]); });
}

void CudaDevice::record(StreamId stream, int event) {
  guarded(-1, [&] { runtime_.record(events_[static_cast<std::size_t>(event)], channel(stream).stream); });
}

// A failed call stops all ranks: it is told of the step that made it, or of the oldest that has not ended.
template <class Call>
void CudaDevice::guarded(int step, const Call& call) {
  try {
    call();
  } catch (const std::exception& problem) {
    if (step < 0 && !pending_.empty()) step = pending_.front().step;
    observer_->fails(std::max(step, 0), problem.what());
    throw Stopped{};
  }
}

void CudaDevice::launch(StreamId stream, int step, StreamTask* task, int run) {
  runtime_.select(gpu_);
  while (!pending_.empty() && pending_.front().run + kRunsUnderWay <= run) {
    poll();
    std::this_thread::yield();
  }
  auto* work = static_cast<GpuTask*>(task);
  if (!alone_ || (work && work->meets())) {
    guarded(step, [&] { put(stream, step, work, run); });
    return;
  }
  // Alone on the GPU: what it waits for is over before it takes the turn, and it is over when it gives it back.
  while (!runtime_.idle(channel(stream).stream)) std::this_thread::yield();
  const std::lock_guard lock(*alone_);
  guarded(step, [&] {
    put(stream, step, work, run);
    while (!runtime_.done(pending_.back().end)) std::this_thread::yield();
  });
}

void CudaDevice::put(StreamId stream, int step, GpuTask* task, int run) {
  const Channel& on = channel(stream);
  Pending next{.step = step, .run = run, .begin = times_.take(), .met = times_.take(), .end = times_.take()};
  runtime_.record(next.begin, on.stream);
  if (task) {
    OnStream work{.runtime = runtime_, .stream = on.stream, .scratch = on.scratch, .workspace = on.workspace, .met = next.met};
    task->enqueue(work, run);
    next.has_met = work.has_met;
  }
  for (const Scalar& scalar : scalars_)
    if (scalar.step == step) {
      runtime_.copy(scalar.kept + 8 * (run % kRunsUnderWay), scalar.at.data, size_of(scalar.at.dtype), on.stream);
      next.scalar = &scalar;
    }
  runtime_.record(next.end, on.stream);
  pending_.push_back(next);
  pending_count_.store(static_cast<std::int64_t>(pending_.size()));
}

void CudaDevice::poll() {
  guarded(-1, [&] {
    while (!pending_.empty() && runtime_.done(pending_.front().end)) {
      deliver(pending_.front());
      pending_.pop_front();
      pending_count_.store(static_cast<std::int64_t>(pending_.size()));
    }
  });
  if (stop_.raised()) throw Stopped{};
}

void CudaDevice::deliver(const Pending& done) {
  TaskTimes times;
  times.begin = time_of(done.begin);
  times.end = std::max(time_of(done.end), times.begin + 1);
  if (done.has_met) times.met = std::clamp(time_of(done.met), times.begin, times.end);
  times.own = times.end - std::max(times.begin, times.met);
  if (done.scalar)
    host::load({done.scalar->kept + 8 * (done.run % kRunsUnderWay), 1, done.scalar->at.dtype}, 0, 1, &times.scalar);
  observer_->begins(done.step, done.run);
  observer_->ends(done.step, done.run, times);
  times_.give(done.met);
  times_.give(done.end);
  if (done.run == base_run_) return times_.give(done.begin);
  base_run_ = done.run;
  base_time_ = times.begin;
  times_.give(base_);
  base_ = done.begin;
}

void CudaDevice::synchronize() {
  runtime_.select(gpu_);
  for (int looks = 0; !pending_.empty(); ++looks) {
    poll();
    if (looks > 100)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    else
      std::this_thread::yield();
  }
}

std::int64_t CudaDevice::clock() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Bytes CudaDevice::overhead() const {
  Bytes total = {};
  for (const Channel& channel : channels_) total += channel.scratch_bytes + channel.workspace_bytes;
  for (const ComputeTask* task : tasks_) total += task->outside();
  return total;
}

bool CudaDevice::ended_within(std::chrono::milliseconds patience) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  try {
    for (const Channel& channel : channels_)
      while (channel.stream && !runtime_.idle(channel.stream)) {
        if (std::chrono::steady_clock::now() > limit) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
  } catch (const DeviceError&) {  // a device that has failed runs nothing any more
  }
  return true;
}

}  // namespace foreshard::gpu
