// What ranks own on their GPUs beside streams: memory and events.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "exec/base/file_memory.h"
#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

// Where arenas come from: a library that wants to reach them in ways of its own. Memory of the current GPU, with anything in it, at a multiple of 4096
// bytes; null: it has none, and the runtime's is taken.
struct ArenaSource {
  std::function<std::byte*(Bytes bytes)> allocate = {};
  std::function<void(std::byte* memory)> release = {};
};

// Memory that outlives the devices of all ranks: their streams may still reach into each other's arenas when one of them ends.
class GpuMemory {
 public:
  explicit GpuMemory(Runtime& runtime, ArenaSource arenas = {}) : runtime_(runtime), source_(std::move(arenas)) {}
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  std::byte* allocate(Space space, Bytes bytes);
  std::byte* arena(Space space, Bytes bytes);  // zeroed, too

 private:
  Runtime& runtime_;
  ArenaSource source_;
  std::mutex mutex_;
  std::vector<std::pair<Space, std::byte*>> all_;
  std::vector<std::byte*> of_source_;
  std::vector<FileMemory> files_ = {};
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
