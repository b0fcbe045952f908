// Initial weights: every element is a function of (seed, tensor name, global element), so all shards of all strategies agree.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "exec/device/operand.h"

namespace foreshard {

// Which part of a tensor a rank holds. The cut dimension is a row of blocks (query, key, value; gate, up), each of which is cut
// into `parts` equal parts; the rank holds part `part` of every block, one after the other, row-major.
struct ShardCut {
  int dim = 0;
  std::vector<std::int64_t> blocks = {};  // sizes along `dim`, they sum to its length; empty: one block
  std::int64_t parts = 1, part = 0;
};

// Elements of the part.
std::int64_t shard_elements(const std::vector<std::int64_t>& shape, const ShardCut& cut);
// Global row-major index of element `local` of the part.
std::int64_t global_element(const std::vector<std::int64_t>& shape, const ShardCut& cut, std::int64_t local);

// Elements [first, first + out.elements) of the part, by Tensor::init: "normal(s)" (mean 0, standard deviation s), "zeros" or
// "ones". Elements past the part's end (padding) are 0. Normal numbers are s times standard_normal (exec/base/philox.h).
// Throws Error for another init.
void fill_initial(const Tensor& tensor, const ShardCut& cut, std::int64_t first, std::uint64_t seed, const Operand& out);

}  // namespace foreshard
