// at(i): an int as the index of a vector. Numbers of ranks, layers and micro-batches are int here; vectors count in std::size_t.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foreshard {

constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace foreshard
