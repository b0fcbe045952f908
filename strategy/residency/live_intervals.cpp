#include "strategy/residency/live_intervals.h"

#include <algorithm>

namespace foreshard {

void LiveIntervals::clear() { begins_.clear(), ends_.clear(), byte_seconds_ = 0; }

void LiveIntervals::add(Seconds from, Seconds until, Bytes bytes) {
  begins_.push_back({from, bytes});
  ends_.push_back({until, bytes});
  byte_seconds_ += static_cast<double>(bytes.value) * (until - from).value;
}

Bytes LiveIntervals::peak() {
  std::sort(begins_.begin(), begins_.end());
  std::sort(ends_.begin(), ends_.end());
  Bytes live, peak;
  auto end = ends_.begin();
  for (const Change& begin : begins_) {
    for (; end != ends_.end() && end->when <= begin.when; ++end) live -= end->bytes;
    live += begin.bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace foreshard
