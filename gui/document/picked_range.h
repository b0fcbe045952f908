// Where and when a picked thing is: its class of ranks and its stretch of time.
#pragma once

#include <optional>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"

namespace foreshard {

// Of a span, an action or a bubble; none: of anything else, or it is not in the document.
std::optional<TimeRange> range_of(const Document& document, Picked picked);

// The class that a span, an action, a bubble or a class is of; invalid: none.
ClassId class_of(const Document& document, Picked picked);

// The span that what is picked is about: itself, the first of an action, or for a bubble the one that ends it; -1: none.
std::int32_t span_of(const Document& document, Picked picked);

}  // namespace foreshard
