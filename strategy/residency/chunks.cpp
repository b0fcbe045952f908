#include "strategy/residency/chunks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace foreshard {

ChunkLayout lay_chunks(const std::vector<ParameterUnit>& modules, std::int64_t chunk) {
  FS_ASSERT(chunk > 0);
  ChunkLayout layout;
  std::int64_t left = 0, used = 0;
  for (const ParameterUnit& module : modules) {
    if (module.elements > left) {
      const std::int64_t size = std::max(chunk, module.elements);
      layout.chunks.push_back({"chunk " + std::to_string(layout.chunks.size()), size});
      left = size;
    }
    left -= module.elements;
    used += module.elements;
    layout.chunk_of.push_back(std::max(static_cast<int>(layout.chunks.size()) - 1, 0));
  }
  for (const ParameterUnit& unit : layout.chunks) layout.padding += unit.elements;
  layout.padding -= used;
  return layout;
}

std::vector<UnitUse> chunk_uses(const ChunkLayout& layout, const std::vector<UnitUse>& module_uses) {
  std::vector<UnitUse> uses;
  for (const UnitUse& use : module_uses) {
    const UnitUse of_chunk{layout.chunk_of[static_cast<std::size_t>(use.unit)], use.phase};
    if (uses.empty() || uses.back() != of_chunk) uses.push_back(of_chunk);
  }
  return uses;
}

std::int64_t padding_of(const std::vector<std::int64_t>& modules, std::int64_t chunk) {
  std::int64_t padding = 0, left = 0;
  for (const std::int64_t size : modules) {
    FS_ASSERT(size <= chunk);
    if (size > left) {
      padding += left;
      left = chunk;
    }
    left -= size;
  }
  return padding + left;
}

std::int64_t least_padding(const std::vector<std::int64_t>& modules, std::int64_t first, std::int64_t range,
                           std::int64_t step) {
  std::int64_t best = first, least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t chunk = first; chunk <= first + range; chunk += step) {
    const std::int64_t padding = padding_of(modules, chunk);
    if (padding >= least) continue;
    least = padding;
    best = chunk;
  }
  return best;
}

std::int64_t least_padding_chunk(const std::vector<ParameterUnit>& modules, const ChunkSearch& search) {
  std::int64_t total = 0;
  double squares = 0;
  for (const ParameterUnit& module : modules) total += module.elements;
  if (total < search.least) return total;
  const double mean = static_cast<double>(total) / static_cast<double>(modules.size());
  for (const ParameterUnit& module : modules) squares += std::pow(static_cast<double>(module.elements) - mean, 2);
  const double limit = mean + 3 * std::sqrt(squares / static_cast<double>(modules.size()));
  std::vector<std::int64_t> sizes;
  std::int64_t largest = search.least;
  for (const ParameterUnit& module : modules) {
    if (static_cast<double>(module.elements) > limit) continue;
    sizes.push_back(module.elements);
    largest = std::max(largest, module.elements);
  }
  return least_padding(sizes, round_up(largest, search.step), search.range, search.step);
}

}  // namespace foreshard
