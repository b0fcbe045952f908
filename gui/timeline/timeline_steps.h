// What to pick next in a result, from what is picked now; empty: there is none.
#pragma once

#include <optional>

#include "gui/document/document.h"
#include "gui/document/selection.h"

namespace foreshard {

std::optional<Picked> next_op(const Document& document, Picked now, int by);      // of its lane, `by` operations further
std::optional<Picked> next_bubble(const Document& document, Picked now, int by);  // likewise
std::optional<Picked> worst_bubble(const Document& document, Picked now);

}  // namespace foreshard
