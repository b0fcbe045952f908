// Joints: the instructions of a segment that have an edge off their stream, found once per segment and used for every
// action.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.h"

namespace foreshard {

struct Joint {
  std::int32_t instruction = 0;
  std::int32_t tag = -1;  // exchanges: the number of the tag in the plan
  const Instruction* source = nullptr;
};

struct SegmentJoints {
  std::vector<Joint> joints = {};          // in issue order
  std::vector<std::int32_t> ordinal = {};  // [instruction]: its place among the instructions of its stream
  int first_joint = 0;                     // number of joints in earlier segments
};

// [segment]. The plan must outlive it.
std::vector<SegmentJoints> find_joints(const Plan& plan);

}  // namespace foreshard
