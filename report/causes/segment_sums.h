// What a stretch of a segment's instructions adds up to: how much of a merged span is compute and how much
// communication.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/trace.h"

namespace foreshard {

class SegmentSums {
 public:
  // Isolated times are those of the device kind; without a cost table they count as 0.
  SegmentSums(const Plan& plan, const std::string& device_kind);

  // Part of the span in which a collective, exchange or copy runs: all or nothing for one instruction; for a merged
  // span what its compute does not take.
  Nanoseconds communication(SegmentId segment, const Span& span) const;
  Nanoseconds weight_gradient(SegmentId segment) const { return segments_[segment.index()].weight_gradient; }
  Flops flops(SegmentId segment) const { return segments_[segment.index()].flops; }

 private:
  struct Sums {
    std::vector<std::int32_t> place = {};  // [instruction]: in the order (stream, issue)
    std::vector<Nanoseconds> busy = {};    // [place]: compute before it
    std::vector<std::int32_t> communications = {};  // [place]: those before it
    Nanoseconds weight_gradient = {};
    Flops flops = {};
  };
  std::vector<Sums> segments_;
};

}  // namespace foreshard
