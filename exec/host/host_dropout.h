// Dropout masks from the counter-based generator (exec/base/philox.h). Used by exec/host and exec/cuda_ops.
#pragma once

#include <cstdint>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

// How an operator with dropout rate p drops: an element is dropped if its 32-bit random word is below `threshold`, and the others are
// multiplied by `scale`.
struct DropRule {
  std::uint32_t threshold = 0;  // p 2^32
  double scale = 1;             // 1 / (1 - p)
  std::uint64_t site = 0;       // number of the dropout within its layer
};
DropRule drop_rule(const Form& form);  // throws Error for an operator without dropout, or p outside [0, 1)

// Which operands there are. Forward: x [, skip [, bias]] -> y, mask; backward: dy, mask [, bias] -> [dx] [, gradient of the bias].
struct DropOperands {
  bool skip = false, bias = false, input = false;  // input: dx is wanted
};
// Throws Error unless operands have the sizes of `runs` rows of `length` elements.
DropOperands drop_operands(const Form& form, std::int64_t runs, std::int64_t length);

// The random stream of a mask: a key made from the layer, the site within it and the global number of the sample.
std::uint64_t drop_stream(const OpArguments& arguments, const DropRule& rule, std::int64_t sample);

// keep[i] = 1 if element `first` + i of the sample is kept, else 0, for i < count. The elements of a sample are numbered over all ranks:
// position * columns + column, or in an attention map (head * queries + query) * keys + key.
void fill_mask(std::uint64_t seed, std::uint64_t stream, std::int64_t first, std::int64_t count, std::uint32_t threshold,
               std::uint8_t* keep);

}  // namespace foreshard::host
