// In which messages shards travel, and what is copied for them. Those of tensors and owners: plan_costs_test.cpp.
#include "strategy/cost/shard_messages.h"

#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/plan_costs.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::shard_messages_test {
namespace {

struct Sent {
  const Instruction* run = nullptr;
  Cost cost = {};
};
// The first collective of that kind whose bytes are parameters or gradients.
Sent sent(Lowered& job, const FrameworkPreset& preset, CollectiveKind kind, const char* name) {
  cost_plan(job.plan, load_cluster("dgx-a100"), preset);
  for (std::size_t s = 0; s < job.plan.segments.size(); ++s)
    for (std::size_t i = 0; i < job.plan.segments[s].instructions.size(); ++i) {
      const Instruction& run = job.plan.segments[s].instructions[i];
      const auto* what = std::get_if<Collective>(&run.what);
      if (what && what->kind == kind && run.name == name) return {&run, job.plan.costs[0].by_segment[s][i]};
    }
  ADD_FAILURE() << name;
  return {};
}
Lowered job_of(int zero) {
  return lowered("llama-2-7b", "dgx-a100", {.dp = 8, .batch = {.micro = 1, .global = 8}, .zero = {.stage = zero}});
}

// nanotron sums whole gradients, twice what a reduce-scatter takes, and gathers: one message each for all parameters, whose latency the units
// share. Behind the gather the host issues a copy for each rank's part of each tensor, however long the gather takes.
TEST(ShardMessages, SlicesAreCopiedByTheHost) {
  Lowered job = job_of(1);
  const FrameworkPreset slices = {.shards = {.communication = ShardCommunication::Slices}, .host = {.per_kernel = {1e-3}}};
  const auto busy = [&](const FrameworkPreset& preset, CollectiveKind kind, const char* name) {
    return to_seconds(sent(job, preset, kind, name).cost.busy).value;
  };
  const Sent plain = sent(job, {}, CollectiveKind::ReduceScatter, "reduce-scatter gradients");
  const Sent sums = sent(job, slices, CollectiveKind::ReduceScatter, "reduce-scatter gradients");
  EXPECT_NEAR(sums.cost.wire_factor, 2 * plain.cost.wire_factor, 0.2);  // protocols differ with the size
  const Sent gather = sent(job, {}, CollectiveKind::AllGather, "all-gather parameters");
  const auto own = [&](const Instruction& run) { return job.plan.roles[0].buffers[run.reads[0].buffer.index()].bytes.value; };
  double all = 0;
  for (const Buffer& buffer : job.plan.roles[0].buffers)
    if (buffer.category == Category::Parameters) all += static_cast<double>(buffer.bytes.value);
  const double share = static_cast<double>(own(*gather.run)) / all;
  EXPECT_LT(share, 0.5);
  const auto& what = std::get<Collective>(gather.run->what);
  EXPECT_NEAR(shard_messages(job.plan, job.plan.roles[0], slices, what, *gather.run, 8).count, share, 1e-3);
  const auto copies = 8.0 * static_cast<double>(job.plan.roles[0].buffers[gather.run->reads[0].buffer.index()].holds.size());
  // A part is copied without modules and autograd, which an operator's time includes.
  FrameworkPreset parts = slices;
  parts.host.per_part = Seconds{1e-5};
  const double slow = busy(slices, CollectiveKind::AllGather, "all-gather parameters"),
               quick = busy(parts, CollectiveKind::AllGather, "all-gather parameters");
  EXPECT_NEAR(slow - quick, copies * (1e-3 - 1e-5), 1e-8);
  EXPECT_LT(quick - copies * 1e-5, to_seconds(gather.cost.busy).value);
}

// Aleph Alpha sums whole gradients of 16 bits in fp32: four times the time and bytes of a reduce-scatter, and 24 bytes of copies for each of
// them. Gradients of fp32 need no cast. What is gathered is copied once.
TEST(ShardMessages, WideSumsAreCastAndCopied) {
  Lowered job = job_of(1);
  const FrameworkPreset wide = {.shards = {.communication = ShardCommunication::WideSums}};
  const Sent plain = sent(job, {}, CollectiveKind::ReduceScatter, "reduce-scatter gradients");
  const Sent sums = sent(job, wide, CollectiveKind::ReduceScatter, "reduce-scatter gradients");
  EXPECT_DOUBLE_EQ(sums.cost.wire_factor, 4 * plain.cost.wire_factor);
  Collective what = std::get<Collective>(sums.run->what);
  ASSERT_EQ(size_of(what.dtype).value, 2);
  const auto messages = [&](const Collective& of) {
    return shard_messages(job.plan, job.plan.roles[0], wide, of, *sums.run, 8);
  };
  EXPECT_EQ(messages(what).copies.value, 12 * what.bytes.value);
  const double copied = to_seconds(sums.cost.busy).value - 4 * to_seconds(plain.cost.busy).value;
  const double streamed = 12.0 * static_cast<double>(what.bytes.value) / 2039e9;
  EXPECT_GT(copied, 0.9 * streamed);
  EXPECT_LT(copied, 1.3 * streamed);
  what.dtype = DType::F32;
  EXPECT_DOUBLE_EQ(messages(what).volume, 2);
  EXPECT_EQ(messages(what).copies.value, 6 * what.bytes.value);
  const Sent gather = sent(job, wide, CollectiveKind::AllGather, "all-gather parameters");
  const auto& gathered = std::get<Collective>(gather.run->what);
  const ShardMessages copy = shard_messages(job.plan, job.plan.roles[0], wide, gathered, *gather.run, 8);
  EXPECT_EQ(copy.copies.value, 2 * gathered.bytes.value);
  EXPECT_EQ(copy.volume, 1);
}

// ZeRO 1 over eight ranks: nanotron's clipping measures and scales the gradients of all of them, others' those that a rank updates.
TEST(ShardMessages, EveryRankClipsAllGradients) {
  const FrameworkPreset all = {.shards = {.clips_whole = true}};
  Strategy strategy{.dp = 8, .batch = {.micro = 1, .global = 8}, .zero = {.stage = 1}};
  strategy.optimizer.clip_norm = 1;
  Lowered job = lowered("llama-2-7b", "dgx-a100", strategy);
  const auto time = [&](const FrameworkPreset& preset, const char* name) {
    cost_plan(job.plan, load_cluster("dgx-a100"), preset);
    double busy = 0;
    for (std::size_t s = 0; s < job.plan.segments.size(); ++s)
      for (std::size_t i = 0; i < job.plan.segments[s].instructions.size(); ++i)
        if (job.plan.segments[s].instructions[i].name == name)
          busy += to_seconds(job.plan.costs[0].by_segment[s][i].busy).value;
    EXPECT_GT(busy, 0) << name;
    return busy;
  };
  for (const char* name : {"gradient norm", "clip"}) {
    const double longer = time(all, name) / time({}, name);  // but for the launches
    EXPECT_GT(longer, 6) << name;
    EXPECT_LT(longer, 8.01) << name;
  }
  EXPECT_EQ(clipped_slices(job.plan, all, {.op = ops::Adam{}, .slice = {0}}), 1);
}

// A bucket is full after the tensor that reaches its size: of a layer's large matrices each fills one of any smaller size.
TEST(ShardMessages, WholeGradientsGoInBuckets) {
  Lowered job = job_of(0);
  const auto matrices = [&](const Instruction& run) {
    return std::ranges::count_if(job.plan.roles[0].buffers[run.reads[0].buffer.index()].holds,
                                 [&](const Shard& shard) { return job.plan.tensors[shard.tensor.index()].shape.size() > 1; });
  };
  const Instruction* layers = nullptr;
  for (const Segment& segment : job.plan.segments)
    for (const Instruction& run : segment.instructions)
      if (run.name == "all-reduce gradients" && matrices(run) > 1) layers = &run;
  ASSERT_NE(layers, nullptr);
  const auto& what = std::get<Collective>(layers->what);
  const std::int64_t elements = what.bytes.value / size_of(what.dtype).value;
  const auto count = [&](std::int64_t bucket) {
    return shard_messages(job.plan, job.plan.roles[0], {.shards = {.bucket = bucket}}, what, *layers, 8).count;
  };
  EXPECT_DOUBLE_EQ(count(0), 1);
  EXPECT_DOUBLE_EQ(count(2 * elements), 1);
  EXPECT_GE(count(1 << 20), matrices(*layers));  // a matrix is never cut
  EXPECT_LT(count(1 << 20), matrices(*layers) + 1.0);
  EXPECT_LE(count(elements / 4), 4);
  EXPECT_GT(count(elements / 4), 1);
}

// Gathered in 16 bits and copied out: 4 bytes a weight. Gradients are read in 16 bits and written in the format of the sum.
TEST(ShardMessages, CopiesOfShards) {
  const FrameworkPreset copies = {.shards = {.gathers_narrow = true, .copies = true}};
  const auto bytes = [&](CollectiveKind kind, DType type) {
    return shard_copy_bytes(copies, {.kind = kind, .bytes = size_of(type) * 1000, .dtype = type}).value;
  };
  EXPECT_EQ(bytes(CollectiveKind::AllGather, DType::F32), 4000);
  EXPECT_EQ(bytes(CollectiveKind::AllGather, DType::BF16), 4000);
  EXPECT_EQ(bytes(CollectiveKind::ReduceScatter, DType::F32), 6000);
  EXPECT_EQ(bytes(CollectiveKind::ReduceScatter, DType::BF16), 4000);
  EXPECT_EQ(bytes(CollectiveKind::AllReduce, DType::F32), 0);
  EXPECT_EQ(shard_copy_bytes({}, {.kind = CollectiveKind::AllGather, .bytes = {4000}}).value, 0);
  Lowered job = job_of(3);  // they lengthen the computes, not the gathers
  const auto computes = [&](const FrameworkPreset& preset) {
    cost_plan(job.plan, load_cluster("dgx-a100"), preset);
    double seconds = 0;
    for (std::size_t s = 0; s < job.plan.segments.size(); ++s)
      for (std::size_t i = 0; i < job.plan.segments[s].instructions.size(); ++i)
        if (std::holds_alternative<Compute>(job.plan.segments[s].instructions[i].what))
          seconds += to_seconds(job.plan.costs[0].by_segment[s][i].busy).value;
    return seconds;
  };
  EXPECT_GT(computes(copies), 1.005 * computes({}));
}

}  // namespace
}  // namespace foreshard::shard_messages_test
