// The shard of a chunk's optimizer state that one data-parallel rank has under Megatron's distributed optimizer. The parameters of a chunk
// lie one after the other in a flat buffer, the last of the model first, each aligned to 64 elements; the buffer is padded to a multiple of
// lcm(ranks, 128). Every rank has an equal part of the buffer, so it holds some parameters whole, up to two in part and the others not at
// all. These are fewer and larger tensors than an equal share of each parameter would be, so the allocator rounds them differently.
//
//   buffer   | head          | norm | layer 11 ......... | ... | layer 9 |.|
//   rank        0                   | 1                                    |
//
// Megatron-LM megatron/core/distributed/param_and_grad_buffer.py, optimizer/distrib_optimizer.py.
#pragma once

#include <vector>

namespace foreshard {

// Elements of each state tensor that rank `rank` of `ranks` holds, in the order of the model. `parameters`: elements of each parameter, in
// the same order.
std::vector<double> optimizer_shard(const std::vector<double>& parameters, int ranks, int rank);

}  // namespace foreshard
