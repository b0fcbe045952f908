// What plan files of version 1 said by names and words: read once here, kinds, indices and settings afterwards. Throw Error.
#pragma once

#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/plan/plan.h"

namespace foreshard::version1 {

// An axis was what its name begins with: tp, cp, dp_outer, dp. There were no experts.
Axis read_axis(const JsonReader& json);

// The names of all axes and "role", once each.
std::vector<AxisId> read_order(const JsonReader& json, const std::vector<Axis>& axes);

// "attributes": settings of operators, and what else an instruction does, as words.
struct Attributes {
  std::vector<std::string> groups = {};  // names: "slice=NAME"

  explicit Attributes(const JsonReader& plan);
  // `json` is the object of the instruction. Sets `op` and what the attributes say.
  void read(const JsonReader& json, Compute& what) const;
  void read(const JsonReader& json, HostCompute& what) const;
  void read(const JsonReader& json, Collective& what) const;
};

}  // namespace foreshard::version1
