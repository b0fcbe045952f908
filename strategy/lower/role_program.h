// Builds one role of the plan: the program of one pipeline rank.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strategy/program/lowering.h"

namespace foreshard {

// What roles of equal signature (the same buffers and events at the same indices) share.
struct SharedProgram {
  std::vector<SegmentId> segments = {};  // by chunk, then by variant (role_program.cpp); invalid: not needed
  std::vector<Buffer> scratch = {};      // buffers that were added while the segments were built
  std::vector<std::pair<BufferId, int>> deferred =
      {};  // those of `scratch` with slot counts that differ by role; chunk, -1: pool
};
using SharedPrograms = std::unordered_map<std::string, SharedProgram>;  // by signature

// Appends the role of pipeline rank `index` to lowering.plan, and its segments unless they are in `known`; adds them to `known`.
void add_role(Lowering& lowering, int index, SharedPrograms& known);

}  // namespace foreshard
