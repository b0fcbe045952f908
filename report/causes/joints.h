// Joints: the instructions of a segment whose dependencies are more than the order of their stream: exchanges, collectives,
// instructions with `after`, waits or records, and those that an `after` names. Found once per segment, used for every action.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

struct SegmentJoints {
  std::vector<std::int32_t> joints = {};    // instructions, in issue order
  std::vector<std::int32_t> joint_of = {};  // [instruction]: index in `joints`; -1: no joint
  std::vector<std::int32_t> ordinal = {};   // [instruction]: number of instructions before it on its stream
};

// [segment]
std::vector<SegmentJoints> find_joints(const Plan& plan);

}  // namespace foreshard
