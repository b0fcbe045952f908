// Binding arrows: which spans to join by an arrow. Only the binding predecessor of each span (the end that let it begin), never
// all dependencies, and at most `most` of them.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/document.h"
#include "gui/selection.h"

namespace foreshard {

enum class Arrows : std::uint8_t { None, Direct, Chain, Critical };

struct ChainHop {  // indices in Trace::spans; `from` ended and let `to` begin
  std::int32_t from = 0, to = 0;
  bool operator==(const ChainHop&) const = default;
};

inline constexpr int kMostHops = 400;

// Latest first. Direct: the predecessor of what is picked; Chain: back to the start of the run; Critical: the chain that explains
// the whole run, whatever is picked.
std::vector<ChainHop> binding_hops(const Document& document, Picked picked, Arrows arrows, int most = kMostHops);

// The span that what is picked is about: itself, or for a bubble the one that ends it; -1: none.
std::int32_t span_of(const Document& document, Picked picked);

}  // namespace foreshard
