// Use of the links of each bundle (replay/quotient.h): bytes that cross one link, and the time during which at least one flow does.
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
  // Records a whole transfer of a flow during which nothing else crossed its links; it took `seconds`.
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
