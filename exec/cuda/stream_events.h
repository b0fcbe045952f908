// The plan's events between the streams of a rank. The rank's thread counts records in issue order; a stream's thread that is to wait for one waits on
// the host until that record has been put on its stream, and only then makes its own stream wait.
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

  // By the rank's thread: the number of the next record, and of the last one; 0: there is none.
  std::uint64_t next_record(int event) { return ++events_[static_cast<std::size_t>(event)].issued; }
  std::uint64_t last_record(int event) const { return events_[static_cast<std::size_t>(event)].issued; }

  // By the streams' threads.
  void record(int event, std::uint64_t count, Stream* stream);
  void wait(int event, std::uint64_t count, Stream* stream);

 private:
  // One per run that may be under way and the one before, so that a stream far ahead does not record what another has yet to wait for.
  struct Mark {
    std::vector<Event*> events = {};
    std::uint64_t issued = 0;                // records, by the rank's thread
    std::atomic<std::uint64_t> recorded{0};  // records made, by the stream's
  };

  Runtime& runtime_;
  const Stop& stop_;
  std::deque<Mark> events_;
  std::mutex mutex_;
  std::condition_variable recorded_;
};

}  // namespace foreshard::gpu
