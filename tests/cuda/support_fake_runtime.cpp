#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "exec/base/philox.h"
#include "tests/cuda/fake_parts.h"

namespace foreshard::gpu {

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

thread_local bool this_thread_captures = false;
constexpr std::byte kNeverWritten{0xa5};  // what fresh memory of a GPU holds

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

FakeRuntime::FakeRuntime(FakeSettings settings) : settings_(std::move(settings)), number_(next_number()) {}

FakeRuntime::~FakeRuntime() {
  for (Stream* stream : streams_) delete stream;
  for (const auto& [memory, what] : memory_) ::operator delete (memory, std::align_val_t{4096});
}

// ---- devices and memory -------------------------------------------------------------------------------------------------------

int& FakeRuntime::current() {
  static thread_local std::map<std::uint64_t, int> of_runtime;
  return of_runtime[number_];
}
void FakeRuntime::select(int device) {
  if (device < 0 || device >= settings_.devices) throw DeviceError("cudaSetDevice", "cudaErrorInvalidDevice");
  current() = device;
  const std::lock_guard lock(mutex_);
  touch();  // since CUDA 12
}
FakeRuntime& FakeRuntime::of(const Stream* stream) { return *stream->runtime; }
std::int64_t FakeRuntime::gpu_of(const Stream* stream) {
  return static_cast<std::int64_t>(stream->runtime->number_) * 1000 + stream->device;
}

static std::string bus_of(int device) { return "0000:" + std::to_string(10 + device) + ":00.0"; }

Properties FakeRuntime::properties(int device) {
  std::vector<std::string> nvlinks;
  for (int other = 0; other < settings_.devices; ++other)
    if (other != device && other / settings_.nvlinked == device / settings_.nvlinked) nvlinks.push_back(bus_of(other));
  return {.device = "a GPU that is not there",
          .driver = "none",
          .libraries = "none",
          .products = "products of a fake",
          .memory = settings_.memory,
          .capability = settings_.capability,
          .bus = bus_of(device),
          .cpus = settings_.numa_cpus,
          .nvlinks = nvlinks};
}
Bytes FakeRuntime::free_memory(int device) {
  select(device);
  const std::lock_guard lock(mutex_);
  return {settings_.memory.value - used_[device] - kContext};
}
bool FakeRuntime::reach(int device, int peer) {
  if (device / settings_.peers != peer / settings_.peers) return false;
  const std::lock_guard lock(mutex_);
  contexts_.insert({device, peer});  // enabling access makes one on the peer, too
  reached_.insert({device, peer});
  return true;
}

// Only workspaces of libraries are larger than this, and writing those of eight GPUs took most of the time of a training.
static std::size_t filled_bytes(Bytes bytes) { return static_cast<std::size_t>(std::min(bytes.value, std::int64_t{8} << 20U)); }

std::byte* FakeRuntime::allocate(Space space, Bytes bytes) {
  std::byte* memory = nullptr;
  Stream* legacy = nullptr;
  {
    const std::lock_guard lock(mutex_);
    expect_no_capture("cudaMalloc");
    touch();
    if (space == Space::Device && used_[current()] + bytes.value > settings_.memory.value)
      throw DeviceError("cudaMalloc of " + std::to_string(bytes.value) + " bytes", "cudaErrorMemoryAllocation");
    memory = static_cast<std::byte*>(::operator new (static_cast<std::size_t>(bytes.value), std::align_val_t{4096}));
    memory_[memory] = {space, bytes, current()};
    std::memset(memory, space == Space::Device ? static_cast<int>(kNeverWritten) : 0, filled_bytes(bytes));
    if (space != Space::Device) return memory;
    used_[current()] += bytes.value;
    legacy = legacy_of(current());
  }
  put_work(legacy, "cudaMemset", {{memory, memory + bytes.value, true}}, [=] { std::memset(memory, 0, filled_bytes(bytes)); });
  return memory;
}
void FakeRuntime::release(Space space, std::byte* memory) {
  const std::lock_guard lock(mutex_);
  expect_no_capture("cudaFree");
  touch();
  const Block block = memory_.at(memory);
  if (space == Space::Device) used_[block.device] -= block.bytes.value, run_legacy(block.device);
  std::erase_if(accesses_, [&](const Access& access) {
    return access.range.begin >= memory && access.range.begin < memory + block.bytes.value;
  });
  memory_.erase(memory);
  ::operator delete (memory, std::align_val_t{4096});
}

// Why a kernel on that GPU cannot touch them all.
std::string FakeRuntime::out_of_reach(int device, const std::vector<Range>& ranges) const {
  for (const Range& range : ranges) {
    auto block = memory_.upper_bound(const_cast<std::byte*>(range.begin));
    if (block == memory_.begin()) continue;
    const auto& [memory, what] = *--block;
    if (what.space != Space::Device || range.begin >= memory + what.bytes.value || what.device == device) continue;
    if (!reached_.contains({device, what.device}))
      return "cudaErrorIllegalAddress, memory of GPU " + std::to_string(what.device) + " out of reach of GPU " +
             std::to_string(device);
  }
  return "";
}

// ---- streams and events -------------------------------------------------------------------------------------------------------

Stream* FakeRuntime::add_stream(int device) {
  Stream* made = streams_.emplace_back(new Stream);
  made->runtime = this, made->device = device;
  return made;
}
Stream* FakeRuntime::open_stream(bool urgent) {
  const std::lock_guard lock(mutex_);
  touch();
  Stream* made = add_stream(current());
  made->connection = opened_[current()]++ % settings_.connections;
  urgent_ += urgent ? 1 : 0;
  return made;
}
Stream* FakeRuntime::legacy_of(int device) {
  Stream*& known = legacy_[device];
  if (!known) known = add_stream(device), known->legacy = true, known->connection = -1;
  return known;
}
Stream* FakeRuntime::legacy_stream() {
  const std::lock_guard lock(mutex_);
  return legacy_of(current());
}
void FakeRuntime::close_stream(Stream* stream) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty() && !stream->queue.empty()) conflicts_.push_back("a stream is closed that has not ended");
  stream->queue.clear();
  stream->open = false;
}
Event* FakeRuntime::make_event(bool timed) {
  const std::lock_guard lock(mutex_);
  touch();
  return new Event{.device = current(), .timed = timed};
}
void FakeRuntime::drop_event(Event* event) { delete event; }

void FakeRuntime::expect_alive(const std::string& call) const {
  if (!failure_.empty()) throw DeviceError(call, failure_);
}
void FakeRuntime::expect_current(const Stream* stream, const std::string& call) {
  const std::lock_guard lock(mutex_);
  touch();
  if (stream->device != current()) throw DeviceError(call, "cudaErrorInvalidResourceHandle");
}

void FakeRuntime::begin_capture(Stream* stream) {
  const std::lock_guard lock(mutex_);
  expect_no_capture("cudaStreamBeginCapture");
  stream->capture = std::make_unique<Graph>();
  this_thread_captures = true;
}
Graph* FakeRuntime::end_capture(Stream* stream) {
  this_thread_captures = false;
  const std::lock_guard lock(mutex_);
  ++graphs_;
  return stream->capture.release();
}
bool FakeRuntime::captures() { return this_thread_captures; }
// Called with the lock. A capture in CUDA's thread-local mode ends with an error when its thread waits for the GPU, asks it or allocates.
void FakeRuntime::expect_no_capture(const std::string& call) {
  if (captures() && conflicts_.size() < 100) conflicts_.push_back(call + " by a thread that captures a graph");
}
void FakeRuntime::launch(Graph* graph, Stream* stream) {
  expect_current(stream, "cudaGraphLaunch");
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
  if (event->device != stream->device) throw DeviceError("cudaEventRecord", "cudaErrorInvalidResourceHandle");
  if (stream->capture) return stream->capture->nodes.push_back([this, event](Stream* on) { put_record(event, on, true); });
  put_record(event, stream, false);
}
void FakeRuntime::put_record(Event* event, Stream* stream, bool in_graph) {
  const std::lock_guard lock(mutex_);
  touch();
  expect_alive("cudaEventRecord");
  join(stream->clock, host());
  join(stream->clock, everybody_);
  ++stream->clock[stream];
  Stream::Entry entry{.event = event, .in_graph = in_graph, .serial = ++serial_, .clock = stream->clock};
  if (!in_graph) event->clock = stream->clock, entry.value = ++event->wanted;
  stream->queue.push_back(std::move(entry));
}

void FakeRuntime::wait(Stream* stream, Event* event) {
  const std::lock_guard lock(mutex_);
  touch();
  expect_alive("cudaStreamWaitEvent");
  if (stream->capture) throw DeviceError("cudaStreamWaitEvent", "cudaErrorStreamCaptureIsolation");
  if (event->wanted == 0) return;
  Clock after = stream->clock;
  join(after, host());
  join(after, everybody_);
  if (join(after, event->clock) && waits_++ == settings_.dropped_wait) return;
  stream->clock = std::move(after);
  stream->queue.push_back({.event = event, .value = event->wanted, .waits = true, .serial = ++serial_});
}

// ---- progress -----------------------------------------------------------------------------------------------------------------

bool FakeRuntime::may_go(Stream& stream) {
  if (stream.queue.empty()) return false;
  Stream::Entry& first = stream.queue.front();
  if (first.waits && first.event->done < first.value) return false;
  for (const Stream* other : streams_) {
    if (other == &stream || other->device != stream.device || other->queue.empty()) continue;
    const Stream::Entry& before = other->queue.front();
    if (before.serial > first.serial || before.runs) continue;
    if (other->connection == stream.connection) return false;
    if (settings_.blocking_streams && (other->legacy || stream.legacy)) return false;
  }
  if (!first.state) return true;
  const Meeting state = first.state();
  first.runs = state == Meeting::Runs;
  return state == Meeting::Over;
}

// Runs one entry of a stream whose first entry need not wait.
bool FakeRuntime::step() {
  std::vector<Stream*> able;
  for (Stream* stream : streams_)
    if (may_go(*stream)) able.push_back(stream);
  if (able.empty()) return false;
  if (settings_.late_zeroing && !std::all_of(able.begin(), able.end(), [](const Stream* stream) { return stream->legacy; }))
    std::erase_if(able, [](const Stream* stream) { return stream->legacy; });
  Stream& stream = *able[philox(settings_.seed, 7, random())[0] % able.size()];
  Stream::Entry entry = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (entry.waits) return true;
  if (entry.event) {
    if (entry.in_graph) entry.event->clock = std::move(entry.clock), entry.value = ++entry.event->wanted;
    entry.event->done = std::max(entry.event->done, entry.value);
    if (entry.event->timed) now_ += settings_.timed_event, ++timed_records_;
    entry.event->time = now_;
    return true;
  }
  now_ += 1000;
  entry.work();
  return true;
}

void FakeRuntime::run_legacy(int device) {
  for (std::deque<Stream::Entry>& queue = legacy_of(device)->queue; !queue.empty(); queue.pop_front()) queue.front().work();
}

bool FakeRuntime::done(Event* event) {
  ++questions_;
  const std::lock_guard lock(mutex_);
  touch();
  expect_no_capture("cudaEventQuery");
  for (std::uint64_t n = philox(settings_.seed, 8, random())[0] % 8; n > 0 && failure_.empty(); --n)
    if (!step()) break;
  expect_alive("cudaEventQuery");
  if (event->done < event->wanted) {
    if (hangs_ && !enqueuers_.contains(std::this_thread::get_id()))
      passed_ += std::chrono::nanoseconds(settings_.hanging_question).count();
    return false;
  }
  join(host(), event->clock);
  return true;
}
bool FakeRuntime::idle(Stream* stream) {
  const std::lock_guard lock(mutex_);
  touch();
  expect_no_capture("cudaStreamQuery");
  static_cast<void>(step());
  expect_alive("cudaStreamQuery");
  if (!stream->queue.empty()) return false;
  join(host(), stream->clock);
  return true;
}
void FakeRuntime::synchronize(Stream* stream) {
  const std::lock_guard lock(mutex_);
  touch();
  expect_no_capture("cudaStreamSynchronize");
  while (!stream->queue.empty() && failure_.empty())
    if (!step()) throw DeviceError("cudaStreamSynchronize", "every stream waits");
  expect_alive("cudaStreamSynchronize");
  join(everybody_, stream->clock);
  std::erase_if(accesses_, [&](const Access& access) { return access.tick <= at(everybody_, access.stream); });
}
std::int64_t FakeRuntime::nanoseconds(Event* from, Event* to) {
  const std::lock_guard lock(mutex_);
  touch();
  if (from->device != to->device || from->done == 0 || to->done == 0)
    throw DeviceError("cudaEventElapsedTime", "cudaErrorInvalidResourceHandle");
  if (!from->timed || !to->timed || to->done < to->wanted) throw DeviceError("cudaEventElapsedTime", "cudaErrorNotReady");
  return to->time - from->time;
}

// ---- what is ordered ----------------------------------------------------------------------------------------------------------

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

// Streams that are not made non-blocking and the legacy one wait for each other, whichever comes first.
void FakeRuntime::order_with_legacy(Stream* stream) {
  if (!settings_.blocking_streams) return;
  for (const Stream* other : streams_)
    if (other->device == stream->device && (other->legacy || stream->legacy)) join(stream->clock, other->clock);
}

std::uint64_t FakeRuntime::put_work(Stream* stream, const std::string& what, std::vector<Range> ranges,
                                    std::function<void()> work, std::function<Meeting()> state) {
  if (stream->capture) {
    stream->capture->nodes.push_back([=, this](Stream* on) { put_work(on, what, ranges, work, state); });
    return 0;
  }
  const std::lock_guard lock(mutex_);
  touch();
  enqueuers_.insert(std::this_thread::get_id());
  expect_no_capture(what);  // on another stream than the one that it captures
  expect_alive(what);
  join(stream->clock, host());
  join(stream->clock, everybody_);
  order_with_legacy(stream);
  const std::uint64_t tick = ++stream->clock[stream];
  for (const Range& range : ranges) note(range, stream, what);
  const int number = works_++;
  if (number == settings_.hanging_work)
    state = [this] {
      hangs_ = true;
      return Meeting::Runs;
    };
  stream->queue.push_back({.work =
                               [this, fails = number == settings_.failing_work, work = std::move(work)] {
                                 if (fails) failure_ = settings_.failure;
                                 if (failure_.empty()) work();
                               },
                           .state = std::move(state),
                           .serial = ++serial_});
  return tick;
}

std::uint64_t FakeRuntime::put_meeting(Stream* stream, const std::string& what,
                                       const std::vector<std::pair<const std::byte*, const std::byte*>>& reads,
                                       const std::vector<std::pair<const std::byte*, const std::byte*>>& writes,
                                       std::function<Meeting()> state) {
  std::vector<Range> ranges;
  for (const auto& [begin, end] : reads) ranges.push_back({begin, end, false});
  for (const auto& [begin, end] : writes) ranges.push_back({begin, end, true});
  return put_work(
      stream, what, std::move(ranges), [] {}, std::move(state));
}

bool FakeRuntime::ordered(const Stream* earlier, std::uint64_t entry, const Stream* later) {
  const std::lock_guard lock(mutex_);
  return std::max({at(later->clock, earlier), at(host(), earlier), at(everybody_, earlier)}) >= entry;
}

}  // namespace foreshard::gpu
