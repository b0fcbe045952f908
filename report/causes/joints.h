// Joints: the instructions of a segment that have an edge off their stream, found once per segment and used for every
// action.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

struct SegmentJoints {
  std::vector<std::int32_t> joints = {};    // instructions, in issue order
  std::vector<std::int32_t> joint_of = {};  // [instruction]: its place in `joints`, -1: none
  std::vector<std::int32_t> ordinal = {};   // [instruction]: its place among the instructions of its stream
};

// [segment]
std::vector<SegmentJoints> find_joints(const Plan& plan);

}  // namespace foreshard
