// Memory and CUDA events of the ranks on their GPUs.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "exec/base/file_memory.h"
#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

// An allocator for arenas in GPU memory, if a library has one of its own (NCCL, for buffer registration). `allocate` returns memory of the
// selected GPU, aligned to 4096 bytes and not initialized; null: it cannot, and the runtime allocates the arena.
struct ArenaSource {
  std::function<std::byte*(Bytes bytes)> allocate = {};
  std::function<void(std::byte* memory)> release = {};
};

// Owns the memory of all ranks and frees it in the destructor. It must outlive the devices of all ranks, because streams of one rank may
// still access the arena of another when that rank's device ends. Functions may be called from any thread.
class GpuMemory {
 public:
  explicit GpuMemory(Runtime& runtime, ArenaSource arenas = {}) : runtime_(runtime), source_(std::move(arenas)) {}
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  std::byte* allocate(Space space, Bytes bytes);  // zeroed; null for 0 bytes; throws DeviceError
  std::byte* arena(Space space, Bytes bytes);     // zeroed; from the ArenaSource if possible, for Space::Nvme a mapped file

 private:
  Runtime& runtime_;
  ArenaSource source_;
  std::mutex mutex_;
  std::vector<std::pair<Space, std::byte*>> all_;
  std::vector<std::byte*> of_source_;
  std::vector<FileMemory> files_ = {};
};

// A pool of CUDA events of one GPU, which are reused. Not thread-safe.
class EventPool {
 public:
  // `timed`: events record a time stamp.
  EventPool(Runtime& runtime, int gpu, bool timed) : runtime_(runtime), gpu_(gpu), timed_(timed) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  Event* take();
  void give(Event* event) { free_.push_back(event); }

 private:
  Runtime& runtime_;
  int gpu_;
  bool timed_;
  std::vector<Event*> all_, free_;
};

// Nanoseconds between two timed events that are recorded one directly after the other on an idle stream (median of several). A time
// measured with two events is too long by this amount.
std::int64_t event_overhead(Runtime& runtime, EventPool& times, Stream* stream);

}  // namespace foreshard::gpu
