#include "report/causes/segment_sums.h"

#include <algorithm>

namespace foreshard {

static bool communicates(const Instruction& instruction) {
  return std::holds_alternative<Collective>(instruction.what) || std::holds_alternative<Exchange>(instruction.what) ||
         std::holds_alternative<Copy>(instruction.what);
}

SegmentSums::SegmentSums(const Plan& plan, const std::string& device_kind) : segments_(plan.segments.size()) {
  const auto table = std::find_if(plan.costs.begin(), plan.costs.end(),
                                  [&](const CostTable& costs) { return costs.device_kind == device_kind; });
  std::vector<std::int32_t> begin, order;
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const std::vector<Instruction>& instructions = plan.segments[s].instructions;
    const std::vector<Cost>* costs =
        table != plan.costs.end() && s < table->by_segment.size() ? &table->by_segment[s] : nullptr;
    // Counting sort by stream.
    begin.assign(1, 0);
    for (const Instruction& instruction : instructions) {
      if (begin.size() < instruction.stream.index() + 2) begin.resize(instruction.stream.index() + 2, 0);
      ++begin[instruction.stream.index() + 1];
    }
    for (std::size_t b = 1; b < begin.size(); ++b) begin[b] += begin[b - 1];
    Sums& sums = segments_[s];
    sums.place.resize(instructions.size());
    order.resize(instructions.size());
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      sums.place[i] = begin[instructions[i].stream.index()]++;
      order[static_cast<std::size_t>(sums.place[i])] = static_cast<std::int32_t>(i);
    }
    sums.busy.resize(instructions.size() + 1);
    sums.communications.resize(instructions.size() + 1);
    for (std::size_t p = 0; p < order.size(); ++p) {
      const auto i = static_cast<std::size_t>(order[p]);
      const auto* compute = std::get_if<Compute>(&instructions[i].what);
      const Nanoseconds busy = compute != nullptr && costs != nullptr && i < costs->size() ? (*costs)[i].busy : Nanoseconds{};
      sums.busy[p + 1] = sums.busy[p] + busy;
      sums.communications[p + 1] = sums.communications[p] + (communicates(instructions[i]) ? 1 : 0);
      if (compute == nullptr) continue;
      sums.flops += compute->flops;
      if (compute->phase == Phase::WeightGrad) sums.weight_gradient += busy;
    }
  }
}

Nanoseconds SegmentSums::communication(SegmentId segment, const Span& span) const {
  const Sums& sums = segments_[segment.index()];
  const auto first = static_cast<std::size_t>(sums.place[static_cast<std::size_t>(span.instruction)]);
  const auto last = std::min(first + static_cast<std::size_t>(span.count), sums.place.size());
  const Nanoseconds duration = span.end - span.begin;
  const std::int32_t communications = sums.communications[last] - sums.communications[first];
  if (communications == 0) return {};
  if (communications == static_cast<std::int32_t>(last - first)) return duration;
  return std::max(duration - (sums.busy[last] - sums.busy[first]), Nanoseconds{});
}

}  // namespace foreshard
