// What ranks own on their GPUs beside streams: memory and events.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

// Memory that outlives the devices of all ranks: their streams may still reach into each other's arenas when one of them ends.
class GpuMemory {
 public:
  explicit GpuMemory(Runtime& runtime) : runtime_(runtime) {}
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  std::byte* allocate(Space space, Bytes bytes);

 private:
  Runtime& runtime_;
  std::mutex mutex_;
  std::vector<std::pair<Space, std::byte*>> all_;
};

// Events of one GPU, made once and used again and again; any thread may make them.
class EventPool {
 public:
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

// Nanoseconds between two timed events of an idle stream with nothing between them: what is measured with two is longer by that.
std::int64_t time_of_timing(Runtime& runtime, EventPool& times, Stream* stream);

}  // namespace foreshard::gpu
