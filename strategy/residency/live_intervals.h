// Bytes that are live in intervals of time: their peak, and their sum over time. What leaves at an instant makes room for what comes then.
#pragma once

#include <vector>

#include "core/base/units.h"

namespace foreshard {

class LiveIntervals {
 public:
  void add(Seconds from, Seconds until, Bytes bytes);
  Bytes peak() const;
  double byte_seconds() const { return byte_seconds_; }

 private:
  struct Change {
    Seconds when = {};
    Bytes bytes = {};  // negative: they leave
  };
  std::vector<Change> changes_ = {};
  double byte_seconds_ = 0;
};

}  // namespace foreshard
