// Dropout masks from the counter-based generator. Used only by exec/host_*.cpp.
#pragma once

#include <cstdint>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

// From p and site: an element is dropped when its random word is below p 2^32; what is kept is scaled by 1 / (1 - p).
struct DropRule {
  std::uint32_t threshold = 0;
  double scale = 1;
  std::uint64_t site = 0;
};
DropRule drop_rule(const Form& form);

// Key of a mask: layer, site within it and global sample.
std::uint64_t drop_stream(const OpArguments& arguments, const DropRule& rule, std::int64_t sample);

// keep[i] = 1 where element `first` + i of the sample is kept, else 0. An element is numbered within its sample, globally:
// position * columns + column, or (head * queries + query) * keys + key.
void fill_mask(std::uint64_t seed, std::uint64_t stream, std::int64_t first, std::int64_t count, std::uint32_t threshold,
               std::uint8_t* keep);

}  // namespace foreshard::host
