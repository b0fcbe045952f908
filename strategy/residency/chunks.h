// Parameters laid into chunks of equal size, in their order: the units of Gemini (hpcaitech/ColossalAI, colossalai/zero/gemini/chunk) and
// PatrickStar (Fang et al. 2021, arXiv 2108.05818). They have nothing to do with the chunks of a pipeline rank. All sizes are elements.
#pragma once

#include "strategy/residency/residency.h"

namespace foreshard {

inline constexpr std::int64_t kPatrickStarChunk = std::int64_t{64} << 20;  // 128 MiB of 16-bit numbers

struct ChunkLayout {
  std::vector<ParameterUnit> chunks = {};
  std::vector<int> chunk_of = {};  // [module]
  std::int64_t padding = 0;        // elements of chunks in which no module lies
};
// A module that does not fit into what is left of the current chunk opens the next one. One that is larger than a chunk has a chunk of
// its own, of its size, and closes the one before it.
ChunkLayout lay_chunks(const std::vector<ParameterUnit>& modules, std::int64_t chunk);

// Uses of chunks that uses of their modules make; uses of one chunk in one phase that follow one another are one.
std::vector<UnitUse> chunk_uses(const ChunkLayout& layout, const std::vector<UnitUse>& module_uses);

struct ChunkSearch {
  std::int64_t least = std::int64_t{32} << 20;  // Gemini's defaults
  std::int64_t range = std::int64_t{32} << 20;
  std::int64_t step = 1024;  // sizes that are tried; Gemini advises the hidden size
};
// The size in [s, s + range] with the least padding, the smallest of several, where s is `least` or the largest module, rounded up to
// `step`. Modules larger than the mean plus three standard deviations are left out. Of modules that are together smaller than `least`:
// their sum (Gemini keeps them gathered in one chunk). colossalai/zero/gemini/chunk/search_utils.py.
std::int64_t least_padding_chunk(const std::vector<ParameterUnit>& modules, const ChunkSearch& search = {});

// The padding of modules laid into chunks of `chunk` elements, the end of the last one included; no module is larger.
std::int64_t padding_of(const std::vector<std::int64_t>& modules, std::int64_t chunk);
// The size of first, first + step, ..., first + range with the least padding, the smallest of several.
std::int64_t least_padding(const std::vector<std::int64_t>& modules, std::int64_t first, std::int64_t range, std::int64_t step);

}  // namespace foreshard
