// The position of a rank on the axes of a plan, from which the arguments of its kernels follow, and its name in messages.
#pragma once

#include <string>

#include "core/plan/ranks.h"
#include "exec/device/operand.h"

namespace foreshard {

struct RankPlace {
  RankId rank = {};
  int tp = 1, tp_rank = 0;        // degree and position: tensor axes of the dense grid
  int cp = 1, cp_rank = 0;        // context axes
  int expert_rank = 0;            // position in the expert group: axes over which experts differ
  int expert_part = 0;            // position among the ranks that share each expert
  int replicas = 1, replica = 0;  // data and outer data axes
  std::int64_t micro_batch = 1;   // samples of a micro-batch of one replica
};

// Throws Error for a plan whose samples do not divide by replicas times micro-batches.
RankPlace place_of(const Plan& plan, const Ranks& ranks, RankId rank);

int place_in_group(const Ranks& ranks, GroupId group, RankId rank);  // position of the rank in its group, from 0

// Arguments of a compute instruction in run 0. `action`: the one that contains the instruction. Throws Error if the operator assumes
// another number of context-parallel ranks than the plan has.
OpArguments arguments_of(const Plan& plan, const Ranks& ranks, const RankPlace& place, const Action& action,
                         const Instruction& instruction);

// "rank 3, action 5 (forward.0, micro-batch 2), instruction 7 (attention)"
std::string name_of(const Plan& plan, const Ranks& ranks, RankId rank, std::int32_t action, std::int32_t instruction);

}  // namespace foreshard
