#include "report/joints.h"

#include <map>
#include <string>

namespace foreshard {

std::vector<SegmentJoints> find_joints(const Plan& plan) {
  std::vector<SegmentJoints> all(plan.segments.size());
  std::map<std::string, std::int32_t> tags;
  std::vector<std::int32_t> on_stream;
  std::vector<bool> awaited;
  int joints = 0;
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    const std::vector<Instruction>& instructions = plan.segments[s].instructions;
    awaited.assign(instructions.size(), false);
    on_stream.clear();
    for (const Instruction& instruction : instructions)
      for (const std::int32_t earlier : instruction.after) awaited[static_cast<std::size_t>(earlier)] = true;
    SegmentJoints& out = all[s];
    out.first_joint = joints;
    out.ordinal.resize(instructions.size());
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& instruction = instructions[i];
      const std::size_t stream = instruction.stream.index();
      if (on_stream.size() <= stream) on_stream.resize(stream + 1, 0);
      out.ordinal[i] = on_stream[stream]++;
      const auto* exchange = std::get_if<Exchange>(&instruction.what);
      if (!awaited[i] && instruction.after.empty() && instruction.waits.empty() && instruction.records.empty() &&
          exchange == nullptr && !std::holds_alternative<Collective>(instruction.what))
        continue;
      Joint joint{static_cast<std::int32_t>(i), -1, &instruction};
      if (exchange != nullptr) joint.tag = tags.emplace(exchange->tag, static_cast<std::int32_t>(tags.size())).first->second;
      out.joints.push_back(joint);
    }
    joints += static_cast<int>(out.joints.size());
  }
  return all;
}

}  // namespace foreshard
