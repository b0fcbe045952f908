// One role of the plan: the program of one pipeline rank.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strategy/program/lowering.h"

namespace foreshard {

// What roles of equal signature share: segments by chunk and variant, and the scratch buffers that building them needed.
struct SharedProgram {
  std::vector<SegmentId> segments = {};
  std::vector<Buffer> scratch = {};
  std::vector<std::pair<BufferId, int>> deferred = {};  // of these, whose slots differ: and the chunk, -1 for all
};
using SharedPrograms = std::unordered_map<std::string, SharedProgram>;

// Appends role `index` (and the segments that are not built yet) to lowering.plan.
void add_role(Lowering& lowering, int index, SharedPrograms& known);

}  // namespace foreshard
