// Which layers of the op graph each pipeline stage holds.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/graph/op_graph.h"

namespace foreshard {

struct StageLayout {
  std::vector<int> first = {};  // stage s holds layers first[s] .. first[s+1]-1 of the op graph; stages + 1 entries
  int stages() const { return static_cast<int>(first.size()) - 1; }
  bool operator==(const StageLayout&) const = default;
};

// `split`: numbers of counted layers per stage ("2,3x14,2": 2, then 14 times 3, then 2; core/strategy/strategy.h); empty: the same number
// in every stage. Layers that are not counted (embedding, head) are added to the stage of their neighbour. Infeasible: the numbers are not
// `stages` many, or do not add up to the counted layers of the model.
std::variant<StageLayout, Infeasible> stage_layout(const OpGraph& graph, int stages, const std::string& split);

}  // namespace foreshard
