#include "exec/cuda/gpu_memory.h"

namespace foreshard::gpu {

GpuMemory::~GpuMemory() {
  for (const auto& [space, memory] : all_) runtime_.release(space, memory);
}
std::byte* GpuMemory::allocate(Space space, Bytes bytes) {
  if (bytes.value == 0) return nullptr;
  std::byte* memory = runtime_.allocate(space, bytes);
  // No stream of ours waits for the legacy one, so what is put on them next could come before the zeros.
  if (space == Space::Device) runtime_.synchronize(runtime_.legacy_stream());
  const std::lock_guard lock(mutex_);
  all_.emplace_back(space, memory);
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

}  // namespace foreshard::gpu
