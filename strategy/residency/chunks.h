// Packs parameters, in their order, into chunks of equal size: the units of Gemini (hpcaitech/ColossalAI, colossalai/zero/gemini/chunk) and
// PatrickStar (Fang et al. 2021, arXiv 2108.05818). (Not the model chunks of a pipeline rank.) All sizes are numbers of elements.
#pragma once

#include "strategy/residency/residency.h"

namespace foreshard {

inline constexpr std::int64_t kPatrickStarChunk = std::int64_t{64} << 20;  // 128 MiB of 16-bit numbers

struct ChunkLayout {
  std::vector<ParameterUnit> chunks = {};
  std::vector<int> chunk_of = {};  // [module]: its chunk
  std::int64_t padding = 0;        // elements of chunks that no module occupies
};
// Chunks of `chunk` elements. A module that does not fit into the rest of the current chunk begins a new one. A module larger than `chunk`
// gets a chunk of its own, of its size; the module after it begins a new chunk.
ChunkLayout lay_chunks(const std::vector<ParameterUnit>& modules, std::int64_t chunk);

// The uses of chunks that follow from the uses of their modules. Consecutive uses of a chunk in the same phase become one.
std::vector<UnitUse> chunk_uses(const ChunkLayout& layout, const std::vector<UnitUse>& module_uses);

struct ChunkSearch {
  std::int64_t least = std::int64_t{32} << 20;  // smallest chunk size; the defaults are Gemini's
  std::int64_t range = std::int64_t{32} << 20;  // how far above the smallest size to search
  std::int64_t step = 1024;                     // between the sizes that are tried; Gemini recommends the model's hidden size
};
// The chunk size with the least padding (the smallest of several) among s, s + step, ..., s + range, where s is the larger of `least` and
// the largest module, rounded up to `step`. Modules larger than the mean plus three standard deviations are ignored. If all modules
// together are smaller than `least`: their sum, since Gemini keeps them gathered in one chunk. Gemini's rule,
// colossalai/zero/gemini/chunk/search_utils.py.
std::int64_t least_padding_chunk(const std::vector<ParameterUnit>& modules, const ChunkSearch& search = {});

// Padding of modules of these sizes in chunks of `chunk` elements, that of the last chunk included. Asserts that no module is larger.
std::int64_t padding_of(const std::vector<std::int64_t>& modules, std::int64_t chunk);
// The chunk size with the least padding (the smallest of several) among first, first + step, ..., first + range.
std::int64_t least_padding(const std::vector<std::int64_t>& modules, std::int64_t first, std::int64_t range, std::int64_t step);

}  // namespace foreshard
