// Bytes that are live in intervals of time: their peak, and their integral over time. Bytes that are freed at an instant make room for
// bytes that are allocated at the same instant.
#pragma once

#include <vector>

#include "core/base/units.h"

namespace foreshard {

class LiveIntervals {
 public:
  void clear();
  void add(Seconds from, Seconds until, Bytes bytes);
  Bytes peak();
  double byte_seconds() const { return byte_seconds_; }

 private:
  struct Change {
    Seconds when = {};
    Bytes bytes = {};
    bool operator<(const Change& other) const { return when < other.when; }
  };
  std::vector<Change> begins_ = {}, ends_ = {};
  double byte_seconds_ = 0;
};

}  // namespace foreshard
