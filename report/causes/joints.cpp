#include "report/causes/joints.h"

namespace foreshard {

static SegmentJoints joints_of(const Segment& segment) {
  const std::vector<Instruction>& instructions = segment.instructions;
  std::vector<char> awaited(instructions.size(), 0);
  for (const Instruction& instruction : instructions)
    for (const std::int32_t earlier : instruction.after) awaited[static_cast<std::size_t>(earlier)] = 1;
  SegmentJoints out;
  out.ordinal.resize(instructions.size());
  out.joint_of.assign(instructions.size(), -1);
  std::vector<std::int32_t> on_stream;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& instruction = instructions[i];
    const std::size_t stream = instruction.stream.index();
    if (on_stream.size() <= stream) on_stream.resize(stream + 1, 0);
    out.ordinal[i] = on_stream[stream]++;
    const bool meets =
        std::holds_alternative<Exchange>(instruction.what) || std::holds_alternative<Collective>(instruction.what);
    if (!meets && !awaited[i] && instruction.after.empty() && instruction.waits.empty() && instruction.records.empty())
      continue;
    out.joint_of[i] = static_cast<std::int32_t>(out.joints.size());
    out.joints.push_back(static_cast<std::int32_t>(i));
  }
  return out;
}

std::vector<SegmentJoints> find_joints(const Plan& plan) {
  std::vector<SegmentJoints> all;
  all.reserve(plan.segments.size());
  for (const Segment& segment : plan.segments) all.push_back(joints_of(segment));
  return all;
}

}  // namespace foreshard
