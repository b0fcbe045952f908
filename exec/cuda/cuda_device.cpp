#include <cstring>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "exec/cuda/compute_task.h"
#include "exec/cuda/near_cpus.h"
#include "exec/host/host_convert.h"

namespace foreshard::gpu {

namespace {

constexpr int kMarks = kRunsUnderWay + 1;  // a run may still have to wait for what the run before it recorded

}  // namespace

TaskTimes GpuTask::run(int) { FS_ASSERT(!"a GPU task is enqueued"); }

class CudaDevice::CopyTask : public GpuTask {
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

CudaDevice::CudaDevice(Runtime& runtime, GpuMemory& memory, ProductChoice& choice, int gpu, const Stop& stop, std::mutex* alone,
                       GpuRuns runs)
    : runtime_(runtime),
      memory_(memory),
      choice_(choice),
      gpu_(gpu),
      fuses_(runs.fuse),
      cpus_(runtime.properties(gpu).cpus),
      stop_(stop),
      alone_(alone),
      times_(runtime, gpu, true),
      marks_(runtime, gpu, false),
      timed_from_(alone ? 0 : runs.timed_from) {
  enter();
  outside_ = runtime_.open_stream(false);
  if (runs.graphs && !alone) graphs_.emplace(runtime);
}

CudaDevice::~CudaDevice() {
  for (Channel& channel : channels_) {
    const std::lock_guard lock(channel.mutex);
    channel.closed = true;
    channel.changed.notify_all();
  }
  for (Channel& channel : channels_)
    if (channel.thread.joinable()) channel.thread.join();
  try {
    enter();
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
  enter();
  const Bytes size{std::max<std::int64_t>(bytes.value, 1)};
  std::byte* made = memory_.arena(space, size);
  if (space == Space::Device) arenas_.emplace_back(made, size);
  return made;
}

void CudaDevice::read(std::byte* to, const std::byte* arena, Bytes bytes) const {
  if (bytes.value == 0) return;
  enter();
  for (const Channel& channel : channels_)
    if (channel.stream) runtime_.synchronize(channel.stream);
  runtime_.copy(to, arena, bytes, outside_);
  runtime_.synchronize(outside_);
}
void CudaDevice::write(std::byte* arena, const std::byte* from, Bytes bytes) {
  if (bytes.value == 0) return;
  enter();
  for (const Channel& channel : channels_)
    if (channel.stream) runtime_.synchronize(channel.stream);
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
  FS_ASSERT(numbers.elements <= static_cast<std::int64_t>(kMostKept));
  const NearCpus near(cpus_);
  Kept& kept = kept_.emplace_back(Kept{.step = step, .at = numbers});
  kept.copies = memory_.allocate(Space::PinnedHost, kept.bytes() * kRunsUnderWay);
  return true;
}

std::unique_ptr<StreamTask> CudaDevice::compute(StreamId stream, const Compute& what, std::span<const Operand> reads,
                                                std::span<const Operand> writes, const OpArguments& arguments) {
  enter();
  Kernel kernel = make_kernel(what, reads, writes, &runtime_);
  Channel& on = channel(stream);
  on.computes = true;
  use(on, kernel);
  staged_ += kernel.staged;
  auto task = std::make_unique<ComputeTask>(*this, what, std::move(kernel), reads, writes, arguments);
  tasks_.push_back(task.get());
  return task;
}

std::unique_ptr<StreamTask> CudaDevice::copy(std::byte* to, const std::byte* from, Bytes bytes) {
  return std::make_unique<CopyTask>(to, from, bytes);
}

void CudaDevice::open(std::span<const StreamId> streams, int events, int commands, StepObserver& observer) {
  const NearCpus near(cpus_);  // pinned memory is touched first, threads are started
  enter();
  observer_ = &observer;
  for (const StreamId id : streams) {
    Channel& on = channel(id);
    on.stream = runtime_.open_stream(!on.computes);  // what others wait for goes first
    on.scratch = memory_.allocate(Space::Device, on.scratch_bytes);
    on.workspace = memory_.allocate(Space::Device, on.workspace_bytes);
    on.ring.resize(static_cast<std::size_t>(commands));
  }
  for (int e = 0; e < events; ++e)
    for (int run = 0; run < kMarks; ++run) {
      if (run == 0) events_.emplace_back();
      events_.back().events.push_back(marks_.take());
    }
  for (ComputeTask* task : tasks_) task->open(memory_);
  start_clock();
  for (const StreamId id : streams) {
    Channel& on = channel(id);
    on.thread = std::thread([this, &on] { work(on); });
  }
}

// Between two questions to the GPU, which may never say yes.
void CudaDevice::yield() const {
  if (stop_.raised()) throw Stopped{};
  std::this_thread::yield();
}

void CudaDevice::push(StreamId id, const Command& command) {
  Channel& on = channel(id);
  std::unique_lock lock(on.mutex);
  while (on.count == on.ring.size()) {
    lock.unlock();
    poll();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
  }
  on.ring[(on.head + on.count) % on.ring.size()] = command;
  if (++on.count == 1) on.changed.notify_all();
}

void CudaDevice::wait(StreamId stream, int event) {
  if (graphs_) graphs_->event(stream);
  const std::uint64_t wanted = events_[static_cast<std::size_t>(event)].wanted;
  if (wanted > 0) push(stream, {.kind = Kind::Wait, .index = event, .run = static_cast<int>(wanted)});
}

void CudaDevice::record(StreamId stream, int event) {
  if (graphs_) graphs_->event(stream);
  const std::uint64_t wanted = ++events_[static_cast<std::size_t>(event)].wanted;
  push(stream, {.kind = Kind::Record, .index = event, .run = static_cast<int>(wanted)});
}

void CudaDevice::launch(StreamId stream, int step, StreamTask* task, int run) {
  if (!std::exchange(settled_, true)) NearCpus(cpus_).stay();
  while (!pending_.empty() && pending_.front().run + kRunsUnderWay <= run) {
    poll();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  Pending& next = pending_.emplace_back();
  next.step = step, next.run = run;
  const auto [name, fresh] = names_.try_emplace(step);
  if (fresh) name->second = observer_->label(step);
  next.name = &name->second;
  next.meets = task && static_cast<GpuTask*>(task)->meets();
  for (const Kept& kept : kept_)
    if (kept.step == step) next.kept = &kept;
  if (std::exchange(issued_run_, run) != run && !timed(run)) next.border = times_.take();
  if (graphs_) {
    const StepGraphs::Place place = graphs_->step(stream, step, static_cast<GpuTask*>(task), run);
    // Graphs of runs that are not timed record no times: one that is does without.
    if (place.unit >= 0 && (timed_from_ == 0 || !timed(run))) return join_unit(stream, place, next, run);
  }
  if (timed(run))
    next.begin = times_.take(), next.met = times_.take(), next.over = next.end = times_.take();
  else
    next.over = marks_.take();
  push(stream, {.kind = Kind::Step, .index = step, .run = run, .task = static_cast<GpuTask*>(task), .pending = &next});
}

void CudaDevice::work(Channel& on) {
  int step = 0;
  try {
    enter();
    while (true) {
      Command command;
      {
        std::unique_lock lock(on.mutex);
        stop_.wait(lock, on.changed, [&] { return on.count > 0 || on.closed; });
        if (on.count == 0) break;
        command = on.ring[on.head];
        on.head = (on.head + 1) % on.ring.size();
        --on.count;
      }
      if (stop_.raised()) break;
      if (command.kind == Kind::Step) step = command.index;
      if (command.kind == Kind::Graph) step = graphs_->unit(command.index).steps.front().step;
      run(on, command);
    }
  } catch (const Stopped&) {  // the reason is told by whoever stopped
  } catch (const std::exception& problem) {
    observer_->fails(step, problem.what());
  }
  on.over.store(true);
}

void CudaDevice::run(Channel& on, const Command& command) {
  const auto value = static_cast<std::uint64_t>(command.run);
  switch (command.kind) {
    case Kind::Record: {
      Mark& mark = events_[static_cast<std::size_t>(command.index)];
      runtime_.record(mark.events[value % kMarks], on.stream);
      const std::lock_guard lock(recorded_mutex_);
      mark.recorded.store(value);
      recorded_.notify_all();
      return;
    }
    case Kind::Wait: {
      Mark& mark = events_[static_cast<std::size_t>(command.index)];
      if (mark.recorded.load() < value) {
        std::unique_lock lock(recorded_mutex_);
        stop_.wait(lock, recorded_, [&] { return mark.recorded.load() >= value; });
      }
      runtime_.wait(on.stream, mark.events[value % kMarks]);
      return;
    }
    case Kind::Step:
      if (!alone_ || (command.task && command.task->meets())) {
        put(on, *command.pending, command.task, command.run);
      } else {  // what it waits for is over before it takes the turn, and it is over when it gives it back
        while (!runtime_.idle(on.stream)) yield();
        const std::lock_guard lock(*alone_);
        put(on, *command.pending, command.task, command.run);
        while (!runtime_.idle(on.stream)) yield();
      }
      command.pending->enqueued.store(true);
      return;
    case Kind::Graph: put_unit(on, command.index, command.run); return;
  }
}

void CudaDevice::put(Channel& on, Pending& pending, GpuTask* task, int run) {
  const Range range(runtime_, *pending.name);
  if (pending.border && !pending.in_graph) runtime_.record(pending.border, on.stream);
  if (pending.begin) runtime_.record(pending.begin, on.stream);
  if (task) {
    OnStream work{
        .runtime = runtime_, .stream = on.stream, .scratch = on.scratch, .workspace = on.workspace, .met = pending.met};
    on.loads = !task->meets();
    task->enqueue(work, run);
    on.loads = false;
    pending.has_met = work.has_met;
  }
  if (const Kept* kept = pending.kept) runtime_.copy(kept->copy_of(run), kept->at.data, kept->bytes(), on.stream);
  if (pending.end)
    runtime_.record(pending.end, on.stream);
  else if (!pending.in_graph)
    runtime_.record(pending.over, on.stream);
}

void CudaDevice::poll() {
  if (stop_.raised()) throw Stopped{};
  try {
    while (!pending_.empty() && pending_.front().enqueued.load() && runtime_.done(pending_.front().over)) {
      begin(pending_.front());
      deliver(pending_.front());
      pending_.pop_front();
    }
    if (!pending_.empty()) begin(pending_.front());
  } catch (const std::exception& problem) {
    observer_->fails(pending_.front().step, problem.what());
    throw Stopped{};
  }
  busy_.store(!pending_.empty() && pending_.front().enqueued.load() && !pending_.front().meets);
}

// Steps are told in issue order: who looks for what hangs is told the oldest.
void CudaDevice::begin(Pending& oldest) {
  if (!std::exchange(oldest.begun, true)) observer_->begins(oldest.step, oldest.run);
}

bool CudaDevice::works() {
  return busy_.load() || std::any_of(channels_.begin(), channels_.end(), [](const Channel& on) { return on.loads.load(); });
}

void CudaDevice::synchronize() {
  enter();
  for (poll(); !pending_.empty(); poll()) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

Bytes CudaDevice::overhead() const {
  Bytes total = {};
  for (const Channel& channel : channels_) total += channel.scratch_bytes + channel.workspace_bytes;
  for (const ComputeTask* task : tasks_) total += task->outside();
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
  } catch (const DeviceError&) {  // a device that has failed runs nothing any more
  }
  return true;
}

}  // namespace foreshard::gpu
