// Binding arrows: which spans to join by an arrow, only the binding predecessor of each span (the end that let it begin) and never
// all dependencies; and the critical path of the whole run, thinned to what a picture can show.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"

namespace foreshard {

enum class Arrows : std::uint8_t { None, Direct, Chain, Critical };

struct ChainHop {  // indices in Trace::spans; `from` ended and let `to` begin
  std::int32_t from = 0, to = 0;
  bool operator==(const ChainHop&) const = default;
};

inline constexpr int kMostHops = 400;  // that are drawn

// At most `most`, latest first. Direct: the predecessor of what is picked; Chain: back to the start of the run. None, Critical:
// nothing.
std::vector<ChainHop> binding_hops(const Document& document, Picked picked, Arrows arrows, int most = kMostHops);

struct PathStretch {  // of the critical path: the class that it lies in
  ClassId who = {};
  Nanoseconds begin = {}, end = {};
  bool operator==(const PathStretch&) const = default;
};

// The critical path as far as it is visible, without a gap: a stretch for each stay in one class. Stays shorter than `least` (a
// pixel, say) become, together, one stretch of the class that holds most of their time, so there are never more than pixels.
std::vector<PathStretch> critical_stretches(const Document& document, TimeRange visible, Nanoseconds least);

}  // namespace foreshard
