// Which object to pick next, starting from the picked one. None: there is no such object.
#pragma once

#include <optional>

#include "gui/document/document.h"
#include "gui/document/selection.h"

namespace foreshard {

// `by` operations later in the same lane; negative: earlier.
std::optional<Picked> next_op(const Document& document, Picked now, int by);
// `by` bubbles later in Document::bubbles; negative: earlier.
std::optional<Picked> next_bubble(const Document& document, Picked now, int by);
// The longest bubble; if a bubble is picked, the next shorter one.
std::optional<Picked> worst_bubble(const Document& document, Picked now);

}  // namespace foreshard
