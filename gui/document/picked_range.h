// Where and when the selected object lies: its class of ranks and its range of time.
#pragma once

#include <optional>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"

namespace foreshard {

// The range of time of a span, an action or a bubble. None: `picked` is of another kind, or it is not in the document.
std::optional<TimeRange> range_of(const Document& document, Picked picked);

// The class of ranks of a span, an action or a bubble, or the picked class itself; invalid: none.
ClassId class_of(const Document& document, Picked picked);

// The index of the span that stands for `picked`: the span itself, the first span of an action on its stream, or Bubble::before of a
// bubble. -1: none.
std::int32_t span_of(const Document& document, Picked picked);

}  // namespace foreshard
