// In which messages a framework sends the parameters, gradients and states that data parallelism shares out, and what it copies for them.
#pragma once

#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

struct ShardMessages {
  double count = 1;   // collectives in place of one, each with its part of the bytes; below 1: it is that share of one
  Seconds host = {};  // of the host in each of them
  double volume = 1;  // time and bytes, over those of the collective: 2 where an all-reduce takes the place of a reduce-scatter
  Bytes copies = {};  // read and written by copies before and behind all of them, while the link waits
};

// How ShardRules::communication says that this collective of a role among `members` ranks travels. 1 for those of activations.
ShardMessages shard_messages(const Plan& plan, const Role& role, const FrameworkPreset& preset, const Collective& what,
                             const Instruction& run, int members);

// Bytes of the copies at a collective of parameters or gradients: gathered parameters are copied out of its result, one tensor each;
// gradients are copied into its input, in the format of the sum (ShardRules::copies).
Bytes shard_copy_bytes(const FrameworkPreset& preset, const Collective& what);

// Number of slices of the gradients that a rank measures or scales, where its own is one of them (ShardRules::clips_whole). 1 for others.
std::int64_t clipped_slices(const Plan& plan, const FrameworkPreset& preset, const Compute& what);

}  // namespace foreshard
