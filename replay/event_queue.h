// EventQueue: the future events of a clock, earliest first. Events of equal time come in the order in which they were planned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace foreshard::player {

// The clock that plans an event defines `kind`, `which` and `version`.
struct Event {
  double time = 0;           // seconds
  std::uint64_t number = 0;  // in the order of planning
  std::uint32_t kind = 0, which = 0, version = 0;
  bool operator<(const Event& other) const {  // of a max-heap: the earliest first
    return time != other.time ? time > other.time : number > other.number;
  }
};

class EventQueue {
 public:
  void plan(double time, std::uint32_t kind, std::uint32_t which, std::uint32_t version) {
    heap_.push_back({time, planned_++, kind, which, version});
    std::push_heap(heap_.begin(), heap_.end());
  }
  bool empty() const { return heap_.empty(); }
  const Event& first() const { return heap_.front(); }
  Event take_first() {
    std::pop_heap(heap_.begin(), heap_.end());
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  std::uint64_t planned_ = 0;
  std::vector<Event> heap_ = {};
};

}  // namespace foreshard::player
