#include "report/summary/memory_steps.h"

#include <algorithm>

namespace foreshard {

std::vector<MemoryStep> memory_steps(const MemoryCurve& curve, Nanoseconds makespan, int most) {
  std::vector<MemoryStep> steps = {{{}, curve.start}};
  for (const MemoryEvent& event : curve.events) {
    if (event.when > steps.back().when) steps.push_back({event.when, steps.back().live});
    steps.back().live[static_cast<std::size_t>(event.category)] += event.bytes;
  }
  if (static_cast<int>(steps.size()) <= most || most < 1) return steps;
  const auto stretch = [&](Nanoseconds when) {
    return static_cast<std::int64_t>(static_cast<double>(when.value) /
                                     static_cast<double>(std::max<std::int64_t>(makespan.value, 1)) * most);
  };
  std::vector<MemoryStep> kept;
  std::int64_t current = -1;
  for (const MemoryStep& step : steps) {
    if (stretch(step.when) != current)
      kept.push_back(step);
    else if (sum(step.live) > sum(kept.back().live))
      kept.back() = step;
    current = stretch(step.when);
  }
  return kept;
}

std::vector<MemoryCurve> device_curves(const Result& result) {
  const auto without_events = [](const MemoryCurve& curve) { return curve.events.empty(); };
  const std::vector<MemoryCurve>& known = result.memory.curves;
  const bool peaks_only = std::all_of(known.begin(), known.end(), without_events);
  std::vector<MemoryCurve> curves = peaks_only ? memory_timeline(result.plan, result.trace).curves : known;
  std::erase_if(curves, [](const MemoryCurve& curve) { return curve.space != Space::Device; });
  return curves;
}

}  // namespace foreshard
