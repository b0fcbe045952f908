// What a copy between host memory and a device takes: t = setup + bytes / bandwidth.
#pragma once

#include "core/base/units.h"

namespace foreshard {

struct PcieLink {
  Seconds setup = {10e-6};            // of one copy
  BytesPerSecond bandwidth = {25e9};  // of one direction; both directions work at once

  Seconds time(Bytes bytes) const { return setup + bytes / bandwidth; }
  // The share of the bandwidth that one copy reaches.
  double efficiency(Bytes bytes) const { return (bytes / bandwidth).value / time(bytes).value; }
  // The bucket rule: the size that reaches a share below 1. At 10 us and 25 GB/s: a half 250 KB, 0.95 4.75 MB.
  Bytes size_for(double share) const { return {std::llround(setup.value * bandwidth.value * share / (1 - share))}; }
  bool operator==(const PcieLink&) const = default;
};

}  // namespace foreshard
