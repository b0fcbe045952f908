// InstructionTimes: when each instruction of a class ran. A span of several instructions is divided among them: each compute
// gets its isolated time, and the communications share the remaining time in proportion to their bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/trace.h"

namespace foreshard {

struct InstructionTime {
  Nanoseconds begin = {}, end = {};
  bool operator==(const InstructionTime&) const = default;
};

class InstructionTimes {
 public:
  // Throws Error when the trace does not belong to the plan.
  InstructionTimes(const Plan& plan, const Trace& trace, ClassId who);
  std::optional<InstructionTime> at(std::int32_t action,
                                    std::int32_t instruction) const;  // none: no span covers the instruction

 private:
  void cut(const Plan& plan, const Role& role, const Span& span);

  std::vector<std::size_t> first_;  // [action]: index in times_ of its first instruction
  std::vector<InstructionTime> times_;
};

// The kind of an instruction, as far as a cost model distinguishes kinds: "matmul forward", "all_reduce", "exchange", "copy".
std::string op_kind(const Instruction& instruction);

}  // namespace foreshard
