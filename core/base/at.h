// at(i): converts a signed index to the std::size_t that vectors are indexed with. Counts of ranks, layers and micro-batches are int in
// this code. `i` has to be at least 0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foreshard {

constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace foreshard
