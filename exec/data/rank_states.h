// States of a training that belong to a rank and to no tensor: what the codes of its gradients have left out, and the velocity in which
// they accumulate (core/op/codec.h). A checkpoint keeps them under the number of the rank, and a plan that lays out its gradients in the
// same way goes on with them.
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

// Resident buffers that an encode writes, rank by rank.
std::vector<RankState> rank_states(const Plan& plan, const Ranks& ranks);
bool names_rank_state(const std::string& name);
// Equal for plans whose rank states mean the same: axes, placement, gradients and states lie alike. Empty: the plan has no such states.
std::string layout_of_rank_states(const Plan& plan);

// Of a rank that is elsewhere: nothing held.
WholeTensor read_state(const std::vector<const RankMemory*>& memories, const RankState& state);
void write_state(const std::vector<const RankMemory*>& memories, const RankState& state, const std::vector<double>& elements);

}  // namespace foreshard
