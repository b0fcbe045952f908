// Checks that all operators that depend on positions of a sequence (core/op/sequence_part.h) agree on how the ranks of a role share it:
// over all context axes of the role, in equal chunks. In plans of version 1 only attention states it.
#include <optional>
#include <set>
#include <string>

#include "core/check/check_plan_rules.h"

namespace foreshard {
namespace {

struct Said {
  SequenceSplit split = {};
  bool of_rows = false;  // stated only by plans of the current version
  int blocks = 1, block = 0;
};

std::optional<Said> said_by(const Instruction& instruction) {
  const auto* what = std::get_if<Compute>(&instruction.what);
  if (!what) return {};
  return std::visit(
      []<class Operator>(const Operator& op) -> std::optional<Said> {
        if constexpr (requires { op.blocks; })
          return Said{.split = op.split, .blocks = op.blocks, .block = op.block};
        else if constexpr (std::is_same_v<Operator, ops::Softmax>)
          return Said{.split = op.split};
        else if constexpr (requires { op.split; })
          return Said{.split = op.split, .of_rows = true};
        else
          return {};
      },
      what->op);
}

class ContextCheck {
 public:
  ContextCheck(const Plan& plan, RoleId id, Defects& defects)
      : plan_(plan), role_(plan.roles[id.index()]), id_(id), defects_(defects) {
    for (const AxisId axis : role_.axes)
      if (plan.axes[axis.index()].dense == DenseKind::Context) ranks_ *= plan.axes[axis.index()].size;
  }

  void run() {
    for_each([&](std::int32_t, std::int32_t, const Said& said) { rows_ = rows_ || (said.of_rows && said.split.ranks > 1); });
    for_each([&](std::int32_t action, std::int32_t instruction, const Said& said) { check(action, instruction, said); });
  }

 private:
  template <class F>
  void for_each(F body) const {
    std::set<std::int32_t> seen;
    for (std::size_t a = 0; a < role_.actions.size(); ++a) {
      const SegmentId segment = role_.actions[a].segment;
      if (!seen.insert(segment.value).second) continue;
      const auto& instructions = plan_.segments[segment.index()].instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i)
        if (const auto said = said_by(instructions[i])) body(static_cast<std::int32_t>(a), static_cast<std::int32_t>(i), *said);
    }
  }

  void check(std::int32_t action, std::int32_t instruction, const Said& said) {
    const SequenceSplit& split = said.split;
    const auto tell = [&](const std::string& what) { defects_.add("context-split", id_, action, instruction, what); };
    const std::string ranks = std::to_string(ranks_) + (ranks_ == 1 ? " rank" : " ranks") + " of a sequence";
    if (split.ranks != ranks_ && (split.ranks != 1 || rows_))
      return tell("is of " + std::to_string(split.ranks) + " context-parallel ranks, the role has " + ranks);
    if (split.chunks > 2) return tell("gives a rank " + std::to_string(split.chunks) + " chunks, at most 2 are known");
    if (split.ranks > 1 && split.chunks > 0 && rows_) {
      if (chunks_ > 0 && split.chunks != chunks_)
        return tell("gives a rank " + std::to_string(split.chunks) + " of its chunks, others " + std::to_string(chunks_));
      chunks_ = split.chunks;
    }
    if ((said.blocks != 1 && said.blocks != split.ranks) || said.block >= said.blocks)
      tell("reads block " + std::to_string(said.block) + " of " + std::to_string(said.blocks) + ", a ring has one of each of " +
           ranks);
  }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  Defects& defects_;
  int ranks_ = 1, chunks_ = 0;
  bool rows_ = false;  // the plan states the positions of rows
};

}  // namespace

void check_context(const Plan& plan, RoleId role, Defects& defects) { ContextCheck(plan, role, defects).run(); }

}  // namespace foreshard
