// Measures every compute of a plan by itself, and products with the GELU that a run fuses with them, on random numbers. The plan is not
// executed, so it may have more ranks than there are GPUs.
#include <map>
#include <set>
#include <tuple>

#include "core/base/count_text.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/plan/attention_memory.h"
#include "core/plan/joined_products.h"
#include "exec/cuda_checks/calibrate_bench.h"
#include "exec/cuda_checks/calibrate_cuda.h"
#include "exec/cuda_ops/gpu_kernel.h"
#include "exec/rank/rank_place.h"

namespace foreshard::gpu {

namespace {

constexpr std::int64_t kAlign = 512;

// Places the blocks of instructions one after the other; two uses of the same block remain uses of the same bytes.
class Blocks {
 public:
  Blocks(const Role& role, const Action& action) : role_(role), action_(action) {}

  void add(const Use& use) {
    const auto [at, fresh] = places_.try_emplace(key(use), size_);
    if (fresh) size_ += (role_.buffers[use.buffer.index()].bytes.value + kAlign - 1) / kAlign * kAlign;
  }
  Bytes size() const { return {size_}; }
  Operand operand(const Use& use, std::byte* memory) const {
    const Buffer& buffer = role_.buffers[use.buffer.index()];
    const Bytes length = use.length.value_or(buffer.bytes - use.from);
    return {memory + places_.at(key(use)) + use.from.value, length.value / size_of(buffer.dtype).value, buffer.dtype};
  }

 private:
  std::pair<std::int32_t, std::int32_t> key(const Use& use) const { return {use.buffer.value, value_of(use.slot, action_)}; }
  const Role& role_;
  const Action& action_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> places_ = {};
  std::int64_t size_ = 0;
};

struct Operands {
  std::vector<Operand> reads = {}, writes = {};
};

// A kernel that is ready to run, and the memory that it needs besides its operands.
class Alone {
 public:
  static Bytes memory_of(const Kernel& kernel) {  // of the GPU
    return kernel.scratch + Bytes{static_cast<std::int64_t>(kernel.table.size())} +
           (kernel.multiplies ? kMultiplyWorkspace : Bytes{});
  }
  Alone(Runtime& runtime, Bench& bench, ProductChoice& choice, Kernel kernel, Operands operands, const OpArguments& arguments)
      : operands_(std::move(operands)), arguments_(arguments), own_(runtime), kernel_(std::move(kernel)) {
    const Bytes table_bytes = {static_cast<std::int64_t>(kernel_.table.size())};
    scratch_ = own_.allocate(Space::Device, kernel_.scratch);
    staged_ = own_.allocate(Space::PinnedHost, kernel_.staged);
    table_ = own_.allocate(Space::Device, table_bytes);
    workspace_ = kernel_.multiplies ? own_.allocate(Space::Device, kMultiplyWorkspace) : nullptr;
    if (table_) runtime.copy(table_, kernel_.table.data(), table_bytes, bench.stream());
    if (kernel_.prepare) kernel_.prepare(staged_, arguments_);
    std::vector<Multiply> products;
    if (kernel_.multiplies) run(Launcher(products));
    choice.decide(0, products);  // sets all operands to 0
    for (const std::vector<Operand>* operands : {&operands_.writes, &operands_.reads})
      for (const Operand& operand : *operands) bench.fill_random(operand);
    launcher_.emplace(runtime, bench.stream(), workspace_, &choice, 0);
  }
  void operator()() const { run(*launcher_); }

 private:
  void run(const Launcher& on) const {
    kernel_.run(on, {.reads = operands_.reads,
                     .writes = operands_.writes,
                     .scratch = scratch_,
                     .staged = staged_,
                     .table = table_,
                     .arguments = arguments_});
  }

  Operands operands_;
  OpArguments arguments_;
  GpuMemory own_;
  Kernel kernel_;
  std::byte *scratch_ = nullptr, *staged_ = nullptr, *table_ = nullptr, *workspace_ = nullptr;
  std::optional<Launcher> launcher_ = {};
};

// Memory for the operands of some instructions of an action. It allocates nothing if they need more than half of the free memory.
class Placement {
 public:
  Placement(Runtime& runtime, const Role& role, const Action& action, const std::vector<const Instruction*>& instructions)
      : blocks_(role, action), memory_(runtime) {
    for (const Instruction* instruction : instructions)
      for (const auto* uses : {&instruction->reads, &instruction->writes})
        for (const Use& use : *uses) blocks_.add(use);
    fits_ = blocks_.size().value <= runtime.free_memory(0).value / 2;
    if (fits_) at_ = memory_.allocate(Space::Device, blocks_.size());
  }
  bool fits() const { return fits_; }
  Operands of(const Instruction& instruction) const {
    Operands operands;
    for (const Use& use : instruction.reads) operands.reads.push_back(blocks_.operand(use, at_));
    for (const Use& use : instruction.writes) operands.writes.push_back(blocks_.operand(use, at_));
    return operands;
  }

 private:
  Blocks blocks_;
  GpuMemory memory_;
  bool fits_ = false;
  std::byte* at_ = nullptr;
};

// The fused kernel of a product and an activation, without the bias gradient, which is measured with the weight gradient. Nothing: the
// library has no such product, or the result would overwrite what the product reads.
std::optional<Kernel> joined_kernel(const Compute& product, const Operands& of_product, const Compute& activation,
                                    const Operands& of_activation, Runtime& runtime) {
  for (const std::vector<Operand>* operands : {&of_product.reads, &of_product.writes})
    for (const Operand& operand : *operands)
      if (operand.data == of_activation.writes.front().data) return {};
  const FusedPart first = {product, of_product.reads, of_product.writes},
                  second = {activation, of_activation.reads, of_activation.writes};
  return ops::is_forward(product.phase) ? fuse_forward(first, second, runtime) : fuse_backward(first, second, nullptr, runtime);
}

std::string kind_of(const Compute& what) {  // "attention input_grad 1x8192x32x128,1x8192x8x128"
  std::string text = std::string(word(what.op)) + " " + word(what.phase) + " ";
  for (const Shape& shape : what.shapes) {
    if (&shape != &what.shapes.front()) text += ",";
    for (std::size_t i = 0; i < shape.dims.size(); ++i) text += (i > 0 ? "x" : "") + std::to_string(shape.dims[i]);
  }
  return text;
}

Operands together(Operands a, const Operands& b) {
  a.reads.insert(a.reads.end(), b.reads.begin(), b.reads.end());
  a.writes.insert(a.writes.end(), b.writes.begin(), b.writes.end());
  return a;
}

}  // namespace

bool CudaMeasures::is_new(const Compute& what, bool joined) {
  return known_
      .insert({word(what.op), what.phase, what.shapes.front().dtype, variant_of(what), joined, dims_of(what), what.traffic})
      .second;
}

void CudaMeasures::instructions(const Plan& plan, int, const TellCompute& tell) {
  const Ranks ranks(plan);
  const RandomSamples samples(0);
  Bench bench(runtime_, sizes_.times, sizes_.lasting);
  // As in runs: a form whose workspace is too large there is measured with the kernels that compute it there.
  const Libraries libraries{.runtime = &runtime_, .attention_limit = attention_workspace_limit(runtime_.properties(0).memory)};
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const RankPlace place = place_of(plan, ranks, ranks.first({static_cast<std::int32_t>(r)}));
    for (const Action& action : plan.roles[r].actions) {
      const Segment& segment = plan.segments[action.segment.index()];
      const auto measure = [&](const Instruction& instruction, Kernel kernel, Operands operands, bool joined) {
        if (const Bytes beside = Alone::memory_of(kernel); beside > runtime_.free_memory(0)) {
          notes_.push_back(kind_of(std::get<Compute>(instruction.what)) + " is not measured: beside its operands it needs " +
                           in_size(beside) + ", and " + in_size(runtime_.free_memory(0)) + " are free");
          return;
        }
        OpArguments arguments = arguments_of(plan, ranks, place, action, instruction);
        arguments.source = &samples;
        const Alone alone(runtime_, bench, choice_, std::move(kernel), std::move(operands), arguments);
        for (const Seconds time : bench.cold_and_warm(alone)) tell(std::get<Compute>(instruction.what), time, joined);
      };
      for (const Instruction& instruction : segment.instructions) {
        const auto* what = std::get_if<Compute>(&instruction.what);
        if (!what || what->shapes.empty() || !is_new(*what, false)) continue;
        const Placement placed(runtime_, plan.roles[r], action, {&instruction});
        if (!placed.fits()) continue;
        Operands operands = placed.of(instruction);
        Kernel kernel = make_kernel(*what, operands.reads, operands.writes, libraries);
        measure(instruction, std::move(kernel), std::move(operands), false);
      }
      for (const JoinedProduct& pair : joined_products(segment)) {
        const Instruction &product = segment.instructions[pair.product], &activation = segment.instructions[pair.activation];
        const auto &first = std::get<Compute>(product.what), &second = std::get<Compute>(activation.what);
        if (!is_new(first, true)) continue;
        const Placement placed(runtime_, plan.roles[r], action, {&product, &activation});
        if (!placed.fits()) continue;
        const Operands of_product = placed.of(product), of_activation = placed.of(activation);
        if (std::optional<Kernel> kernel = joined_kernel(first, of_product, second, of_activation, runtime_))
          measure(product, std::move(*kernel), together(of_product, of_activation), true);
      }
    }
  }
}

}  // namespace foreshard::gpu
