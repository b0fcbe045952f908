#include "exec/cuda_device/cuda_device.h"

#include <utility>

#include "core/base/error.h"
#include "core/plan/attention_memory.h"
#include "exec/cuda/numa_cpus.h"
#include "exec/host/host_ops.h"

namespace foreshard::gpu {

TaskTimes GpuTask::run(int) { FS_ASSERT(!"a GPU task is enqueued"); }

namespace {

class CopyTask : public GpuTask {
 public:
  CopyTask(std::byte* to, const std::byte* from, Bytes bytes) : to_(to), from_(from), bytes_(bytes) {}
  bool repeats() const override { return true; }
  void enqueue(OnStream& on, int) override {
    if (to_ != from_ && bytes_.value > 0) on.runtime.copy(to_, from_, bytes_, on.stream);
  }

 private:
  std::byte* to_;
  const std::byte* from_;
  Bytes bytes_;
};

// A compute on the CPU: the stream's thread waits until the CUDA stream is empty and runs it itself.
class HostTask : public GpuTask {
 public:
  HostTask(HostOp op, std::span<const Operand> reads, std::span<const Operand> writes, const OpArguments& arguments)
      : op_(std::move(op)),
        reads_(reads.begin(), reads.end()),
        writes_(writes.begin(), writes.end()),
        arguments_(arguments),
        workspace_(static_cast<std::size_t>(op_.workspace().value)) {}
  void enqueue(OnStream& on, int run) override {
    on.runtime.synchronize(on.stream);
    op_.run(reads_, writes_, workspace_, in_run(arguments_, run));
  }

 private:
  HostOp op_;
  std::vector<Operand> reads_, writes_;
  OpArguments arguments_;
  std::vector<std::byte> workspace_;
};

}  // namespace

CudaDevice::CudaDevice(Runtime& runtime, GpuMemory& memory, ProductChoice& choice, int gpu, const Stop& stop, std::mutex* alone,
                       GpuRuns runs)
    : runtime_(runtime),
      memory_(memory),
      choice_(choice),
      gpu_(gpu),
      fuses_(runs.fuse),
      libraries_{.runtime = &runtime,
                 .any_order = runs.any_order,
                 .attention_limit = attention_workspace_limit(runtime.properties(gpu).memory)},
      cpus_(runtime.properties(gpu).cpus),
      stop_(stop),
      alone_(alone),
      marks_(runtime, gpu, false),
      clock_(runtime, gpu),
      events_(runtime, stop),
      steps_(runtime, stop, clock_, marks_, alone ? 0 : runs.timed_from) {
  enter();
  outside_ = runtime_.open_stream(false);
  if (runs.graphs && !alone) graphs_.emplace(runtime);
}

CudaDevice::~CudaDevice() {
  for (Channel& channel : channels_) channel.commands.close();
  for (Channel& channel : channels_)
    if (channel.thread.joinable()) channel.thread.join();
  try {
    enter();
  } catch (const DeviceError&) {  // the device has failed already, and the reason is known
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
  enter();
  const Bytes size{std::max<std::int64_t>(bytes.value, 1)};
  std::byte* made = memory_.arena(space, size);
  if (space == Space::Device) arenas_.emplace_back(made, size);
  return made;
}

void CudaDevice::empty_streams() const {
  for (const Channel& channel : channels_)
    if (channel.stream) runtime_.synchronize(channel.stream);
}

void CudaDevice::read(std::byte* to, const std::byte* arena, Bytes bytes) const {
  if (bytes.value == 0) return;
  enter();
  empty_streams();
  runtime_.copy(to, arena, bytes, outside_);
  runtime_.synchronize(outside_);
}
void CudaDevice::write(std::byte* arena, const std::byte* from, Bytes bytes) {
  if (bytes.value == 0) return;
  enter();
  empty_streams();
  runtime_.copy(arena, from, bytes, outside_);
  runtime_.synchronize(outside_);
}
void CudaDevice::fill(std::byte* arena, std::byte with, Bytes bytes) {
  if (bytes.value == 0) return;
  enter();
  runtime_.fill(arena, with, bytes, outside_);
  runtime_.synchronize(outside_);
}

bool CudaDevice::keep(int step, const Operand& numbers) {
  steps_.keep(step, numbers);
  return true;
}

std::unique_ptr<StreamTask> CudaDevice::compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                                std::span<const Operand> writes, const OpArguments& arguments) {
  enter();
  channel(stream).computes = true;
  auto task = std::make_unique<ComputeTask>(GpuHandles{.gpu = gpu_, .choice = choice_, .stop = stop_}, what,
                                            make_kernel(what, reads, writes, libraries_), reads, writes, arguments);
  tasks_.emplace_back(stream, task.get());
  return task;
}

std::unique_ptr<StreamTask> CudaDevice::copy(std::byte* to, const std::byte* from, Bytes bytes) {
  return std::make_unique<CopyTask>(to, from, bytes);
}

std::unique_ptr<StreamTask> CudaDevice::host_compute(StreamId, const Compute& what, std::span<const Operand> reads,
                                                     std::span<const Operand> writes, const OpArguments& arguments) {
  return std::make_unique<HostTask>(HostOp(what, reads, writes), reads, writes, arguments);
}

void CudaDevice::open(std::span<const StreamId> streams, int events, int commands, StepObserver& observer) {
  const CpuAffinity near(cpus_);  // while it lives: pinned memory and new threads are near the GPU
  enter();
  steps_.open(observer);
  steps_.allocate_kept(memory_);
  for (const auto& [stream, task] : tasks_) channel(stream).needs.holds(task->kernel());
  for (const StreamId id : streams) {
    Channel& on = channel(id);
    on.stream = runtime_.open_stream(!on.computes);  // communication streams get the higher priority: other ranks wait for them
    on.scratch = memory_.allocate(Space::Device, on.needs.scratch);
    on.workspace = memory_.allocate(Space::Device, on.needs.workspace);
    on.commands.set_capacity(commands);
  }
  events_.open(events, marks_);
  for (const auto& [stream, task] : tasks_) task->open(memory_, marks_, *this);
  clock_.start(outside_);
  if (alone_) clock_.measure_timing(outside_);
  for (const StreamId id : streams) {
    Channel& on = channel(id);
    on.thread = std::thread([this, &on] { work(on); });
  }
}

void CudaDevice::push(StreamId id, const Command& command) {
  Channel& on = channel(id);
  while (!on.commands.add(command)) {
    steps_.poll();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void CudaDevice::wait(StreamId stream, int event) {
  if (graphs_) graphs_->event(stream);
  if (const std::uint64_t count = events_.last_record(event); count > 0)
    push(stream, {.kind = Command::Kind::Wait, .index = event, .count = count});
}

void CudaDevice::record(StreamId stream, int event) {
  if (graphs_) graphs_->event(stream);
  push(stream, {.kind = Command::Kind::Record, .index = event, .count = events_.next_record(event)});
}

void CudaDevice::launch(StreamId stream, int step, StreamTask* streamed, int run) {
  if (!std::exchange(settled_, true)) CpuAffinity(cpus_).stay();
  while (steps_.far_ahead(run)) {
    steps_.poll();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  auto* task = static_cast<GpuTask*>(streamed);
  IssuedStep& next = steps_.add(step, run, task);
  if (graphs_) {
    const StepGraphs::Place place = graphs_->step(stream, step, task, run);
    // The graphs were captured in runs that are not timed and record no times, so a timed run does not use them.
    if (place.unit >= 0 && (steps_.all_timed() || !steps_.timed(run))) return join_unit(stream, place, next);
  }
  steps_.give_events(next);
  push(stream, {.kind = Command::Kind::Step, .index = step, .run = run, .task = task, .step = &next});
}

bool CudaDevice::works() {
  return steps_.busy() || std::any_of(channels_.begin(), channels_.end(), [](const Channel& on) { return on.loads.load(); });
}

void CudaDevice::synchronize() {
  enter();
  for (steps_.poll(); !steps_.empty(); steps_.poll()) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

Bytes CudaDevice::overhead() const {
  Bytes total = {};
  for (const Channel& channel : channels_) total += channel.needs.scratch + channel.needs.workspace;
  for (const auto& [stream, task] : tasks_) total += task->outside();
  return total;
}

bool CudaDevice::ended_within(std::chrono::milliseconds patience) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  const auto ends = [&](const auto& ended) {
    while (!ended()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  };
  try {
    for (const Channel& channel : channels_) {
      if (!channel.stream) continue;
      if (channel.thread.joinable() && !ends([&] { return channel.over.load(); })) return false;
      if (!ends([&] { return runtime_.idle(channel.stream); })) return false;
    }
  } catch (const DeviceError&) {  // a device that has failed runs nothing more
  }
  return true;
}

}  // namespace foreshard::gpu
