// Sums over consecutive instructions of a segment: how much of a span of several instructions is compute and how much is
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

  // The time of the span in which a collective, exchange or copy runs: for one instruction all of the span or nothing; for a
  // mixed span its duration less the isolated times of its computes.
  Nanoseconds communication(SegmentId segment, const Span& span) const;
  // Isolated times of the weight-gradient computes of the segment.
  Nanoseconds weight_gradient(SegmentId segment) const { return segments_[segment.index()].weight_gradient; }
  Flops flops(SegmentId segment) const { return segments_[segment.index()].flops; }

 private:
  struct Sums {
    std::vector<std::int32_t> place = {};           // [instruction]: its position when ordered by (stream, issue)
    std::vector<Nanoseconds> busy = {};             // [place]: isolated compute time before it
    std::vector<std::int32_t> communications = {};  // [place]: number of communications before it
    Nanoseconds weight_gradient = {};
    Flops flops = {};
  };
  std::vector<Sums> segments_;
};

}  // namespace foreshard
