#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "exec/base/philox.h"
#include "exec/host/host_blas.h"
#include "exec/host/host_convert.h"
#include "tests/cuda/emulated_kernels.h"
#include "tests/cuda/fake_runtime.h"

namespace foreshard::gpu {

struct Event {
  std::uint64_t wanted = 0, done = 0;
  std::map<const Stream*, std::uint64_t> clock = {};
  std::int64_t time = 0;
  bool timed = false;
};

struct Graph {
  std::vector<std::function<void(Stream*)>> nodes = {};
};

struct Stream {
  struct Entry {
    std::function<void()> work = {};
    Event* event = nullptr;
    std::uint64_t value = 0;
    bool waits = false;
    std::function<bool()> ready = {};  // of a meeting; others may always go
  };
  std::deque<Entry> queue = {};
  std::map<const Stream*, std::uint64_t> clock = {};
  bool open = true;
  std::unique_ptr<Graph> capture = {};
};

namespace {

using Clock = std::map<const Stream*, std::uint64_t>;

bool join(Clock& to, const Clock& from) {
  bool more = false;
  for (const auto& [stream, tick] : from)
    if (std::uint64_t& known = to[stream]; tick > known) known = tick, more = true;
  return more;
}
std::uint64_t at(const Clock& clock, const Stream* stream) {
  const auto found = clock.find(stream);
  return found == clock.end() ? 0 : found->second;
}

std::string bus_of(int device) { return "0000:" + std::to_string(10 + device) + ":00.0"; }

}  // namespace

FakeRuntime::~FakeRuntime() {
  for (Stream* stream : streams_) delete stream;
  for (const auto& [memory, what] : memory_) ::operator delete (memory, std::align_val_t{4096});
}

Properties FakeRuntime::properties(int device) {
  std::vector<std::string> nvlinks;
  for (int other = 0; other < settings_.devices; ++other)
    if (other != device && other / settings_.nvlinked == device / settings_.nvlinked) nvlinks.push_back(bus_of(other));
  return {.device = "a GPU that is not there",
          .driver = "none",
          .libraries = "none",
          .memory = settings_.memory,
          .free = {settings_.memory.value - used_ - kContext},
          .bus = bus_of(device),
          .nvlinks = nvlinks};
}
void FakeRuntime::select(int device) {
  if (device < 0 || device >= settings_.devices) throw DeviceError("cudaSetDevice", "cudaErrorInvalidDevice");
}

std::byte* FakeRuntime::allocate(Space space, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  expect_no_capture("cudaMalloc");
  if (space == Space::Device && used_ + bytes.value > settings_.memory.value)
    throw DeviceError("cudaMalloc of " + std::to_string(bytes.value) + " bytes", "cudaErrorMemoryAllocation");
  if (space == Space::Device) used_ += bytes.value;
  auto* memory = static_cast<std::byte*>(::operator new (static_cast<std::size_t>(bytes.value), std::align_val_t{4096}));
  std::memset(memory, 0, static_cast<std::size_t>(bytes.value));
  memory_[memory] = {space, bytes};
  return memory;
}
void FakeRuntime::release(Space space, std::byte* memory) {
  const std::lock_guard lock(mutex_);
  expect_no_capture("cudaFree");
  if (space == Space::Device) used_ -= memory_.at(memory).second.value;
  memory_.erase(memory);
  ::operator delete (memory, std::align_val_t{4096});
}

Stream* FakeRuntime::open_stream() {
  const std::lock_guard lock(mutex_);
  return streams_.emplace_back(new Stream);
}
void FakeRuntime::close_stream(Stream* stream) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty() && !stream->queue.empty()) conflicts_.push_back("a stream is closed that has not ended");
  stream->queue.clear();
  stream->open = false;
}
Event* FakeRuntime::make_event(bool timed) { return new Event{.timed = timed}; }
void FakeRuntime::drop_event(Event* event) { delete event; }

void FakeRuntime::expect_alive(const char* call) const {
  if (!failure_.empty()) throw DeviceError(call, failure_);
}

void FakeRuntime::begin_capture(Stream* stream) {
  const std::lock_guard lock(mutex_);
  expect_no_capture("cudaStreamBeginCapture");
  stream->capture = std::make_unique<Graph>();
  const std::lock_guard capturing(capturing_mutex_);
  capturing_.insert(std::this_thread::get_id());
}
Graph* FakeRuntime::end_capture(Stream* stream) {
  {
    const std::lock_guard capturing(capturing_mutex_);
    capturing_.erase(std::this_thread::get_id());
  }
  const std::lock_guard lock(mutex_);
  ++graphs_;
  return stream->capture.release();
}
bool FakeRuntime::captures() {
  const std::lock_guard lock(capturing_mutex_);
  return capturing_.contains(std::this_thread::get_id());
}
// Called with the lock. A capture in CUDA's thread-local mode ends with an error when its thread waits for the GPU, asks it or allocates.
void FakeRuntime::expect_no_capture(const char* call) {
  if (captures() && conflicts_.size() < 100) conflicts_.push_back(std::string(call) + " by a thread that captures a graph");
}
void FakeRuntime::launch(Graph* graph, Stream* stream) {
  {
    const std::lock_guard lock(mutex_);
    expect_no_capture("cudaGraphLaunch");
  }
  ++graph_launches_;
  for (const auto& node : graph->nodes) node(stream);
}
void FakeRuntime::drop_graph(Graph* graph) {
  const std::lock_guard lock(mutex_);
  --graphs_;
  delete graph;
}

void FakeRuntime::record(Event* event, Stream* stream) {
  if (stream->capture) return stream->capture->nodes.push_back([this, event](Stream* on) { record(event, on); });
  const std::lock_guard lock(mutex_);
  expect_alive("cudaEventRecord");
  join(stream->clock, host());
  join(stream->clock, everybody_);
  ++stream->clock[stream];
  event->clock = stream->clock;
  stream->queue.push_back({.event = event, .value = ++event->wanted});
}

void FakeRuntime::wait(Stream* stream, Event* event) {
  const std::lock_guard lock(mutex_);
  expect_alive("cudaStreamWaitEvent");
  if (stream->capture) throw DeviceError("cudaStreamWaitEvent", "cudaErrorStreamCaptureIsolation");
  if (event->wanted == 0) return;
  Clock after = stream->clock;
  join(after, host());
  join(after, everybody_);
  if (join(after, event->clock) && waits_++ == settings_.dropped_wait) return;
  stream->clock = std::move(after);
  stream->queue.push_back({.event = event, .value = event->wanted, .waits = true});
}

// Runs one entry of a stream whose first entry need not wait.
bool FakeRuntime::step() {
  std::vector<Stream*> able;
  for (Stream* stream : streams_)
    if (!stream->queue.empty() &&
        (!stream->queue.front().waits || stream->queue.front().event->done >= stream->queue.front().value) &&
        (!stream->queue.front().ready || stream->queue.front().ready()))
      able.push_back(stream);
  if (able.empty()) return false;
  Stream& stream = *able[philox(settings_.seed, 7, random())[0] % able.size()];
  Stream::Entry entry = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (entry.waits) return true;
  if (entry.event) {
    entry.event->done = std::max(entry.event->done, entry.value);
    entry.event->time = now_;
    return true;
  }
  now_ += 1000;
  entry.work();
  return true;
}

bool FakeRuntime::done(Event* event) {
  const std::lock_guard lock(mutex_);
  expect_no_capture("cudaEventQuery");
  for (std::uint64_t n = philox(settings_.seed, 8, random())[0] % 8; n > 0 && failure_.empty(); --n)
    if (!step()) break;
  expect_alive("cudaEventQuery");
  if (event->done < event->wanted) return false;
  join(host(), event->clock);
  return true;
}
bool FakeRuntime::idle(Stream* stream) {
  const std::lock_guard lock(mutex_);
  expect_no_capture("cudaStreamQuery");
  static_cast<void>(step());
  expect_alive("cudaStreamQuery");
  if (!stream->queue.empty()) return false;
  join(host(), stream->clock);
  return true;
}
void FakeRuntime::synchronize(Stream* stream) {
  const std::lock_guard lock(mutex_);
  expect_no_capture("cudaStreamSynchronize");
  while (!stream->queue.empty() && failure_.empty())
    if (!step()) throw DeviceError("cudaStreamSynchronize", "every stream waits");
  expect_alive("cudaStreamSynchronize");
  join(everybody_, stream->clock);
  std::erase_if(accesses_, [&](const Access& access) { return access.tick <= at(everybody_, access.stream); });
}
std::int64_t FakeRuntime::nanoseconds(Event* from, Event* to) {
  const std::lock_guard lock(mutex_);
  if (!from->timed || !to->timed || to->done < to->wanted) throw DeviceError("cudaEventElapsedTime", "cudaErrorNotReady");
  return to->time - from->time;
}

void FakeRuntime::note(const Range& range, Stream* stream, const std::string& what) {
  for (const Access& other : accesses_) {
    if (other.range.begin >= range.end || range.begin >= other.range.end || !(other.range.write || range.write)) continue;
    if (other.tick <= at(stream->clock, other.stream)) continue;
    if (conflicts_.size() < 100) conflicts_.push_back(other.what + " and " + what + " touch the same bytes without an order");
  }
  const auto covered = [&](const Access& other) {
    return other.range.begin >= range.begin && other.range.end <= range.end && (range.write || !other.range.write) &&
           other.tick <= at(stream->clock, other.stream) && (range.write || other.stream == stream);
  };
  std::erase_if(accesses_, covered);
  accesses_.push_back({range, stream, at(stream->clock, stream), what});
}

void FakeRuntime::put_work(Stream* stream, const std::string& what, std::vector<Range> ranges, std::function<void()> work,
                           std::function<bool()> ready) {
  if (stream->capture)
    return stream->capture->nodes.push_back([=, this](Stream* on) { put_work(on, what, ranges, work, ready); });
  const std::lock_guard lock(mutex_);
  expect_no_capture(what.c_str());  // on another stream than the one that it captures
  expect_alive(what.c_str());
  join(stream->clock, host());
  join(stream->clock, everybody_);
  ++stream->clock[stream];
  for (const Range& range : ranges) note(range, stream, what);
  const bool fails = works_++ == settings_.failing_work;
  stream->queue.push_back({.work =
                               [this, fails, work = std::move(work)] {
                                 if (fails) failure_ = settings_.failure;
                                 if (failure_.empty()) work();
                               },
                           .ready = std::move(ready)});
}

void FakeRuntime::put_meeting(Stream* stream, const std::string& what,
                              const std::vector<std::pair<const std::byte*, const std::byte*>>& reads,
                              const std::vector<std::pair<const std::byte*, const std::byte*>>& writes,
                              std::function<bool()> ready) {
  std::vector<Range> ranges;
  for (const auto& [begin, end] : reads) ranges.push_back({begin, end, false});
  for (const auto& [begin, end] : writes) ranges.push_back({begin, end, true});
  put_work(
      stream, what, std::move(ranges), [] {}, std::move(ready));
}

void FakeRuntime::fill(std::byte* to, std::byte with, Bytes bytes, Stream* stream) {
  put_work(stream, "cudaMemsetAsync", {{to, to + bytes.value, true}},
           [=] { std::memset(to, static_cast<int>(with), static_cast<std::size_t>(bytes.value)); });
}
void FakeRuntime::copy(std::byte* to, const std::byte* from, Bytes bytes, Stream* stream) {
  put_work(stream, "cudaMemcpyAsync", {{from, from + bytes.value, false}, {to, to + bytes.value, true}},
           [=] { std::memmove(to, from, static_cast<std::size_t>(bytes.value)); });
}

void FakeRuntime::launch(const Launch& launch, Stream* stream) {
  {
    const std::lock_guard lock(mutex_);
    const int number = launches_[launch.kernel]++;
    if (launch.kernel == settings_.dropped_kernel && number == settings_.dropped_work) return;
  }
  constexpr std::int64_t kSizes[] = {4, 2, 2, 8, 8, 1};
  std::vector<std::uint64_t> args((launch.bytes + 7) / 8);  // aligned
  std::memcpy(args.data(), launch.args, launch.bytes);
  std::vector<Range> ranges;
  each_array(launch.kernel, args.data(), [&](const View& view) {
    const std::int64_t each = kSizes[static_cast<int>(view.type)];
    auto* begin = static_cast<std::byte*>(view.data);
    ranges.push_back({begin, begin + view.elements * each, view.writes});
    if (views_++ == settings_.shifted_view) const_cast<View&>(view).data = begin + each;
  });
  put_work(stream, name_of(launch.kernel), std::move(ranges), [this, launch, args = std::move(args)] {
    try {
      run_emulated(launch.kernel, {launch.blocks_x, launch.blocks_y}, launch.threads, args.data(), settings_.kernels);
    } catch (const emulator::Fault& fault) {
      failure_ = std::string(name_of(launch.kernel)) + ": " + fault.what();
    }
  });
}

namespace {

// One product of a batch as a plain array.
std::vector<float> loaded(const Matrix& matrix, std::int64_t rows, std::int64_t columns, std::int64_t number) {
  std::vector<float> all(static_cast<std::size_t>(rows * columns));
  const Operand operand{matrix.data + number * matrix.step * size_of(matrix.dtype).value, INT64_MAX, matrix.dtype};
  for (std::int64_t r = 0; r < rows; ++r) host::load(operand, r * matrix.row, columns, all.data() + r * columns);
  return all;
}

void multiply_now(const Multiply& w) {
  for (std::int64_t i = 0; i < w.count; ++i) {
    const std::vector<float> a = loaded(w.a, w.a.transposed ? w.k : w.m, w.a.transposed ? w.m : w.k, i);
    const std::vector<float> b = loaded(w.b, w.b.transposed ? w.n : w.k, w.b.transposed ? w.k : w.n, i);
    std::vector<float> c(static_cast<std::size_t>(w.m * w.n)), bias(static_cast<std::size_t>(w.n));
    if (w.keep != 0) c = loaded(w.c, w.m, w.n, i);
    if (w.bias) host::load({const_cast<std::byte*>(w.bias), w.n, w.c.dtype}, 0, w.n, bias.data());
    host::multiply({.m = w.m,
                    .n = w.n,
                    .k = w.k,
                    .a = a.data(),
                    .lda = w.a.transposed ? w.m : w.k,
                    .transpose_a = w.a.transposed,
                    .b = b.data(),
                    .ldb = w.b.transposed ? w.k : w.n,
                    .transpose_b = w.b.transposed,
                    .c = c.data(),
                    .ldc = w.n,
                    .alpha = w.alpha,
                    .beta = w.keep});
    const Operand to{w.c.data + i * w.c.step * size_of(w.c.dtype).value, INT64_MAX, w.c.dtype};
    for (std::int64_t r = 0; r < w.m; ++r) {
      float* row = c.data() + r * w.n;
      for (std::int64_t n = 0; n < w.n; ++n) row[n] += bias[static_cast<std::size_t>(n)];
      host::store(row, w.n, to, r * w.c.row);
    }
  }
}

}  // namespace

void FakeRuntime::multiply(const Multiply& w, std::byte* workspace, Bytes bytes, Stream* stream) {
  const auto range = [&](const Matrix& matrix, std::int64_t rows, std::int64_t columns, bool write) {
    const std::int64_t last = (w.count - 1) * matrix.step + (rows - 1) * matrix.row + columns;
    return Range{matrix.data, matrix.data + last * size_of(matrix.dtype).value, write};
  };
  std::vector<Range> ranges = {range(w.a, w.a.transposed ? w.k : w.m, w.a.transposed ? w.m : w.k, false),
                               range(w.b, w.b.transposed ? w.n : w.k, w.b.transposed ? w.k : w.n, false),
                               range(w.c, w.m, w.n, true)};
  if (workspace) ranges.push_back({workspace, workspace + bytes.value, true});
  if (w.bias) ranges.push_back({w.bias, w.bias + w.n * size_of(w.c.dtype).value, false});
  put_work(stream, "cublasLtMatmul", std::move(ranges), [w] { multiply_now(w); });
}

}  // namespace foreshard::gpu
