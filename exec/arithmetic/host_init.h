// Initial weights. Every element depends only on the seed, the name of the tensor and the element's index in the whole tensor, so a model
// begins with the same weights under every strategy.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "exec/device/operand.h"

namespace foreshard {

// Which part of a tensor a rank holds. Dimension `dim` consists of blocks (query, key, value; or gate, up), and each block is cut into
// `parts` equal parts. The rank holds part number `part` of every block, one after the other, as a row-major array.
struct ShardCut {
  int dim = 0;
  std::vector<std::int64_t> blocks = {};  // sizes along `dim`, they sum to its length; empty: one block
  std::int64_t parts = 1, part = 0;
};

// Number of elements of the part.
std::int64_t shard_elements(const std::vector<std::int64_t>& shape, const ShardCut& cut);
// Row-major index in the whole tensor of element `local` of the part.
std::int64_t global_element(const std::vector<std::int64_t>& shape, const ShardCut& cut, std::int64_t local);

// Writes elements [first, first + out.elements) of the part to `out`, as Tensor::init says: "normal(s)" (mean 0, standard deviation s),
// "zeros" or "ones". Elements beyond the part's end (padding) are 0. Normal numbers are s times standard_normal (exec/base/philox.h).
// Throws Error for any other init.
void fill_initial(const Tensor& tensor, const ShardCut& cut, std::int64_t first, std::uint64_t seed, const Operand& out);

}  // namespace foreshard
