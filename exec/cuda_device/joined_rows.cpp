#include "exec/cuda_device/joined_rows.h"

#include <algorithm>

namespace foreshard::gpu {

namespace {

using Area = std::span<const std::byte>;

Area range_of(const Operand& operand) {
  return {operand.data, static_cast<std::size_t>(operand.elements * size_of(operand.dtype).value)};
}
bool overlap(Area a, Area b) { return a.data() < b.data() + b.size() && b.data() < a.data() + a.size(); }
template <class Operands>
bool touches(const Operands& operands, Area range) {
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& one) { return overlap(range_of(one), range); });
}
bool within(const std::vector<Area>& blocks, Area range) {
  return std::any_of(blocks.begin(), blocks.end(), [&](Area block) {
    return block.data() <= range.data() && range.data() + range.size() <= block.data() + block.size();
  });
}
template <class A, class B>
std::vector<Operand> together(const A& a, const B& b) {
  std::vector<Operand> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}
bool is_weight_grad(const Compute& what) { return is<ops::MatMul>(what.op) && what.phase == Phase::WeightGrad; }

std::optional<JoinedTasks> join_forward(const TaskRow& row, std::size_t at, Runtime& runtime) {
  auto& product = static_cast<ComputeTask&>(*row.members[at].task);
  auto& activation = static_cast<ComputeTask&>(*row.members[at + 1].task);
  if (!is<ops::MatMul>(product.part().what.op) || !is<ops::Activation>(activation.part().what.op)) return {};
  const FusedPart first = product.part(), second = activation.part();
  // The plan may have given y the memory of x, which the fused kernel still reads
  const Area made = range_of(second.writes[0]);
  if (touches(first.reads, made) || touches(first.writes, made)) return {};
  std::optional<Kernel> kernel = fuse_forward(first, second, runtime);
  if (!kernel) return {};
  activation.become(std::move(*kernel), together(first.reads, second.reads), together(first.writes, second.writes));
  product.becomes_nothing();
  return JoinedTasks{.first = at, .count = 2};
}

// The member that computes the gradient of the bias before the activation, if the fused kernel may compute it: no member from `first` up to
// it uses the memory of that gradient. If there is none: the number of members.
std::size_t bias_behind(const TaskRow& row, std::size_t first, std::size_t activation) {
  const auto part = [&](std::size_t i) { return static_cast<const ComputeTask*>(row.members[i].task)->part(); };
  const std::size_t none = row.members.size();
  std::size_t behind = activation + 1;  // the gradient of the input may come before it
  if (behind < none && !is_weight_grad(part(behind).what)) ++behind;
  if (behind >= none || !is_weight_grad(part(behind).what)) return none;
  const FusedPart grad = part(behind);
  if (grad.writes.size() != 2 || grad.reads.size() != 2 || grad.reads[0].data != part(activation).writes[0].data) return none;
  const Area bias = range_of(grad.writes[1]);
  for (std::size_t i = first; i <= behind; ++i) {
    if (i < behind && (touches(part(i).reads, bias) || touches(part(i).writes, bias))) return none;
    for (const Area block : row.members[i].begins)
      if (overlap(block, bias)) return none;
  }
  return behind;
}

std::optional<JoinedTasks> join_backward(const TaskRow& row, std::size_t at, Runtime& runtime) {
  const auto task = [&](std::size_t i) -> ComputeTask& { return static_cast<ComputeTask&>(*row.members[i].task); };
  const auto part = [&](std::size_t i) { return task(i).part(); };
  const std::size_t size = row.members.size();
  if (!is<ops::MatMul>(part(at).what.op) || part(at).what.phase != Phase::InputGrad) return {};
  const bool between = is_weight_grad(part(at + 1).what);
  const std::size_t last = at + (between ? 2 : 1);
  if (last >= size || !is<ops::Activation>(part(last).what.op)) return {};
  const FusedPart product = part(at), activation = part(last);
  const Area unwritten = range_of(product.writes[0]), made = range_of(activation.writes[0]);
  // What the product reads: the gradient of its output and the weight. Its input, the second of three or more operands, is not read.
  const std::vector<Operand> needed = {product.reads.front(), product.reads[product.reads.size() == 2 ? 1 : 2]};
  if (!within(row.members[last].ends, unwritten) || touches(needed, made) || touches(activation.reads, made)) return {};
  if (between && touches(part(at + 1).reads, unwritten)) return {};
  for (const Operand& read : needed)
    if (between && touches(part(at + 1).writes, range_of(read))) return {};
  const std::size_t behind = bias_behind(row, at, last);
  bool sums = behind < size;
  std::optional<FusedPart> bias;
  if (sums) bias.emplace(part(behind));
  std::optional<Kernel> kernel = fuse_backward(product, activation, bias ? &*bias : nullptr, runtime);
  if (!kernel && sums) sums = false, kernel = fuse_backward(product, activation, nullptr, runtime);
  if (!kernel) return {};
  std::vector<Operand> writes = together(product.writes, activation.writes);
  if (sums) {
    writes.push_back(bias->writes[1]);
    Kernel rest = make_kernel(bias->what, bias->reads, bias->writes.first(1), {&runtime});
    task(behind).become(std::move(rest), together(bias->reads, std::span<const Operand>{}),
                        {bias->writes.begin(), bias->writes.begin() + 1});
  }
  task(last).become(std::move(*kernel), together(product.reads, activation.reads), std::move(writes));
  task(at).becomes_nothing();
  return JoinedTasks{.first = at, .count = last - at + 1};
}

}  // namespace

std::optional<JoinedTasks> join_tasks(const TaskRow& row, std::size_t at, Runtime& runtime) {
  if (std::optional<JoinedTasks> forward = join_forward(row, at, runtime)) return forward;
  return join_backward(row, at, runtime);
}

}  // namespace foreshard::gpu
