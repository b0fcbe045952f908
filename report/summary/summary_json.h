// The JSON of `foreshard simulate --json`: the keys are stable and documented in docs/json-output.md.
#pragma once

#include <cstdint>
#include <string>

#include "core/result/result.h"
#include "core/result/summary.h"

namespace foreshard {

// Where the summary comes from; these keys are written in addition to those of the Summary.
struct SummaryOrigin {
  std::string model = {}, cluster = {};
  std::string strategy_json = {};   // as to_json(Strategy) writes it; empty: null
  double wall_time_s = 0;           // of lowering, simulation and summary
  double makespan_s = 0;            // end of the run on the replay's clock, not rounded to nanoseconds
  std::string clock = "simgrid";    // or "light"
  std::int64_t simgrid_events = 0;  // events that this clock processed
  Granularity granularity = Granularity::Layer;
  Folding folding = Folding::Full;
  std::string framework_allocation_json = {};  // empty: null
  std::string caching_allocator_json = {};     // empty: no such key
  bool operator==(const SummaryOrigin&) const = default;
};

std::string summary_json(const Summary& summary, const SummaryOrigin& origin);

}  // namespace foreshard
