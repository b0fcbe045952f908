// Operands of computes: as many elements as the shapes and settings of the operator say, and as many samples as the plan says. A block may
// be larger than a value that an operand takes all of it for, because values of several sizes use it one after the other. Then what is read
// has to have as many elements as what was written.
#include <algorithm>
#include <utility>

#include "core/base/count_text.h"
#include "core/check/check_plan_rules.h"
#include "core/check/operand_sizes.h"

namespace foreshard {
namespace {

class OperandCheck {
 public:
  OperandCheck(const Plan& plan, RoleId id, const RoleUses& uses, Defects& defects)
      : plan_(plan),
        role_(plan.roles[id.index()]),
        id_(id),
        uses_(uses),
        defects_(defects),
        expected_(plan.segments.size()),
        shared_(role_.buffers.size(), 0) {}

  void run() {
    if (!find_samples()) return;
    std::vector<char> seen(plan_.segments.size(), 0);
    for (std::size_t a = 0; a < role_.actions.size() && !defects_.full(); ++a) {
      const std::size_t segment = role_.actions[a].segment.index();
      action_ = static_cast<std::int32_t>(a);
      check_microbatches(role_.actions[a]);
      if (std::exchange(seen[segment], 1)) continue;
      const std::vector<Instruction>& instructions = plan_.segments[segment].instructions;
      expected_[segment].resize(instructions.size());
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        instruction_ = static_cast<std::int32_t>(i);
        check_borders(instructions[i]);
        check(instructions[i], expected_[segment][i]);
      }
    }
    if (std::ranges::find(shared_, 1) != shared_.end()) follow_contents();
  }

 private:
  // Of a micro-batch of one replica.
  bool find_samples() {
    std::int64_t replicas = 1;
    for (const AxisId axis : role_.axes)
      if (plan_.axes[axis.index()].dense == DenseKind::Data || plan_.axes[axis.index()].dense == DenseKind::OuterData)
        replicas *= plan_.axes[axis.index()].size;
    const std::int64_t parts = replicas * plan_.microbatches;  // at most kMostRanks times 2^24
    samples_ = plan_.samples / parts;
    if (plan_.samples % parts == 0 && samples_ > 0) return true;
    defects_.add("samples-differ", "samples",
                 "found " + std::to_string(plan_.samples) + ", expected a multiple of " + counted(replicas, "replica") + " x " +
                     counted(plan_.microbatches, "micro-batch", "micro-batches"));
    return false;
  }

  // The segment gets the micro-batch that the action says it works on.
  void check_microbatches(const Action& action) {
    const std::vector<Param>& params = plan_.segments[action.segment.index()].params;
    for (std::size_t p = 0; p < params.size(); ++p) {
      if (params[p].kind != ParamKind::Microbatch || action.does.empty()) continue;
      const bool said = std::ranges::any_of(
          action.does, [&](const Does& does) { return does.microbatch < 0 || does.microbatch == action.args[p]; });
      if (!said)
        defects_.add("samples-differ", "role " + std::to_string(id_.value) + ", action " + std::to_string(action_),
                     "passes micro-batch " + std::to_string(action.args[p]) + ", and says that it works on micro-batch " +
                         std::to_string(action.does.front().microbatch));
    }
  }

  std::vector<std::int64_t> elements_of(const std::vector<Use>& uses) const {
    std::vector<std::int64_t> all;
    for (const Use& use : uses) {
      const Buffer& buffer = role_.buffers[use.buffer.index()];
      const Bytes length = use.length ? *use.length : buffer.bytes - use.from;
      all.push_back(length.value / size_of(buffer.dtype).value);
    }
    return all;
  }

  // Ranges of bytes are of whole numbers.
  void check_borders(const Instruction& instruction) {
    for (const std::vector<Use>* uses : {&instruction.reads, &instruction.writes})
      for (const Use& use : *uses) {
        const Buffer& buffer = role_.buffers[use.buffer.index()];
        const std::int64_t each = size_of(buffer.dtype).value;
        if (each > 1 && (use.from.value % each != 0 || (use.length && use.length->value % each != 0)))
          return tell("operand-size", "begins or ends inside a number of \"" + buffer.name + "\"");
      }
  }

  std::int64_t slices_of(const Compute& compute) const {
    std::int64_t ranks = 1;
    if (!compute.slice.valid()) return ranks;
    for (const AxisId axis : plan_.groups[compute.slice.index()].over)
      if (std::ranges::find(role_.axes, axis) != role_.axes.end()) ranks *= plan_.axes[axis.index()].size;
    return ranks;
  }
  void check(const Instruction& instruction, OperandSizes& expected) {
    if (const auto* compute = std::get_if<Compute>(&instruction.what)) return check(instruction, *compute, expected);
    const auto* host = std::get_if<HostCompute>(&instruction.what);
    if (host) check(instruction, {.op = host->op, .phase = Phase::Update, .shapes = host->shapes}, expected);
  }
  void check(const Instruction& instruction, const Compute& compute, OperandSizes& expected) {
    std::vector<std::int64_t> reads = elements_of(instruction.reads), writes = elements_of(instruction.writes);
    if (compute.dynamic_scale && !reads.empty()) reads.pop_back();
    const bool factors = is<ops::MatMul>(compute.op) && !compute.shapes.empty() && is_code(compute.shapes[0].dtype);
    if (factors && writes.size() > 1 && role_.buffers[instruction.writes.back().buffer.index()].dtype == DType::U8)
      writes.pop_back();
    std::optional<OperandSizes> sizes = operand_sizes(compute, reads, writes, slices_of(compute));
    if (!sizes) return;
    if (!sizes->wrong.empty()) return tell("operand-size", word(compute.op) + " has " + sizes->wrong);
    const bool agree = compare(compute, reads, sizes->reads, instruction.reads, "read") &&
                       compare(compute, writes, sizes->writes, instruction.writes, "write");
    if (!agree) return;
    check_samples(instruction, compute);
    expected = std::move(*sizes);
  }
  bool compare(const Compute& compute, const std::vector<std::int64_t>& found, const std::vector<std::int64_t>& expected,
               const std::vector<Use>& uses, const std::string& side) {
    if (found.size() != expected.size()) {
      tell("operand-size", word(compute.op) + " " + side + "s " + std::to_string(found.size()) + " operands, expected " +
                               std::to_string(expected.size()));
      return false;
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (expected[i] == kAnySize || found[i] == expected[i]) continue;
      const bool whole = !uses[i].length && uses[i].from == Bytes{};
      if (whole && expected[i] < found[i] && role_.buffers[uses[i].buffer.index()].holds.empty()) {
        shared_[uses[i].buffer.index()] = 1;
        continue;
      }
      tell("operand-size", word(compute.op) + ": its " + side + " " + std::to_string(i) + " has " + std::to_string(found[i]) +
                               " elements, expected " + std::to_string(expected[i]) + " from its shapes and settings");
      return false;
    }
    return true;
  }

  // Of the buffers that are larger than some of their values.
  void follow_contents() {
    contents_.assign(uses_.blocks(), kAnySize);
    for (std::size_t a = 0; a < role_.actions.size() && !defects_.full(); ++a) {
      const Action& action = role_.actions[a];
      const std::vector<Instruction>& instructions = plan_.segments[action.segment.index()].instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        action_ = static_cast<std::int32_t>(a), instruction_ = static_cast<std::int32_t>(i);
        follow(action, instructions[i], expected_[action.segment.index()][i]);
      }
    }
  }
  void follow(const Action& action, const Instruction& instruction, const OperandSizes& expected) {
    const auto content = [&](const Use& use) -> std::int64_t& {
      return contents_[uses_.block(use.buffer, value_of(use.slot, action))];
    };
    const auto shared = [&](const Use& use) { return shared_[use.buffer.index()] != 0; };
    const auto* compute = std::get_if<Compute>(&instruction.what);
    const auto size_of_operand = [](const std::vector<std::int64_t>& sizes, std::size_t at) {
      return at < sizes.size() ? sizes[at] : kAnySize;
    };
    const auto agree = [&](const Use& use, std::int64_t size, const char* does) {
      const std::int64_t there = content(use);
      if (size == kAnySize || there == kAnySize || size == there) return;
      tell("operand-size", std::string(does) + " " + std::to_string(size) + " elements of " +
                               block_name(role_, use.buffer, value_of(use.slot, action)) + ", which holds a value of " +
                               std::to_string(there));
    };
    for (std::size_t r = 0; r < instruction.reads.size(); ++r)
      if (shared(instruction.reads[r])) agree(instruction.reads[r], size_of_operand(expected.reads, r), "reads");
    for (std::size_t w = 0; w < instruction.writes.size(); ++w) {
      const Use& use = instruction.writes[w];
      if (!shared(use)) continue;
      std::int64_t size = size_of_operand(expected.writes, w);
      const auto* exchange = std::get_if<Exchange>(&instruction.what);
      if (exchange && !exchange->slice.valid())
        size = exchange->bytes.value / size_of(role_.buffers[use.buffer.index()].dtype).value;
      const auto* collective = std::get_if<Collective>(&instruction.what);
      const auto* copy = std::get_if<Copy>(&instruction.what);
      const bool keeps =
          (copy && !copy->slice.valid()) ||
          (collective && (collective->kind == CollectiveKind::AllReduce || collective->kind == CollectiveKind::AllToAll));
      if (keeps && !instruction.reads.empty() && shared(instruction.reads[0])) size = content(instruction.reads[0]);
      const bool adds = compute && compute->accumulate && w < static_cast<std::size_t>(gradients(compute->op));
      if (adds)
        agree(use, size, "adds");
      else
        content(use) = size;
    }
  }

  // An operator that is cut into parts along the samples uses a range of bytes of its values, which hold the parts one after the other.
  std::int64_t parts_of(const Instruction& instruction) const {
    for (const std::vector<Use>* uses : {&instruction.writes, &instruction.reads})
      for (const Use& use : *uses) {
        const Buffer& buffer = role_.buffers[use.buffer.index()];
        const bool of_samples = buffer.category == Category::Activations || buffer.category == Category::Transient ||
                                buffer.category == Category::Communication;
        if (!of_samples || !use.length || use.length->value == 0) continue;
        const std::int64_t parts = buffer.bytes.value / use.length->value;
        if (parts > 0 && samples_ % parts == 0) return parts;
      }
    return 1;
  }
  void check_samples(const Instruction& instruction, const Compute& compute) {
    const std::optional<std::int64_t> stated = samples_of(compute);
    if (!stated) return;
    const std::int64_t parts = parts_of(instruction);
    if (*stated == samples_ / parts) return;
    tell("samples-differ", word(compute.op) + " works on " + std::to_string(*stated) + " samples, a micro-batch has " +
                               std::to_string(samples_) + (parts > 1 ? " in " + std::to_string(parts) + " parts" : ""));
  }

  void tell(const char* rule, std::string what) { defects_.add(rule, id_, action_, instruction_, std::move(what)); }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  const RoleUses& uses_;
  Defects& defects_;
  std::vector<std::vector<OperandSizes>> expected_;  // [segment][instruction]
  std::vector<char> shared_;                         // [buffer]: larger than some value in it
  std::vector<std::int64_t> contents_;               // [block]: elements of the value in it
  std::int64_t samples_ = 1;
  std::int32_t action_ = 0, instruction_ = 0;
};

}  // namespace

void check_operands(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects) {
  OperandCheck(plan, role, uses, defects).run();
}

}  // namespace foreshard
