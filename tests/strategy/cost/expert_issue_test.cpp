// Host and device at layers with experts: closed forms, and a plan that is costed with and without the fields of the preset.
#include "strategy/cost/expert_issue.h"

#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/kernels/op_cost.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::expert_issue_test {
namespace {

Compute product(std::int64_t experts, DType type, bool transposed = false) {
  ops::GroupedMatMul op;
  op.transposed = transposed;
  return {.op = op,
          .shapes = {{.dims = {experts, 256, 2048, 768}, .dtype = type}, {.dims = {8, 512}, .dtype = DType::BF16}},
          .flops = {1e12},
          .traffic = {1 << 30}};
}

Compute dispatch(std::int64_t ranks, std::int64_t capacity) {
  ops::Dispatch op;
  op.capacity = capacity;
  return {.op = op, .shapes = {{.dims = {4096, 2048, 8, 128}, .dtype = DType::BF16}, {.dims = {ranks, 4096}}}};
}

// The host issues 10 us before each operator, the device takes 1 and 30 us in turn: three pairs.
double exposed(bool waits) {
  IssueClock clock(0);
  for (int pair = 0; pair < 3; ++pair) {
    if (waits) clock.wait();
    clock.run(10, 1), clock.run(10, 30);
  }
  return clock.exposed();
}

// Ahead of the device the host's 60 us hide behind 93 us. When it waits, each pair begins with an idle device: 10 us until the first
// operator, 9 us until the second.
TEST(IssueClock, WhoWaitsCannotIssueAhead) {
  EXPECT_LE(exposed(false), 0);
  EXPECT_DOUBLE_EQ(exposed(true), 3 * (10 + 9));
}

TEST(ExpertIssue, EveryExpertIsIssued) {
  const FrameworkPreset one, each = {.experts = {.each_expert = true, .eight_bit_kernels = 3}};
  EXPECT_EQ(issued_kernels(one, product(16, DType::F8)), 1);
  EXPECT_EQ(issued_kernels(each, product(16, DType::BF16)), 16);
  EXPECT_EQ(issued_kernels(each, product(16, DType::F8)), 48);
  EXPECT_EQ(further_kernels(each, product(16, DType::BF16)), 0);
  EXPECT_EQ(further_kernels(each, product(16, DType::F8)), 32);
}

// Outside of segments with experts the host takes what it takes for dense layers.
TEST(ExpertIssue, OperatorsOfExpertsAndOthers) {
  const FrameworkPreset preset = {.host = {.per_kernel = {5e-6}},
                                  .experts = {.per_kernel = {15e-6}, .per_operator = {60e-6}, .each_expert = true}};
  const Compute norm = {.op = ops::Norm{}};
  EXPECT_DOUBLE_EQ(issue_time(preset, product(16, DType::BF16), true).value, 16 * 15e-6);
  EXPECT_DOUBLE_EQ(issue_time(preset, norm, true).value, 60e-6);
  EXPECT_DOUBLE_EQ(issue_time(preset, norm, false).value, 5e-6);
}

// The module of a linear layer costs the host more than other operators, in the forward and when it runs again; its gradients do not.
TEST(ExpertIssue, ModulesOfLinearLayers) {
  FrameworkPreset preset = {.host = {.per_kernel = {5e-6}}, .experts = {.per_kernel = {15e-6}, .per_operator = {60e-6}}};
  Compute linear = {.op = ops::MatMul{}};
  EXPECT_DOUBLE_EQ(issue_time(preset, linear, true).value, 60e-6);
  preset.experts.per_linear = {115e-6};
  EXPECT_DOUBLE_EQ(issue_time(preset, linear, true).value, 115e-6);
  EXPECT_DOUBLE_EQ(issue_time(preset, linear, false).value, 5e-6);
  EXPECT_DOUBLE_EQ(issue_time(preset, {.op = ops::Norm{}}, true).value, 60e-6);
  linear.phase = Phase::Recompute;
  EXPECT_DOUBLE_EQ(issue_time(preset, linear, true).value, 115e-6);
  linear.phase = Phase::WeightGrad;
  EXPECT_DOUBLE_EQ(issue_time(preset, linear, true).value, 60e-6);
}

// A rotation that is not fused: a dispatch for each of its kernels, which may be others in the backward. One kernel is an operator as others.
TEST(ExpertIssue, KernelsOfAnUnfusedRotationAreDispatches) {
  FrameworkPreset preset = {.experts = {.per_kernel = {15e-6}, .per_operator = {60e-6}}};
  Compute rope = {.op = ops::Rope{}};
  EXPECT_DOUBLE_EQ(issue_time(preset, rope, true).value, 60e-6);
  preset.styles.rope = {.kernels = 14, .backward_kernels = 13};
  EXPECT_DOUBLE_EQ(issue_time(preset, rope, true).value, 14 * 15e-6);
  EXPECT_EQ(further_kernels(preset, rope), 13);
  rope.phase = Phase::InputGrad;
  EXPECT_DOUBLE_EQ(issue_time(preset, rope, true).value, 13 * 15e-6);
  EXPECT_EQ(further_kernels(preset, rope), 12);
}

// Sixteen experts on four streams: four times a product of four experts.
TEST(ExpertIssue, StreamsShareTheDevice) {
  const FrameworkPreset each = {.experts = {.each_expert = true}};
  const auto part = part_of_experts(each, product(16, DType::BF16));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->what.shapes.front().dims[0], 4);
  EXPECT_EQ(part->times, 4);
  EXPECT_EQ(part->what.flops.value * part->times, 1e12);
  EXPECT_FALSE(part_of_experts(each, product(4, DType::BF16)));
  EXPECT_FALSE(part_of_experts({}, product(16, DType::BF16)));
}

TEST(ExpertIssue, OnlyWithoutCapacityCountsAreAwaited) {
  const FrameworkPreset preset = {.experts = {.waits_for_counts = true}};
  EXPECT_TRUE(waits_for_device(preset, dispatch(8, 0)));
  EXPECT_FALSE(waits_for_device(preset, dispatch(8, 256)));
  Compute backward = dispatch(8, 0);
  backward.phase = Phase::InputGrad;
  EXPECT_FALSE(waits_for_device(preset, backward));
  EXPECT_FALSE(waits_for_device({}, dispatch(8, 0)));
}

// A graph of the whole iteration has sizes on the device: no wait, one product for all experts, a node's time for each kernel.
TEST(ExpertIssue, InAGraphOfTheIterationTheHostWaitsForNothing) {
  const FrameworkPreset &graph = framework_preset("megatron-bridge-iteration-graphs"),
                        &plain = framework_preset("megatron-bridge");
  EXPECT_TRUE(waits_for_device(plain, dispatch(8, 0)));
  EXPECT_FALSE(waits_for_device(graph, dispatch(8, 0)));
  EXPECT_EQ(issued_kernels(graph, product(16, DType::F8)), 1);
  EXPECT_DOUBLE_EQ(issue_time(graph, product(16, DType::F8), true).value, 0.6e-6);
  EXPECT_LT(graph.host.per_kernel.value, plain.host.per_kernel.value);
}

// gpt-oss copies a number to the device before its activation, in the forward and when it runs again.
TEST(ExpertIssue, TheClampedActivationWaitsForACopy) {
  const FrameworkPreset preset = {.experts = {.clamp_waits = true}};
  Compute clamped = {.op = ops::Activation{.function = ops::Activation::Function::ClampedSwiGlu}};
  EXPECT_TRUE(waits_for_device(preset, clamped));
  EXPECT_FALSE(waits_for_device({}, clamped));
  EXPECT_FALSE(waits_for_device(preset, {.op = ops::Activation{.function = ops::Activation::Function::SwiGlu}}));
  clamped.phase = Phase::Recompute;
  EXPECT_TRUE(waits_for_device(preset, clamped));
  clamped.phase = Phase::InputGrad;
  EXPECT_FALSE(waits_for_device(preset, clamped));
}

// Sixteen experts: a call for the weight of each in the forward and in the gradient of the weight, none in that of the input.
TEST(ExpertIssue, WeightsOfExpertsCostTheHostCalls) {
  const FrameworkPreset preset = {.experts = {.per_kernel = {15e-6}, .each_expert = true, .calls_per_weight = 1}};
  Compute one = product(16, DType::BF16);
  EXPECT_EQ(calls_for_weights(preset, one), 16);
  EXPECT_DOUBLE_EQ(issue_time(preset, one, true).value, 32 * 15e-6);
  one.phase = Phase::InputGrad;
  EXPECT_EQ(calls_for_weights(preset, one), 0);
  one.phase = Phase::WeightGrad;
  EXPECT_EQ(calls_for_weights(preset, one), 16);
  EXPECT_EQ(calls_for_weights({.experts = {.calls_per_weight = 1}}, one), 0);  // all experts in one product
}

// 4 x 256 rows in 16 bits, read and written: of the 768 numbers before the first product, of the 2048 behind the second.
TEST(ExpertIssue, RowsArePaddedInEightBits) {
  const FrameworkPreset preset = {.experts = {.pads_rows = true}};
  Compute first = product(4, DType::F8), second = product(4, DType::F8, true);
  EXPECT_EQ(padded_bytes(preset, first).value, 4LL * 256 * 768 * 2 * 2);
  EXPECT_EQ(padded_bytes(preset, second).value, 4LL * 256 * 2048 * 2 * 2);
  EXPECT_EQ(padded_bytes(preset, product(4, DType::BF16)).value, 0);
  EXPECT_EQ(padded_bytes({}, first).value, 0);
  first.phase = Phase::WeightGrad;
  EXPECT_EQ(padded_bytes(preset, first).value, 0);
}

// 4 x 256 rows are read and written in 16 bits: of 768 numbers before the first product, of 2048 behind the second. A rank alone, or with one
// expert, has nothing to sort. With a capacity a kernel without vector loads moves them, without one a fused kernel or a concatenation.
TEST(ExpertIssue, RowsOfSeveralExpertsAreSorted) {
  const Gpu gpu = load_gpu("b200");
  FrameworkPreset preset = {.experts = {.sorts_rows = true}};
  const auto sorting = [&](const Compute& what, bool capacity = false) {
    return sorting_time(gpu, preset, what, capacity).value;
  };
  const double narrow = streamed_time(gpu, {4LL * 256 * 768 * 2 * 2}).value;
  EXPECT_DOUBLE_EQ(sorting(product(4, DType::BF16)), narrow);
  EXPECT_DOUBLE_EQ(sorting(product(4, DType::BF16, true)), streamed_time(gpu, {4LL * 256 * 2048 * 2 * 2}).value);
  EXPECT_EQ(sorting(product(1, DType::BF16)), 0);
  EXPECT_NEAR(sorting(product(4, DType::BF16), true) / narrow, unvectorized_slowdown(gpu, 4), 1e-9);
  EXPECT_GT(unvectorized_slowdown(gpu, 4), 4);
  preset.experts.joins_chunks = true, preset.styles.joins = 2;
  EXPECT_NEAR(sorting(product(4, DType::BF16)) / narrow, unvectorized_slowdown(gpu, 8), 1e-9);
  EXPECT_NEAR(sorting(product(4, DType::BF16), true) / narrow, unvectorized_slowdown(gpu, 4), 1e-9);
  Compute alone = product(4, DType::BF16);
  alone.shapes[1].dims[0] = 1;
  EXPECT_EQ(sorting(alone), 0);
  EXPECT_EQ(sorting(dispatch(8, 0)), 0);
  preset = {};
  EXPECT_EQ(sorting(product(4, DType::BF16)), 0);
}

// Results in the forward of the second product, gradients of rows in the backward of the first.
TEST(ExpertIssue, ResultsOfModulesAreJoined) {
  const FrameworkPreset preset = {.experts = {.joins_results = true}};
  Compute first = product(4, DType::BF16), second = product(4, DType::BF16, true);
  EXPECT_EQ(joined_bytes(preset, first).value, 0);
  EXPECT_EQ(joined_bytes(preset, second).value, 4LL * 256 * 2048 * 2 * 2);
  first.phase = second.phase = Phase::InputGrad;
  EXPECT_EQ(joined_bytes(preset, first).value, 4LL * 256 * 768 * 2 * 2);
  EXPECT_EQ(joined_bytes(preset, second).value, 0);
  EXPECT_EQ(joined_bytes({}, first).value, 0);
  first.phase = Phase::WeightGrad;
  EXPECT_EQ(joined_bytes(preset, first).value, 0);
  EXPECT_EQ(joined_bytes(preset, product(1, DType::BF16, true)).value, 0);
}

// 4 x 256 rows of 2048 results in 16 bits, six times in the forward, eight times in the backward.
TEST(ExpertIssue, BiasesOfTheSecondProductCostPasses) {
  const FrameworkPreset preset = {.experts = {.biases = OpStyle{.forward = {.all = 6}, .backward = KernelTraffic{.all = 8}}}};
  const Gpu gpu = load_gpu("h100-80");
  Compute second = product(4, DType::BF16, true);
  constexpr std::int64_t kResults = 4LL * 256 * 2048 * 2;
  EXPECT_EQ(bias_kernels(gpu, preset, second, true)->traffic.value, 6 * kResults);
  second.phase = Phase::WeightGrad;
  EXPECT_EQ(bias_kernels(gpu, preset, second, true)->traffic.value, 8 * kResults);
  EXPECT_FALSE(bias_kernels(gpu, preset, second, false));
  EXPECT_FALSE(bias_kernels(gpu, preset, product(4, DType::BF16), true));
  EXPECT_FALSE(bias_kernels(gpu, {}, second, true));
}

// Kernels of another speed: the copies, two of six passes, keep theirs.
TEST(ExpertIssue, BiasesMayHaveASpeedOfTheirOwn) {
  FrameworkPreset preset = {.elementwise = 0.8, .experts = {.biases = OpStyle{.forward = {.all = 6, .copies = 2}}}};
  const Gpu gpu = load_gpu("h100-80");
  constexpr std::int64_t kResults = 4LL * 256 * 2048 * 2;
  EXPECT_EQ(bias_kernels(gpu, preset, product(4, DType::BF16, true), true)->traffic.value, 7 * kResults);
  preset.experts.biases->elementwise = 0.5;
  EXPECT_EQ(bias_kernels(gpu, preset, product(4, DType::BF16, true), true)->traffic.value, 10 * kResults);
}

// Behind an activation of 768 columns its two halves and its gradient are read once more: 4 x 256 rows of 3 x 768 numbers. The sum of results
// of 8 x 4096 rows of 2048 numbers does not read them in its backward.
TEST(ExpertIssue, ScoresInTheActivation) {
  const FrameworkPreset preset = {.experts = {.weighs_activation = true}};
  Compute second = product(4, DType::BF16, true), first = product(4, DType::BF16);
  EXPECT_EQ(scored_bytes(preset, second).value, 0);
  second.phase = first.phase = Phase::InputGrad;
  EXPECT_EQ(scored_bytes(preset, second).value, 4LL * 256 * 768 * 3 * 2);
  EXPECT_EQ(scored_bytes(preset, first).value, 0);
  EXPECT_EQ(scored_bytes({}, second).value, 0);
  Compute sum = dispatch(8, 0);
  sum.op = ops::Combine{};
  EXPECT_EQ(unscored_bytes(preset, sum).value, 0);
  sum.phase = Phase::InputGrad;
  sum.shapes[1].dtype = DType::BF16;
  EXPECT_EQ(unscored_bytes(preset, sum).value, 8LL * 4096 * 2048 * 2);
  EXPECT_EQ(unscored_bytes({}, sum).value, 0);
  sum.op = ops::Combine{.plain = true};
  EXPECT_EQ(unscored_bytes(preset, sum).value, 0);
}

// Sixteen experts, three kernels for each in the forward, six in the backward; where the backward says nothing, three as well.
TEST(ExpertIssue, BiasesHaveMoreKernelsInTheBackward) {
  FrameworkPreset preset = {.experts = {.biases = OpStyle{.kernels = 3, .backward_kernels = 6}}};
  Compute second = product(16, DType::BF16, true);
  EXPECT_EQ(kernels_of_biases(preset, second), 48);
  second.phase = Phase::WeightGrad;
  EXPECT_EQ(kernels_of_biases(preset, second), 96);
  preset.experts.biases->backward_kernels = 0;
  EXPECT_EQ(kernels_of_biases(preset, second), 48);
  EXPECT_EQ(kernels_of_biases({}, second), 0);
}

Nanoseconds computes(const Plan& plan, const std::string& segment) {
  Nanoseconds sum = {};
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (std::size_t i = 0; i < plan.costs[0].by_segment[s].size(); ++i)
      if (plan.segments[s].name.starts_with(segment) && std::holds_alternative<Compute>(plan.segments[s].instructions[i].what))
        sum = sum + plan.costs[0].by_segment[s][i].busy;
  return sum;
}

Nanoseconds forward(Lowered& job, const FrameworkPreset& preset) {
  cost_plan(job.plan, load_cluster("dgx-h100"), preset);
  return computes(job.plan, "forward");
}

// With biases the forward of gpt-oss takes longer than without; Qwen3, which has none, does not.
TEST(ExpertIssue, BiasesAreFoundInPlans) {
  const FrameworkPreset none, passes = {.experts = {.biases = OpStyle{.forward = {.all = 6}}}};
  Strategy strategy = {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 1024}, .zero = {.stage = 1}};
  strategy.experts.ep = 8;
  Lowered biased = lowered("gpt-oss-20b", "dgx-h100", strategy), plain = lowered("qwen3-30b-a3b", "dgx-h100", strategy);
  EXPECT_GT(forward(biased, passes), forward(biased, none));
  EXPECT_EQ(forward(plain, passes), forward(plain, none));
}

// In a plan the backward changes by both: rows of 2048 numbers are not read, 3 x 768 are, so that it gets shorter.
TEST(ExpertIssue, ScoresInTheActivationAreFoundInPlans) {
  const FrameworkPreset none, inside = {.experts = {.weighs_activation = true}};
  Strategy strategy = {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 4096}, .zero = {.stage = 1}};
  strategy.experts.ep = 8;
  Lowered job = lowered("qwen3-30b-a3b", "dgx-h100", strategy);
  const auto backward = [&](const FrameworkPreset& preset) {
    cost_plan(job.plan, load_cluster("dgx-h100"), preset);
    return computes(job.plan, "backward");
  };
  const Nanoseconds before = backward(none), after = backward(inside);
  EXPECT_NE(after, before);
  EXPECT_NEAR(static_cast<double>(after.value), static_cast<double>(before.value), 0.02 * static_cast<double>(before.value));
  EXPECT_EQ(forward(job, inside), forward(job, none));
}

// Who sends a token once to each rank sorts in the pass that makes the rows.
TEST(ExpertIssue, TokensSentOnceAreNotSorted) {
  const FrameworkPreset none, sorts = {.experts = {.sorts_rows = true}};
  Strategy strategy = {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 1024}, .zero = {.stage = 1}};
  strategy.experts.ep = 8;
  Lowered rows = lowered("qwen3-30b-a3b", "dgx-h100", strategy);
  EXPECT_GT(forward(rows, sorts), forward(rows, none));
  strategy.experts.dispatcher = Dispatcher::OncePerRank;
  Lowered once = lowered("qwen3-30b-a3b", "dgx-h100", strategy);
  EXPECT_EQ(forward(once, sorts), forward(once, none));
}

// With a capacity every expert has the same number of rows, and who sends a token once pads on the way: nothing is copied.
TEST(ExpertIssue, RowsArePaddedWhereTheirNumberIsOpen) {
  const FrameworkPreset none, pads = {.experts = {.pads_rows = true}};
  Strategy strategy = {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 1024}, .zero = {.stage = 1}};
  strategy.precision = DType::F8;
  strategy.experts.ep = 8;
  Lowered open = lowered("qwen3-30b-a3b", "dgx-h100", strategy);
  EXPECT_GT(forward(open, pads), forward(open, none));
  strategy.experts.capacity = 1;
  Lowered capped = lowered("qwen3-30b-a3b", "dgx-h100", strategy);
  EXPECT_EQ(forward(capped, pads), forward(capped, none));
  strategy.experts.capacity = 0, strategy.experts.dispatcher = Dispatcher::OncePerRank;
  Lowered once = lowered("qwen3-30b-a3b", "dgx-h100", strategy);
  EXPECT_EQ(forward(once, pads), forward(once, none));
}

// A host of seconds for each call determines the backward: four calls for the activation of each layer. Neighbours that run again are one
// part: the product and the rotation of gpt-oss, between which Qwen3 has norms of its heads.
TEST(ExpertIssue, WhatRunsAgainCostsTheHostCalls) {
  const FrameworkPreset none = {.experts = {.per_kernel = {1}}},
                        calls = {.experts = {.per_kernel = {1}, .calls_per_recompute = 4}};
  Strategy strategy = {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 1024}, .zero = {.stage = 1}};
  strategy.experts.ep = 8;
  const auto added = [&](const char* model, const std::vector<std::string>& modules) {
    strategy.recompute = modules.empty() ? Recompute{} : Recompute{.kind = RecomputeKind::Modules, .modules = modules};
    Lowered job = lowered(model, "dgx-h100", strategy);
    const auto backward = [&](const FrameworkPreset& preset) {
      cost_plan(job.plan, load_cluster("dgx-h100"), preset);
      return to_seconds(computes(job.plan, "backward")).value;
    };
    return backward(calls) - backward(none);
  };
  EXPECT_NEAR(added("qwen3-30b-a3b", {}), 0, 1e-3);
  EXPECT_NEAR(added("qwen3-30b-a3b", {"activation"}), 4 * 48, 1e-2);
  EXPECT_NEAR(added("qwen3-30b-a3b", {"qkv", "rope"}), 4 * 2 * 48, 1e-2);
  EXPECT_NEAR(added("gpt-oss-20b", {"qkv", "rope"}), 4 * 24, 1e-2);
}

// Moments in bf16 are widened and narrowed tensor by tensor: of each of eight layers' 128 / 8 experts two weights, and the other tensors cut
// over eight ranks. Moments in fp32 and an optimizer that takes them all at once have one kernel.
TEST(ExpertIssue, NarrowMomentsAreUpdatedTensorByTensor) {
  FrameworkPreset preset = {.experts = {.per_kernel = {15e-6}}};
  preset.styles.narrow_optimizer = OpStyle{.kernels = 6};
  Strategy strategy = {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 1024}, .zero = {.stage = 1}};
  strategy.experts.ep = 8;
  const auto tensors = [&](const FrameworkPreset& with) {
    Model model = load_model("qwen3-30b-a3b");
    std::get<Transformer>(model.shape).layers = 8;
    const Lowered job = lowered(model, load_cluster("dgx-h100"), strategy);
    double of_experts = 0, others = 0;
    for (const Segment& segment : job.plan.segments)
      for (const Instruction& run : segment.instructions) {
        const auto* what = std::get_if<Compute>(&run.what);
        if (!what || !is<ops::Adam>(what->op)) continue;
        (what->slice.valid() ? others : of_experts) += updated_tensors(job.plan, job.plan.roles.front(), with, *what, run);
      }
    return std::pair{of_experts, others};
  };
  const auto wide = tensors(preset);
  EXPECT_LT(wide.first + wide.second, 30);
  strategy.state_dtypes.state = DType::BF16;
  EXPECT_EQ(tensors({}), wide);
  const auto narrow = tensors(preset);
  EXPECT_NEAR(narrow.first, 8 * 128 / 8 * 2, 1e-9);
  EXPECT_GT(narrow.second, wide.second);
  const Compute adam = {.op = ops::Adam{}, .shapes = {{.dims = {1}, .dtype = DType::BF16}}};
  EXPECT_DOUBLE_EQ(issue_time(preset, adam, false).value, 6 * 15e-6);
  EXPECT_EQ(further_kernels(preset, adam), 5);
}

// The host of experts is that of segments with experts: a dense model costs the same with it and without.
TEST(ExpertIssue, DenseSegmentsKeepTheirHost) {
  const FrameworkPreset none = {.host = {.per_kernel = {5e-6}}};
  FrameworkPreset slow = none;
  slow.experts = {.per_kernel = {1e-3}, .per_operator = {1e-3}, .each_expert = true, .waits_for_counts = true};
  Lowered dense = lowered("llama-3-8b", "dgx-h100", {.dp = 8, .batch = {.micro = 1, .global = 8}, .zero = {.stage = 1}});
  EXPECT_EQ(forward(dense, slow), forward(dense, none));
  Strategy shared = {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 1024}, .zero = {.stage = 1}};
  shared.experts.ep = 8;
  Lowered experts = lowered("qwen3-30b-a3b", "dgx-h100", shared);
  EXPECT_GT(forward(experts, slow), forward(experts, none));
}

}  // namespace
}  // namespace foreshard::expert_issue_test
