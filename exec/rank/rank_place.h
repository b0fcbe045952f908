// Where a rank stands in a plan: what its kernels have to know, and what it is called in messages.
#pragma once

#include <string>

#include "core/plan/ranks.h"
#include "exec/device/operand.h"

namespace foreshard {

struct RankPlace {
  RankId rank = {};
  int tp = 1, tp_rank = 0;        // tensor axes
  int cp = 1, cp_rank = 0;        // context axes
  int replicas = 1, replica = 0;  // data and outer data axes
  std::int64_t micro_batch = 1;   // samples
};

// Throws Error for a batch that does not divide.
RankPlace place_of(const Plan& plan, const Ranks& ranks, RankId rank);

int place_in_group(const Ranks& ranks, GroupId group, RankId rank);

// Arguments of run 0 of a compute instruction. Throws Error for an operator whose rows are of another number of context-parallel ranks.
OpArguments arguments_of(const Plan& plan, const Ranks& ranks, const RankPlace& place, const Action& action,
                         const Instruction& instruction);

// "rank 3, action 5 (forward.0, micro-batch 2), instruction 7 (attention)"
std::string name_of(const Plan& plan, const Ranks& ranks, RankId rank, std::int32_t action, std::int32_t instruction);

}  // namespace foreshard
