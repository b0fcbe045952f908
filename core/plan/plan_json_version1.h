// Reads the parts of plan files of version 1 that use names and words, and turns them into kinds, indices and settings. All functions
// throw Error.
#pragma once

#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/plan/plan.h"

namespace foreshard::version1 {

// The kind of an axis is what its name begins with: tp, cp, dp_outer, dp. There are no expert axes.
Axis read_axis(const JsonReader& json);

// Placement::order from a list with the name of every axis and "role", once each.
std::vector<AxisId> read_order(const JsonReader& json, const std::vector<Axis>& axes);

// The member "attributes": settings of the operator and members of the instruction, as words.
struct Attributes {
  std::vector<std::string> groups = {};  // names of the plan's groups, which "slice=NAME" refers to

  explicit Attributes(const JsonReader& plan);
  // `json` is the object of the instruction. Sets `op` and what the attributes say.
  void read(const JsonReader& json, Compute& what) const;
  void read(const JsonReader& json, HostCompute& what) const;
  void read(const JsonReader& json, Collective& what) const;
};

}  // namespace foreshard::version1
