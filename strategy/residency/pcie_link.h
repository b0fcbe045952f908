// Time of a copy between host memory and a device: setup + bytes / bandwidth.
#pragma once

#include "core/base/units.h"

namespace foreshard {

struct PcieLink {
  Seconds setup = {10e-6};            // per copy
  BytesPerSecond bandwidth = {25e9};  // per direction; copies in both directions do not slow each other

  Seconds time(Bytes bytes) const { return setup + bytes / bandwidth; }
  // The share of the bandwidth that one copy of this size reaches, 0 to 1.
  double efficiency(Bytes bytes) const { return (bytes / bandwidth).value / time(bytes).value; }
  // The size of a copy that reaches this share of the bandwidth (below 1). With 10 us and 25 GB/s: 250 KB for 0.5, 4.75 MB for 0.95.
  Bytes size_for(double share) const { return {std::llround(setup.value * bandwidth.value * share / (1 - share))}; }
  bool operator==(const PcieLink&) const = default;
};

}  // namespace foreshard
