// Binding arrows: which spans the timeline joins by an arrow. An arrow leads to a span from its binding predecessor, the span whose end
// let it begin; other dependencies get no arrow. Also the critical path of the whole run, thinned to what a picture can show.
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

inline constexpr int kMostHops = 400;  // arrows drawn at once

// The arrows that lead to the picked span, latest first, at most `most`. Direct: only the one from its predecessor. Chain: all back to
// the start of the run. None and Critical: no arrows.
std::vector<ChainHop> binding_hops(const Document& document, Picked picked, Arrows arrows, int most = kMostHops);

struct PathStretch {  // a part of the critical path that lies in one class of ranks
  ClassId who = {};
  Nanoseconds begin = {}, end = {};
  bool operator==(const PathStretch&) const = default;
};

// The part of the critical path that intersects `visible`, without gaps, one stretch for each time it stays in one class. Consecutive
// stretches shorter than `least` (the time of one pixel) are merged into one, which is given the class with most of their time. So a
// picture never has more stretches than pixels.
std::vector<PathStretch> critical_stretches(const Document& document, TimeRange visible, Nanoseconds least);

}  // namespace foreshard
