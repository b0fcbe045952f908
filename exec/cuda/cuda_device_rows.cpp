// Instructions that one product does, and algorithms of products: before the first step.
//
//   a row       d y = d z w2    d w2 = d z^T y    d fc1 = d y gelu'(fc1)    d x = d fc1 w1    d w1 = d fc1^T x, d b1
//   is run as   nothing         d w2              d fc1, d b1               d x               d w1
//               |------------- one span ---------------------|
//
// The product goes to the place of the activation, where all that it reads is still there if nobody in between wrote there, and what it writes
// may be written. Nobody else sees that: but for the last no member of a row is waited for.
#include <algorithm>

#include "exec/cuda/compute_task.h"

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

constexpr Bytes kScratch{std::int64_t{16} << 20U};  // of products that are asked for beforehand

}  // namespace

void CudaDevice::use(Channel& on, const Kernel& kernel) {
  on.scratch_bytes = std::max(on.scratch_bytes, kernel.scratch);
  if (kernel.multiplies) on.workspace_bytes = kMultiplyWorkspace;
}

std::vector<JoinedTasks> CudaDevice::prepare(std::span<const TaskRow> rows) {
  enter();
  std::vector<JoinedTasks> all;
  for (std::size_t r = 0; fuses_ && r < rows.size(); ++r)
    for (std::size_t at = 0; at + 1 < rows[r].members.size();) {
      std::optional<JoinedTasks> joined = join(rows[r], at, channel(rows[r].stream));
      at += joined ? joined->count : 1;
      if (joined) joined->row = r, all.push_back(*joined);
    }
  choose_algorithms();
  return all;
}

std::optional<JoinedTasks> CudaDevice::join(const TaskRow& row, std::size_t at, Channel& on) {
  if (std::optional<JoinedTasks> forward = join_forward(row, at, on)) return forward;
  return join_backward(row, at, on);
}

std::optional<JoinedTasks> CudaDevice::join_forward(const TaskRow& row, std::size_t at, Channel& on) {
  auto& product = static_cast<ComputeTask&>(*row.members[at].task);
  auto& activation = static_cast<ComputeTask&>(*row.members[at + 1].task);
  if (!is<ops::MatMul>(product.part().what.op) || !is<ops::Activation>(activation.part().what.op)) return {};
  const FusedPart first = product.part(), second = activation.part();
  const Area made = range_of(second.writes[0]);  // y may take the place of x, which is still read then
  if (touches(first.reads, made) || touches(first.writes, made)) return {};
  std::optional<Kernel> kernel = fuse_forward(first, second, runtime_);
  if (!kernel) return {};
  use(on, *kernel);
  activation.become(std::move(*kernel), together(first.reads, second.reads), together(first.writes, second.writes));
  product.becomes_nothing();
  return JoinedTasks{.first = at, .count = 2};
}

// The member that makes the gradient of the bias in front of the activation, if that may be made with the activation's: nobody touches its place until
// then. None: the number of members.
std::size_t CudaDevice::bias_behind(const TaskRow& row, std::size_t first, std::size_t activation) {
  const auto part = [&](std::size_t i) { return static_cast<const ComputeTask*>(row.members[i].task)->part(); };
  const std::size_t none = row.members.size();
  std::size_t behind = activation + 1;  // the gradient of the input may stand between
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

std::optional<JoinedTasks> CudaDevice::join_backward(const TaskRow& row, std::size_t at, Channel& on) {
  const auto task = [&](std::size_t i) -> ComputeTask& { return static_cast<ComputeTask&>(*row.members[i].task); };
  const auto part = [&](std::size_t i) { return task(i).part(); };
  const std::size_t size = row.members.size();
  if (!is<ops::MatMul>(part(at).what.op) || part(at).what.phase != Phase::InputGrad) return {};
  const bool between = is_weight_grad(part(at + 1).what);
  const std::size_t last = at + (between ? 2 : 1);
  if (last >= size || !is<ops::Activation>(part(last).what.op)) return {};
  const FusedPart product = part(at), activation = part(last);
  const Area unwritten = range_of(product.writes[0]), made = range_of(activation.writes[0]);
  // What the product reads: its input, second where there are three operands or more, is none of it.
  const std::vector<Operand> needed = {product.reads.front(), product.reads[product.reads.size() == 2 ? 1 : 2]};
  if (!within(row.members[last].ends, unwritten) || touches(needed, made) || touches(activation.reads, made)) return {};
  if (between && touches(part(at + 1).reads, unwritten)) return {};
  for (const Operand& read : needed)
    if (between && touches(part(at + 1).writes, range_of(read))) return {};
  const std::size_t behind = bias_behind(row, at, last);
  bool sums = behind < size;
  std::optional<FusedPart> bias;
  if (sums) bias.emplace(part(behind));
  std::optional<Kernel> kernel = fuse_backward(product, activation, bias ? &*bias : nullptr, runtime_);
  if (!kernel && sums) sums = false, kernel = fuse_backward(product, activation, nullptr, runtime_);
  if (!kernel) return {};
  use(on, *kernel);
  std::vector<Operand> writes = together(product.writes, activation.writes);
  if (sums) {
    writes.push_back(bias->writes[1]);
    Kernel rest = make_kernel(bias->what, bias->reads, bias->writes.first(1), &runtime_);
    use(on, rest);
    task(behind).become(std::move(rest), together(bias->reads, std::span<const Operand>{}),
                        {bias->writes.begin(), bias->writes.begin() + 1});
  }
  task(last).become(std::move(*kernel), together(product.reads, activation.reads), std::move(writes));
  task(at).becomes_nothing();
  return JoinedTasks{.first = at, .count = last - at + 1};
}

// Products of operands in the arenas; those of windows lie elsewhere.
void CudaDevice::choose_algorithms() {
  if (!choice_.asks()) return;
  GpuMemory memory(runtime_);
  std::byte* scratch = memory.allocate(Space::Device, kScratch);
  std::vector<Multiply> products;
  for (const ComputeTask* task : tasks_) task->products(products, scratch, kScratch);
  const auto here = [&](const ProductRange& range) {
    const auto in = [&](const std::byte* begin, Bytes bytes) {
      return range.begin >= begin && range.end <= begin + bytes.value;
    };
    return in(scratch, kScratch) ||
           std::any_of(arenas_.begin(), arenas_.end(), [&](const auto& arena) { return in(arena.first, arena.second); });
  };
  std::erase_if(products, [&](const Multiply& product) {
    const std::vector<ProductRange> ranges = ranges_of(product);
    return !std::all_of(ranges.begin(), ranges.end(), here);
  });
  choice_.decide(gpu_, products);
}

}  // namespace foreshard::gpu
