// What crosses the links of each bundle: bytes, and the time with at least one flow under way.
#pragma once

#include <vector>

#include "replay/quotient.h"

namespace foreshard::player {

class LinkUse {
 public:
  explicit LinkUse(const Quotient& quotient) : quotient_(quotient), bundles_(quotient.bundles.size()) {}

  void begin(int flow, double now) {
    for (const Crossing& c : quotient_.flows[static_cast<std::size_t>(flow)].bundles) {
      Use& use = bundles_[static_cast<std::size_t>(c.flow)];
      if (use.under_way++ == 0) use.since = now;
    }
  }
  void end(int flow, double now, double bytes) {
    for (const Crossing& c : quotient_.flows[static_cast<std::size_t>(flow)].bundles) {
      Use& use = bundles_[static_cast<std::size_t>(c.flow)];
      if (--use.under_way == 0) use.busy += now - use.since;
      use.bytes += c.times * bytes;
    }
  }
  // A flow that had its links to itself for `seconds`.
  void alone(int flow, double seconds, double bytes) {
    for (const Crossing& c : quotient_.flows[static_cast<std::size_t>(flow)].bundles) {
      Use& use = bundles_[static_cast<std::size_t>(c.flow)];
      use.busy += seconds;
      use.bytes += c.times * bytes;
    }
  }
  double bytes(int bundle) const { return bundles_[static_cast<std::size_t>(bundle)].bytes; }
  Seconds busy(int bundle) const { return {bundles_[static_cast<std::size_t>(bundle)].busy}; }

 private:
  struct Use {
    double bytes = 0, busy = 0, since = 0;
    int under_way = 0;
  };
  const Quotient& quotient_;
  std::vector<Use> bundles_;
};

}  // namespace foreshard::player
