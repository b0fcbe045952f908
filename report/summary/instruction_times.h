// When every single instruction of a class ran. A span of several instructions is cut: its computes take their isolated times,
// its communications what is left, by their bytes.
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
  std::optional<InstructionTime> at(std::int32_t action, std::int32_t instruction) const;  // none: no span covers it

 private:
  void cut(const Plan& plan, const Role& role, const Span& span);

  std::vector<std::size_t> first_;  // [action]
  std::vector<InstructionTime> times_;
};

// "matmul forward", "all_reduce", "exchange", "copy"; the kinds that a cost model knows apart.
std::string op_kind(const Instruction& instruction);

}  // namespace foreshard
