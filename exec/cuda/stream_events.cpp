#include "exec/cuda/stream_events.h"

#include "exec/cuda/step_graphs.h"

namespace foreshard::gpu {

namespace {

constexpr int kMarks = kRunsUnderWay + 1;  // one more, because a run may have to wait for a record of the run before it

}  // namespace

void StreamEvents::open(int events, EventPool& pool) {
  for (int e = 0; e < events; ++e) {
    Mark& mark = events_.emplace_back();
    for (int run = 0; run < kMarks; ++run) mark.events.push_back(pool.take());
  }
}

void StreamEvents::record(int event, std::uint64_t count, Stream* stream) {
  Mark& mark = events_[static_cast<std::size_t>(event)];
  runtime_.record(mark.events[count % kMarks], stream);
  const std::lock_guard lock(mutex_);
  mark.recorded.store(count);
  recorded_.notify_all();
}

void StreamEvents::wait(int event, std::uint64_t count, Stream* stream) {
  Mark& mark = events_[static_cast<std::size_t>(event)];
  if (mark.recorded.load() < count) {
    std::unique_lock lock(mutex_);
    stop_.wait(lock, recorded_, [&] { return mark.recorded.load() >= count; });
  }
  runtime_.wait(stream, mark.events[count % kMarks]);
}

}  // namespace foreshard::gpu
