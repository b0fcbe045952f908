// A Result as a Chrome trace, to be opened in Perfetto (ui.perfetto.dev) or chrome://tracing.
//
// Each class of ranks is a process, each of its streams a thread. A thread holds complete events (phase X) only: one per
// action, and nested in it one per span. Flow arrows follow the critical chain. Each memory category has a counter track.
#pragma once

#include <cstdint>
#include <string>

#include "core/result/result.h"

namespace foreshard {

struct ChromeTraceOptions {
  // With more slices than this, the spans inside actions are left out first, then whole classes, the last ones first; the
  // file says how many classes were left out.
  std::int64_t most_slices = 200'000;
  int most_memory_points = 4096;  // per class; if there are more, each of equal intervals keeps its moment with the most bytes
  bool critical_chain = true;
};

// The JSON text. Times are in microseconds with three decimals (exact nanoseconds); events are in time order on each thread.
std::string chrome_trace(const Result& result, const ChromeTraceOptions& options = {});

}  // namespace foreshard
