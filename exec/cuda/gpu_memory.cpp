#include "exec/cuda/gpu_memory.h"

#include <algorithm>
#include <array>

namespace foreshard::gpu {

GpuMemory::~GpuMemory() {
  for (const auto& [space, memory] : all_) runtime_.release(space, memory);
  for (std::byte* memory : of_source_) source_.release(memory);
}
std::byte* GpuMemory::allocate(Space space, Bytes bytes) {
  if (bytes.value == 0) return nullptr;
  std::byte* memory = runtime_.allocate(space, bytes);
  // Our streams do not wait for the legacy stream, which writes the zeros; without this, their next tasks could run before that.
  if (space == Space::Device) runtime_.synchronize(runtime_.legacy_stream());
  const std::lock_guard lock(mutex_);
  all_.emplace_back(space, memory);
  return memory;
}

std::byte* GpuMemory::arena(Space space, Bytes bytes) {
  if (space == Space::Nvme) {
    const std::lock_guard lock(mutex_);
    return files_.emplace_back(bytes).data();
  }
  std::byte* memory = space == Space::Device && source_.allocate && bytes.value > 0 ? source_.allocate(bytes) : nullptr;
  if (!memory) return allocate(space, bytes);
  {
    const std::lock_guard lock(mutex_);
    of_source_.push_back(memory);
  }
  runtime_.fill(memory, std::byte{0}, bytes, runtime_.legacy_stream());
  runtime_.synchronize(runtime_.legacy_stream());
  return memory;
}

EventPool::~EventPool() {
  for (Event* event : all_) runtime_.drop_event(event);
}
Event* EventPool::take() {
  if (free_.empty()) {
    runtime_.select(gpu_);
    all_.push_back(runtime_.make_event(timed_));
    return all_.back();
  }
  Event* event = free_.back();
  free_.pop_back();
  return event;
}

std::int64_t event_overhead(Runtime& runtime, EventPool& times, Stream* stream) {
  constexpr std::size_t kTimes = 9;
  std::array<std::int64_t, kTimes> apart = {};
  Event *begin = times.take(), *end = times.take();
  for (std::int64_t& nanoseconds : apart) {
    runtime.record(begin, stream);
    runtime.record(end, stream);
    runtime.synchronize(stream);
    nanoseconds = runtime.nanoseconds(begin, end);
  }
  times.give(begin);
  times.give(end);
  std::nth_element(apart.begin(), apart.begin() + kTimes / 2, apart.end());
  return apart[kTimes / 2];
}

}  // namespace foreshard::gpu
