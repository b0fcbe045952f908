// Attention by a library: what we tell it. The twin (support_fake_attention.cpp) computes from these values alone, so each that is wrong is seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "exec/cuda_checks/kernel_cases.h"
#include "tests/cuda/bent.h"
#include "tests/cuda/fake_training.h"

namespace foreshard::gpu::library_attention_test {

// By their names: in fp32, with dropout, or of a causal model whose positions are cut into two chunks per rank. By what they do: chunks of
// positions, sinks, caps.
static bool beyond_a_library(const KernelCase& at) {
  if (const auto* op = std::get_if<ops::Attention>(&at.what.op); op && (op->chunk > 0 || op->sinks || op->score_cap > 0))
    return true;
  return at.name.find("plain") != std::string::npos || at.name.find("zigzag") != std::string::npos;
}

// Those that a library has, and whose result is that of the host: 16 bits, no dropout, gradients that take the place of what was there.
static std::vector<KernelCase> library_cases() {
  std::vector<KernelCase> all;
  for (KernelCase& at : kernel_cases())
    if (is<ops::Attention>(at.what.op) && !beyond_a_library(at) && !(at.what.accumulate && at.what.phase == Phase::InputGrad))
      all.push_back(std::move(at));
  return all;
}

TEST(LibraryAttention, EqualsTheHost) {
  const std::vector<KernelCase> cases = library_cases();
  ASSERT_GE(cases.size(), 10U);
  for (const KernelCase& tried : cases) {
    FakeRuntime runtime({.library_attention = true});
    EXPECT_TRUE(run_case(tried, runtime).right(tried)) << tried.name;
    EXPECT_EQ(runtime.library_attentions(), 1) << tried.name;
    EXPECT_TRUE(runtime.launches().empty()) << tried.name;
    EXPECT_TRUE(runtime.conflicts().empty()) << tried.name;
    EXPECT_TRUE(run_case(tried, runtime, By::OurKernels).right(tried)) << tried.name;  // selftest compares our kernels, too
    EXPECT_EQ(runtime.library_attentions(), 1) << tried.name;
  }
}

// Gradients may be added to, fp32 is no format of the library's, and it has no mask for two chunks.
TEST(LibraryAttention, WhatItDoesNotHaveIsDoneByOurKernels) {
  int tried_cases = 0;
  for (const KernelCase& tried : kernel_cases()) {
    const bool added = tried.what.accumulate && tried.what.phase == Phase::InputGrad;
    if (!is<ops::Attention>(tried.what.op) || (!beyond_a_library(tried) && !added)) continue;
    FakeRuntime runtime({.library_attention = true});
    EXPECT_TRUE(run_case(tried, runtime).right(tried)) << tried.name;
    EXPECT_EQ(runtime.library_attentions(), 0) << tried.name;
    ++tried_cases;
  }
  EXPECT_GE(tried_cases, 20);
}

namespace {

class Forgetful : public FakeRuntime {
 public:
  Forgetful() : FakeRuntime({.library_attention = true}) {}
  std::optional<Bytes> attention_workspace(const AttentionCall&) override { return Bytes{0}; }
};

std::vector<Bend<AttentionCall>> bends() {
  std::vector<Bend<AttentionCall>> all = {
      {"scale", [](AttentionCall& call) { call.scale *= 1.1F; }},
      {"mask", [](AttentionCall& call) { call.causal = !call.causal; }},
      {"window", [](AttentionCall& call) { call.window += call.window > 0 ? 1 : 0; }},
      {"no window", [](AttentionCall& call) { call.window = 0; }},
      {"elements of a value", [](AttentionCall& call) { call.value_dim -= call.value_dim < call.dim ? 8 : 0; }},
      {"one key fewer", [](AttentionCall& call) { --call.keys; }},
      {"mask shifted by a query",
       [](AttentionCall& call) {  // the second query sees what the first may
         if (!call.causal) return;
         --call.queries;
         for (AttentionArray* array : {&call.q, &call.context, &call.dcontext, &call.dq})
           if (array->data) array->data += array->row_step * size_of(call.dtype).value;
       }},
      {"keys for values", [](AttentionCall& call) { std::swap(call.k.data, call.v.data); }},
      {"gradients of keys for those of values", [](AttentionCall& call) { std::swap(call.dk.data, call.dv.data); }},
      {"lse of the next query", [](AttentionCall& call) { call.lse += call.backward ? 4 : 0; }}};
  const std::pair<const char*, AttentionArray AttentionCall::*> arrays[] = {
      {"q", &AttentionCall::q},   {"k", &AttentionCall::k},
      {"v", &AttentionCall::v},   {"context", &AttentionCall::context},
      {"dq", &AttentionCall::dq}, {"dk", &AttentionCall::dk},
      {"dv", &AttentionCall::dv}, {"dcontext", &AttentionCall::dcontext}};
  for (const auto& [name, array] : arrays) {
    all.push_back(
        {name, [array = array](AttentionCall& call) { std::swap((call.*array).row_step, (call.*array).sample_step); }});
    all.push_back(
        {name, [array = array](AttentionCall& call) { std::swap((call.*array).head_step, (call.*array).sample_step); }});
  }
  return all;
}

}  // namespace

TEST(LibraryAttention, EveryValueThatIsWrongIsSeen) {
  std::vector<KernelCase> cases;
  for (KernelCase& at : library_cases())
    if (at.what.shapes[0].dims[0] > 1) cases.push_back(std::move(at));  // several samples: steps that differ
  for (const Bend<AttentionCall>& bend : bends()) {
    int seen = 0;
    for (const KernelCase& tried : cases) {
      BentAttention runtime(bend);
      seen += run_case(tried, runtime).right(tried) ? 0 : 1;
    }
    EXPECT_GE(seen, 1) << bend.name;
  }
}

TEST(LibraryAttention, AForgottenWorkspaceIsSeen) {
  for (const KernelCase& tried : library_cases()) {
    Forgetful runtime;
    EXPECT_FALSE(run_case(tried, runtime).right(tried)) << tried.name;
  }
}

// Whole trainings with grouped queries, what repeats in graphs: the losses are those of our kernels, to the bits that bf16 has.
TEST(LibraryAttention, TrainsAsOurKernelsDo) {
  Strategy strategy = in_single({.batch = {.micro = 2}});
  strategy.precision = DType::BF16;
  const Plan plan = lowered(two_layers(twice_as_large(tiny_llama())), strategy);
  std::vector<double> losses[2];
  for (const bool library : {false, true}) {
    FakeRuntime runtime({.library_attention = library});
    ExecuteOptions options = fake_training(5);
    options.devices = ranks_on(runtime, {.graphs = true, .timed_from = 4});
    for (const StepReport& step : run(plan, options).steps) losses[library ? 1 : 0].push_back(step.loss);
    EXPECT_EQ(runtime.library_attentions() > 0, library);
    EXPECT_TRUE(runtime.conflicts().empty());
  }
  ASSERT_EQ(losses[0].size(), losses[1].size());
  for (std::size_t step = 0; step < losses[0].size(); ++step)
    EXPECT_NEAR(losses[1][step], losses[0][step], 0.02 * losses[0][step]);
}

// In a fixed order unless a run asks for any: forwards have none to choose.
TEST(LibraryAttention, SumsAreInAFixedOrderUnlessARunWantsAny) {
  Strategy strategy = in_single({.batch = {.micro = 2}, .attention = AttentionKernel::Flash});
  strategy.precision = DType::BF16;
  const Plan plan = lowered(two_layers(tiny_gpt()), strategy);
  for (const bool any : {false, true}) {
    FakeRuntime runtime({.library_attention = true});
    ExecuteOptions options = fake_training(3);
    options.devices = ranks_on(runtime, {.any_order = any});
    static_cast<void>(run(plan, options));
    EXPECT_EQ(runtime.attentions_in_any_order(), any ? runtime.library_attentions() / 2 : 0);
    EXPECT_GE(runtime.library_attentions(), 2 * 2 * 3);
  }
  for (const KernelCase& tried : library_cases()) {
    FakeRuntime runtime({.library_attention = true});
    EXPECT_TRUE(run_case(tried, runtime, By::LibrariesInAnyOrder).right(tried)) << tried.name;
    EXPECT_EQ(runtime.attentions_in_any_order(), tried.what.phase == Phase::InputGrad ? 1 : 0) << tried.name;
  }
}

namespace {

// Two layers and two micro-batches in bf16, with attention in one operator and dropout.
Strategy dropping() {
  Strategy strategy = in_single({.batch = {.micro = 2, .global = 4}, .attention = AttentionKernel::Flash, .dropout = 0.2});
  strategy.precision = DType::BF16;
  return strategy;
}

struct Trained {
  std::vector<double> losses = {};
  std::vector<FakeRuntime::DrawnMask> masks = {};
};
Trained trained(const Strategy& strategy, FakeRuntime& runtime, bool graphs = false) {
  ExecuteOptions options = fake_training(5);
  options.devices = ranks_on(runtime, {.graphs = graphs, .timed_from = 4});
  Trained all;
  for (const StepReport& step : run(lowered(two_layers(tiny_gpt()), strategy), options).steps) all.losses.push_back(step.loss);
  EXPECT_TRUE(runtime.conflicts().empty());
  all.masks = runtime.drawn_masks();
  return all;
}
Trained trained(const Strategy& strategy, bool graphs = false) {
  FakeRuntime runtime({.library_attention = true});
  return trained(strategy, runtime, graphs);
}

std::vector<std::pair<std::int64_t, std::int64_t>> numbers(const std::vector<FakeRuntime::DrawnMask>& masks, bool backward) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (const FakeRuntime::DrawnMask& mask : masks)
    if (mask.backward == backward) all.emplace_back(mask.seed, mask.offset);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

// Each layer, micro-batch and step has a mask of its own, which its backward has, too.
TEST(LibraryAttention, DropoutIsDrawnAnewAndAgainInTheBackward) {
  const auto masks = trained(dropping()).masks;
  const auto forward = numbers(masks, false);
  EXPECT_EQ(forward.size(), 2U * 2 * 5);
  EXPECT_EQ(std::set(forward.begin(), forward.end()).size(), forward.size());
  EXPECT_EQ(forward, numbers(masks, true));
}

// Heads of two ranks, and samples of two replicas.
TEST(LibraryAttention, RanksDrawMasksOfTheirOwn) {
  for (const bool tensor : {true, false}) {
    Strategy strategy = dropping();
    (tensor ? strategy.tp : strategy.dp) = 2;
    if (!tensor) strategy.batch.micro = 1;
    const auto forward = numbers(trained(strategy).masks, false);
    EXPECT_EQ(forward.size(), 2U * 2 * 2 * 5);
    EXPECT_EQ(std::set(forward.begin(), forward.end()).size(), forward.size());
  }
}

// What is computed again drops what was dropped before.
TEST(LibraryAttention, ARecomputationDrawsTheSameMask) {
  const Trained plain = trained(dropping());
  Strategy strategy = dropping();
  strategy.recompute.kind = RecomputeKind::Full;
  const Trained again = trained(strategy);
  auto twice = numbers(plain.masks, false);
  for (const auto& mask : numbers(plain.masks, false)) twice.push_back(mask);
  std::sort(twice.begin(), twice.end());
  EXPECT_EQ(numbers(again.masks, false), twice);
  EXPECT_EQ(numbers(again.masks, true), numbers(plain.masks, true));
}

TEST(LibraryAttention, StepsInGraphsDrawAnew) {
  const Trained plain = trained(dropping()), graphs = trained(dropping(), true);
  EXPECT_EQ(graphs.losses, plain.losses);
  EXPECT_EQ(numbers(graphs.masks, false), numbers(plain.masks, false));
}

// The losses of our own kernels, but for the places that are dropped; and those of a training whose backward has another mask differ.
TEST(LibraryAttention, TrainsWithDropoutAsOurKernelsDo) {
  FakeRuntime own;
  const std::vector<double> plain = trained(dropping()).losses, ours = trained(dropping(), own).losses;
  ASSERT_EQ(plain.size(), ours.size());
  for (std::size_t step = 0; step < plain.size(); ++step) EXPECT_NEAR(plain[step], ours[step], 0.1 * ours[step]);
  const Bend<AttentionCall> other = {"seed",
                                     [](AttentionCall& call) { call.random += call.backward ? sizeof(std::int64_t) : 0; }};
  BentAttention bent(other);
  const Trained wrong = trained(dropping(), bent);
  EXPECT_NE(wrong.losses, plain);
  EXPECT_NE(numbers(wrong.masks, false), numbers(wrong.masks, true));
}

}  // namespace foreshard::gpu::library_attention_test
