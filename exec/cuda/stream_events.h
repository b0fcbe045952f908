// The plan's events between the streams of a rank. The rank's thread numbers the records of an event in issue order. To wait for a record,
// the thread of a stream first waits on the host until the other thread has enqueued that record, and then lets its CUDA stream wait for
// it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "exec/base/stop.h"
#include "exec/cuda/gpu_memory.h"

namespace foreshard::gpu {

class StreamEvents {
 public:
  StreamEvents(Runtime& runtime, const Stop& stop) : runtime_(runtime), stop_(stop) {}
  void open(int events, EventPool& pool);

  // Called by the rank's thread: assigns the number of the next record, from 1; number of the last record, 0 if there is none.
  std::uint64_t next_record(int event) { return ++events_[static_cast<std::size_t>(event)].issued; }
  std::uint64_t last_record(int event) const { return events_[static_cast<std::size_t>(event)].issued; }

  // Called by the threads of the streams. `count`: the number of the record.
  void record(int event, std::uint64_t count, Stream* stream);
  void wait(int event, std::uint64_t count, Stream* stream);

 private:
  // An event of the plan. It has a CUDA event for each run in flight and the one before, so that a stream that is ahead does not overwrite
  // a record for which another has yet to wait.
  struct Mark {
    std::vector<Event*> events = {};         // [count % size]
    std::uint64_t issued = 0;                // number of the last record issued; used by the rank's thread
    std::atomic<std::uint64_t> recorded{0};  // number of the last record enqueued
  };

  Runtime& runtime_;
  const Stop& stop_;
  std::deque<Mark> events_;
  std::mutex mutex_;
  std::condition_variable recorded_;
};

}  // namespace foreshard::gpu
