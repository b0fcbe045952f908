// Layout: the axes along which the ranks of a pipeline stage are arranged, the order in which ranks are assigned to devices, the layers of
// each stage, and the communicators. The first of the five tables between a strategy and its plan.
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
  int size = 1;  // ranks
};
struct ExpertDegrees {  // the expert-data degree is all ranks of the stage / (tensor * experts)
  int tensor = 1, experts = 1;
  int nodes = 1;  // parts of an expert group between which the axes are of kind OuterExpert
};

// The axes that serve both grids (core/plan/axis.h): the fewest axes, fastest first, such that each degree of the dense grid and each
// degree of the expert grid is a product of consecutive axes. `dense` is given fastest first; axes of size 1 are left out.
//
//   dense grid     | tensor 4      | data 4        |       expert tensor 2, experts 4, expert data 2
//   axes           | 2     | 2     | 2     | 2     |
//   expert grid    | etp 2 | experts 4     | edp 2 |
//
// Infeasible, with degrees that would be possible: a boundary of one grid (product of its fastest degrees) neither divides nor is divided
// by one of the other.
std::variant<std::vector<Axis>, Infeasible> refined_axes(const std::vector<DenseDegree>& dense, const ExpertDegrees& expert);

// The ranks of one communicator.
struct LayoutGroup {
  enum class Roles : std::uint8_t {
    Own,   // ranks of one role, and of other roles that hold replicas of its stage
    Tied,  // ranks of the roles that hold the first and the last stage
    All    // ranks of all roles
  };
  std::string name = {};
  Kinds over = {};       // ranks that differ only in their positions along axes of these kinds
  StreamId stream = {};  // collectives of a communicator run one after the other, so each stream has its own
  Roles roles = Roles::Own;
};

struct Layout {
  std::vector<Axis> axes = {};             // ordered by kind: outer data, data, context, tensor; within a kind slowest first
  std::vector<AxisId> fastest_first = {};  // order in which ranks take devices: Placement::order
  StageLayout layers = {};                 // the layers of each stage
  std::vector<LayoutGroup> groups = {};    // in the order of the plan; lower leaves out those over kinds without an axis
};
// Axes and order of a resolved strategy; `layers` and `groups` stay empty (tables_of fills them). For strategies whose stages all have the
// same degrees; lower_stages (strategy/lower/begin_lowering.h) makes the axes of other ones. Infeasible as refined_axes.
std::variant<Layout, Infeasible> rank_layout(const Strategy& strategy);

}  // namespace foreshard
