// A Result as a Chrome trace, to be opened in Perfetto (ui.perfetto.dev) or chrome://tracing.
//
// One process per class of ranks, one thread per stream, and nothing but X events that nest on their thread: an action
// and inside it its spans. Flow arrows follow the critical chain only. One counter track per memory category.
#pragma once

#include <cstdint>
#include <string>

#include "core/result/result.h"

namespace foreshard {

struct ChromeTraceOptions {
  // Above it the spans inside actions are left out first, then whole classes from the last on; the file says how many.
  std::int64_t most_slices = 200'000;
  int most_memory_points = 4096;  // per class; above it the largest sum of each equal stretch of time is kept
  bool critical_chain = true;
};

// Times in microseconds with three decimals, so that no nanosecond is lost; in order on every thread.
std::string chrome_trace(const Result& result, const ChromeTraceOptions& options = {});

}  // namespace foreshard
