// What one data-parallel rank holds of a chunk's optimizer state under Megatron's distributed optimizer. A chunk's parameters lie
// one after the other in a flat buffer, the last of the model first, each from a multiple of 64 elements on; the buffer is filled
// up to a multiple of lcm(ranks, 128). Every rank has an equal part of it, so it holds some parameters whole, two in part and the
// rest not at all: fewer and larger tensors than a share of each would be, which the allocator rounds otherwise.
//
//   buffer   | head          | norm | layer 11 ......... | ... | layer 9 |.|
//   rank        0                   | 1                                    |
//
// Megatron-LM megatron/core/distributed/param_and_grad_buffer.py, optimizer/distrib_optimizer.py.
#pragma once

#include <vector>

namespace foreshard {

// Elements of the state tensors of rank `rank` of `ranks`, `parameters`: elements; both in the model's order.
std::vector<double> optimizer_shard(const std::vector<double>& parameters, int ranks, int rank);

}  // namespace foreshard
