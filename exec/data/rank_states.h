// Rank states: the states of gradient compression, which belong to a rank and not to a tensor of the model. They are the residual (error
// feedback) and the velocity (momentum correction) of an Encode (core/op/codec.h). A checkpoint stores them under the number of the rank.
// Only a plan that lays out its gradients in the same way can continue with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/ranks.h"
#include "exec/data/tensors.h"

namespace foreshard {

struct RankState {
  RankId rank = {};
  BufferId buffer = {};
  DType dtype = {};
  std::int64_t elements = 0;
  std::string name = {};  // in a checkpoint: "rank 3: left out.0.1"
};

// All rank states of a plan, rank by rank: the resident buffers that an Encode writes.
std::vector<RankState> rank_states(const Plan& plan, const Ranks& ranks);
bool names_rank_state(const std::string& name);  // whether a tensor of a checkpoint with this name is a rank state
// A hash that is equal for two plans if one can continue with the rank states of the other: axes, placement, and the layout of gradients
// and states are equal. Empty: the plan has no rank states.
std::string layout_of_rank_states(const Plan& plan);

// Read and write one state; `memories`: [rank], null for a rank of another process. For such a rank, read_state returns elements that are
// not held, and write_state does nothing.
WholeTensor read_state(const std::vector<const RankMemory*>& memories, const RankState& state);
void write_state(const std::vector<const RankMemory*>& memories, const RankState& state, const std::vector<double>& elements);

}  // namespace foreshard
