#include "strategy/residency/live_intervals.h"

#include <algorithm>

namespace foreshard {

void LiveIntervals::add(Seconds from, Seconds until, Bytes bytes) {
  changes_.push_back({from, bytes});
  changes_.push_back({until, -bytes});
  byte_seconds_ += static_cast<double>(bytes.value) * (until - from).value;
}

Bytes LiveIntervals::peak() const {
  std::vector<Change> changes = changes_;
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.when != b.when ? a.when < b.when : a.bytes < b.bytes; });
  Bytes live, peak;
  for (const Change& change : changes) {
    live += change.bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace foreshard
