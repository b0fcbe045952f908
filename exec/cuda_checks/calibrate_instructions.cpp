// Every compute of a plan by itself, on random numbers: nothing of the plan runs, so its sizes may be those of many ranks.
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "exec/cuda_checks/calibrate_bench.h"
#include "exec/cuda_checks/calibrate_cuda.h"
#include "exec/cuda_ops/gpu_kernel.h"
#include "exec/rank/rank_place.h"

namespace foreshard::gpu {

namespace {

constexpr std::int64_t kAlign = 512;

// Where the blocks of one instruction lie, one after the other: uses of the same block stay uses of the same bytes.
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

// One instruction ready to run, and what it needs.
class Alone {
 public:
  Alone(Runtime& runtime, Bench& bench, ProductChoice& choice, const Compute& what, std::vector<Operand> reads,
        std::vector<Operand> writes, const OpArguments& arguments)
      : reads_(std::move(reads)), writes_(std::move(writes)), arguments_(arguments), own_(runtime) {
    kernel_ = make_kernel(what, reads_, writes_, &runtime);
    const Bytes table_bytes = {static_cast<std::int64_t>(kernel_.table.size())};
    scratch_ = own_.allocate(Space::Device, kernel_.scratch);
    staged_ = own_.allocate(Space::PinnedHost, kernel_.staged);
    table_ = own_.allocate(Space::Device, table_bytes);
    workspace_ = kernel_.multiplies ? own_.allocate(Space::Device, kMultiplyWorkspace) : nullptr;
    if (table_) runtime.copy(table_, kernel_.table.data(), table_bytes, bench.stream());
    if (kernel_.prepare) kernel_.prepare(staged_, arguments_);
    std::vector<Multiply> products;
    if (kernel_.multiplies) run(Launcher(products));
    choice.decide(0, products);  // leaves zeros
    for (const std::vector<Operand>* operands : {&writes_, &reads_})
      for (const Operand& operand : *operands) bench.fill_random(operand);
    launcher_.emplace(runtime, bench.stream(), workspace_, &choice, 0);
  }
  void operator()() const { run(*launcher_); }

 private:
  void run(const Launcher& on) const {
    kernel_.run(
        on,
        {.reads = reads_, .writes = writes_, .scratch = scratch_, .staged = staged_, .table = table_, .arguments = arguments_});
  }

  std::vector<Operand> reads_, writes_;
  OpArguments arguments_;
  GpuMemory own_;
  Kernel kernel_ = {};
  std::byte *scratch_ = nullptr, *staged_ = nullptr, *table_ = nullptr, *workspace_ = nullptr;
  std::optional<Launcher> launcher_ = {};
};

}  // namespace

void CudaMeasures::instructions(const Plan& plan, int, const std::function<void(const Compute&, Seconds)>& tell) {
  const Ranks ranks(plan);
  const RandomSamples samples(0);
  Bench bench(runtime_, sizes_.times, sizes_.lasting);
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const RankPlace place = place_of(plan, ranks, ranks.first({static_cast<std::int32_t>(r)}));
    for (const Action& action : plan.roles[r].actions)
      for (const Instruction& instruction : plan.segments[action.segment.index()].instructions) {
        const auto* what = std::get_if<Compute>(&instruction.what);
        if (!what || what->shapes.empty()) continue;
        if (!known_
                 .insert({word(what->op), what->phase, what->shapes.front().dtype, variant_of(*what), dims_of(*what),
                          what->traffic})
                 .second)
          continue;
        Blocks blocks(plan.roles[r], action);
        for (const auto* uses : {&instruction.reads, &instruction.writes})
          for (const Use& use : *uses) blocks.add(use);
        if (blocks.size().value > runtime_.free_memory(0).value / 2) continue;
        GpuMemory memory(runtime_);
        std::byte* at = memory.allocate(Space::Device, blocks.size());
        std::vector<Operand> reads, writes;
        for (const Use& use : instruction.reads) reads.push_back(blocks.operand(use, at));
        for (const Use& use : instruction.writes) writes.push_back(blocks.operand(use, at));
        OpArguments arguments = arguments_of(plan, ranks, place, action, instruction);
        arguments.source = &samples;
        const Alone alone(runtime_, bench, choice_, *what, reads, writes, arguments);
        for (const Seconds time : bench.cold_and_warm(alone)) tell(*what, time);
      }
  }
}

}  // namespace foreshard::gpu
