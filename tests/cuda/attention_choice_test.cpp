// By what attention is computed: all instructions of a layer by the library or none, within the memory that the plan has for it, and told.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/plan/attention_memory.h"
#include "core/result/memory_timeline.h"
#include "exec/cuda_ops/gpu_kernel.h"
#include "tests/cuda/fake_training.h"

namespace foreshard::gpu::attention_choice_test {

// A library that refuses what `refuses` says.
class Refusing : public FakeRuntime {
 public:
  explicit Refusing(std::function<bool(const AttentionCall&)> refuses)
      : FakeRuntime({.library_attention = true}), refuses_(std::move(refuses)) {}
  std::optional<Bytes> attention_workspace(const AttentionCall& call) override {
    if (refuses_(call)) return {};
    return FakeRuntime::attention_workspace(call);
  }

 private:
  std::function<bool(const AttentionCall&)> refuses_;
};

// cuDNN 9.19 on a B200: "Deterministic algorithm is not supported on blackwell architecture when ... dropout ... is enabled".
static bool no_dropout_in_order(const AttentionCall& call) { return call.backward && call.dropped > 0 && !call.any_order; }

// Two layers in bf16, two micro-batches, attention in one operator.
static Strategy flash(std::optional<double> dropout = {}) {
  Strategy strategy = in_single({.batch = {.micro = 2, .global = 4}, .attention = AttentionKernel::Flash, .dropout = dropout});
  strategy.precision = DType::BF16;
  return strategy;
}

struct Trained {
  std::vector<double> losses = {};
  std::vector<std::string> notes = {};
  Bytes workspace = {};
};
static Trained trained(const Plan& plan, FakeRuntime& runtime, GpuRuns runs = {}, int steps = 2) {
  ExecuteOptions options = fake_training(steps);
  runs.timed_from = steps - 1;
  options.devices = ranks_on(runtime, runs);
  const Execution done = run(plan, options);
  Trained all{.notes = done.notes, .workspace = done.workspace};
  for (const StepReport& step : done.steps) all.losses.push_back(step.loss);
  EXPECT_TRUE(runtime.conflicts().empty());
  return all;
}
static std::size_t masks(const FakeRuntime& runtime, bool backward) {
  const auto drawn = runtime.drawn_masks();
  return static_cast<std::size_t>(std::ranges::count(drawn, backward, &FakeRuntime::DrawnMask::backward));
}

// The losses are those of a machine without the library: our kernels draw one mask for both directions.
TEST(AttentionChoice, ForwardAndBackwardDropTheSame) {
  const Plan plan = lowered(two_layers(tiny_gpt()), flash(0.2));
  Refusing blackwell(no_dropout_in_order);
  FakeRuntime own, library({.library_attention = true});
  const Trained there = trained(plan, blackwell), ours = trained(plan, own), theirs = trained(plan, library);
  EXPECT_EQ(masks(blackwell, false), 0U);
  EXPECT_EQ(masks(blackwell, true), 0U);
  EXPECT_EQ(there.losses, ours.losses);
  EXPECT_EQ(there.notes, std::vector<std::string>{"attention of 2 layers: own kernels, because the fake has no such backward"});
  EXPECT_EQ(ours.notes, std::vector<std::string>{"attention of 2 layers: own kernels, because cuDNN is not there"});
  EXPECT_EQ(theirs.notes, std::vector<std::string>{"attention of 2 layers: cuDNN's"});
  EXPECT_NE(theirs.losses, ours.losses);
  // It has the backward in any order, where a run allows that.
  const Trained any = trained(plan, blackwell, {.any_order = true});
  EXPECT_EQ(masks(blackwell, false), 2U * 2 * 2);
  EXPECT_EQ(masks(blackwell, true), 2U * 2 * 2);
  EXPECT_EQ(any.losses, theirs.losses);
}

// What the maker of a kernel cannot see: the other instructions of the layer. Here the backward of one layer adds to its gradient.
TEST(AttentionChoice, WhatOneInstructionCannotDoNoneOfItsLayerDoes) {
  Plan plan = lowered(two_layers(tiny_gpt()), flash(0.2));
  FakeRuntime own, whole({.library_attention = true}), mixed({.library_attention = true});
  static_cast<void>(trained(plan, whole));
  ASSERT_EQ(masks(whole, false), 2U * 2 * 2);
  bool changed = false;
  for (Segment& segment : plan.segments)
    for (Instruction& instruction : segment.instructions)
      if (auto* what = std::get_if<Compute>(&instruction.what);
          what && !changed && is<ops::Attention>(what->op) && what->phase == Phase::InputGrad)
        what->accumulate = changed = true;
  ASSERT_TRUE(changed);
  static_cast<void>(trained(plan, mixed));
  EXPECT_EQ(masks(mixed, false), masks(mixed, true));
  EXPECT_EQ(masks(mixed, false), 1U * 2 * 2);  // the other layer is the library's
}

// What the makers of the attention kernels of a plan say, with arrays at these addresses.
static std::set<std::string> reasons(const Plan& plan, FakeRuntime& runtime, std::uintptr_t address, Phase phase) {
  std::set<std::string> all;
  for (const Role& role : plan.roles)
    for (const Action& action : role.actions)
      for (const Instruction& instruction : plan.segments[action.segment.index()].instructions) {
        const auto* what = std::get_if<Compute>(&instruction.what);
        if (!what || !is<ops::Attention>(what->op) || what->phase != phase) continue;
        const auto operands = [&](const std::vector<Use>& uses) {
          std::vector<Operand> made;
          for (const Use& use : uses) {
            const Buffer& buffer = role.buffers[use.buffer.index()];
            made.push_back(
                {reinterpret_cast<std::byte*>(address), buffer.bytes.value / size_of(buffer.dtype).value, buffer.dtype});
          }
          return made;
        };
        all.insert(make_kernel(*what, operands(instruction.reads), operands(instruction.writes), {&runtime}).own_attention);
      }
  return all;
}

// Whoever lacks one direction has neither; and only arrays that begin at a multiple of 16 bytes.
TEST(AttentionChoice, AKernelAsksForBothDirections) {
  const Plan plan = lowered(two_layers(tiny_gpt()), flash());
  FakeRuntime both({.library_attention = true});
  Refusing no_forward([](const AttentionCall& call) { return !call.backward; });
  Refusing no_backward([](const AttentionCall& call) { return call.backward; });
  using Reasons = std::set<std::string>;
  for (const Phase phase : {Phase::Forward, Phase::InputGrad}) {
    EXPECT_EQ(reasons(plan, both, 4096, phase), Reasons{""});
    EXPECT_EQ(reasons(plan, no_forward, 4096, phase), Reasons{"the fake has no such forward"});
    EXPECT_EQ(reasons(plan, no_backward, 4096, phase), Reasons{"the fake has no such backward"});
    EXPECT_EQ(reasons(plan, both, 4096 + 8, phase), Reasons{"an array does not begin at a multiple of 16 bytes"});
  }
}

// As cuDNN does on all GPUs but 10.x, it asks for a map of all pairs of positions.
class ByMap : public FakeRuntime {
 public:
  explicit ByMap(Bytes memory, Bytes more = {}) : FakeRuntime({.memory = memory, .library_attention = true}), more_(more) {}
  std::optional<Bytes> attention_workspace(const AttentionCall& call) override {
    const std::optional<Bytes> sums = FakeRuntime::attention_workspace(call);
    if (!sums || !call.backward || call.any_order) return sums;
    return more_ + Bytes{2 * call.samples * call.heads * call.queries * call.keys} + *sums;
  }

 private:
  Bytes more_;
};

// The plan's memory has room for the map: context and other libraries are 512 MiB of it, the rest is what a rank allocates beside its arena.
// 2 x 4 heads x 512 x 512 x 2 bytes are 4 MiB, four times the rest of the bound.
TEST(AttentionChoice, TheWorkspaceIsPartOfThePlansMemory) {
  Model model = tiny_gpt();
  auto& shape = std::get<Transformer>(model.shape);
  shape.layers = 1, shape.max_positions = 512;
  Strategy strategy = flash();
  strategy.batch = {.micro = 2, .global = 2, .seq = 512};
  const Plan plan = lowered(model, strategy);
  ByMap runtime(Bytes{std::int64_t{1} << 30U});
  ExecuteOptions options = fake_training(1);
  options.devices = ranks_on(runtime);
  Bytes arena = {};
  for (const Role& role : plan.roles) arena = std::max(arena, arena_bytes(role, Space::Device));
  options.memory_limit = arena + plan.framework;
  const Execution done = run(plan, options);
  EXPECT_EQ(runtime.library_attentions(), 2);
  const Bytes map = {std::int64_t{4} << 20U}, context = {std::int64_t{512} << 20U};
  EXPECT_GT(done.workspace, map);
  EXPECT_LE(done.workspace, plan.framework - context);
}

// A seventh of the GPU, rounded down to a power of two, is the most: here 128 MiB of 1 GiB.
TEST(AttentionChoice, ATooLargeWorkspaceIsDoneWithout) {
  const Plan plan = lowered(two_layers(tiny_gpt()), flash(0.2));
  const Bytes memory = {std::int64_t{1} << 30U}, limit = attention_workspace_limit(memory);
  ByMap fits(memory, limit - Bytes{16 << 10}), larger(memory, limit), any(memory, limit);
  EXPECT_EQ(trained(plan, fits, {}, 1).notes, std::vector<std::string>{"attention of 2 layers: cuDNN's"});
  const Trained without = trained(plan, larger, {}, 1);
  EXPECT_EQ(larger.library_attentions(), 0);
  EXPECT_LT(without.workspace.value, std::int64_t{40} << 20U);
  ASSERT_EQ(without.notes.size(), 1U);
  EXPECT_NE(without.notes[0].find("own kernels, because cuDNN would need 128"), std::string::npos) << without.notes[0];
  EXPECT_NE(without.notes[0].find("--any-order"), std::string::npos) << without.notes[0];
  EXPECT_EQ(trained(plan, any, {.any_order = true}, 1).notes, std::vector<std::string>{"attention of 2 layers: cuDNN's"});
}

}  // namespace foreshard::gpu::attention_choice_test
