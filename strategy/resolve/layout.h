// Layout: which axes the ranks of a strategy have, and in which order they take devices. The first of the tables between a strategy
// and its plan.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/plan/axis.h"
#include "core/strategy/strategy.h"
#include "strategy/schedule/stage_layout.h"

namespace foreshard {

struct DenseDegree {
  DenseKind kind = DenseKind::Data;
  int size = 1;
};
struct ExpertDegrees {  // expert-data is the rest
  int tensor = 1, experts = 1;
};

// The common refinement of both grids: the fewest axes, fastest first, such that each degree of either grid is the product of those
// of its kind. `dense` is fastest first; sizes of 1 are left out. A product of degrees of one grid that lies across those of the other
// has no refinement: refused, with the degrees that would do.
std::variant<std::vector<Axis>, Infeasible> refined_axes(const std::vector<DenseDegree>& dense, const ExpertDegrees& expert);

// Ranks that meet: a communicator.
struct LayoutGroup {
  enum class Roles : std::uint8_t {
    Own,   // those of one role, and its replicas where a stage has several roles
    Tied,  // those that hold the first and the last stage
    All
  };
  std::string name = {};
  Kinds over = {};
  StreamId stream = {};  // what is said on a communicator is said in turn, so each stream has its own
  Roles roles = Roles::Own;
};

struct Layout {
  std::vector<Axis> axes = {};             // outer data, data, context, tensor; of one kind slowest first
  std::vector<AxisId> fastest_first = {};  // Placement::order
  StageLayout layers = {};                 // of each stage
  std::vector<LayoutGroup> groups = {};    // in the order of the plan; those over axes that there are none of are left out
};
// The axes of a resolved strategy. Stages with degrees of their own have none in common; lower_stages makes theirs.
std::variant<Layout, Infeasible> rank_layout(const Strategy& strategy);

}  // namespace foreshard
