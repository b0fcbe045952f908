// Replays of hand-made ranks against live bytes counted on paper. All sizes are multiples of 20 MiB, so that nothing is rounded.
#include "strategy/frameworks/step_replay.h"

#include <gtest/gtest.h>

namespace foreshard::step_replay_test {
namespace {

constexpr double kUnit = 20 << 20;  // elements or bytes

// An embedding of 2 units of elements, two blocks of 4, each keeping 3 units of bytes, and a head of 2 with 5 units of logits.
ReplayedRank small_rank() {
  ReplayedLayer embedding = {.tensors = {2 * kUnit}, .output = kUnit};
  ReplayedLayer block = {.tensors = {kUnit, 3 * kUnit}, .in_block = true, .kept = {kUnit, 2 * kUnit}, .output = kUnit};
  ReplayedLayer head = {.tensors = {2 * kUnit}, .logits = 5 * kUnit};
  return {.chunks = {{embedding, block, block, head}},
          .stages = {0},
          .list = {{.work = Work::F, .stage = 0, .microbatch = 0}, {.work = Work::B, .stage = 0, .microbatch = 0}}};
}

double units(Bytes bytes) { return static_cast<double>(bytes.value) / kUnit; }

// 12 units of elements in all. 4 + 8 bytes of parameters and moments over 4 ranks: 36. At the peak, in the backward of the loss: these, 2
// bytes of the root's 4 (8) and of the last block's 4 (8), what the last gather left on its stream (8 and a shard of 2), what both blocks keep
// (6), three fp32 tensors of logits (60). Gradients of the step before are freed by then.
TEST(StepReplay, FullyShardPeaksInTheBackwardOfTheLoss) {
  ReplayedRank rank = small_rank();
  rank.shards = 4, rank.zero = 3, rank.parameter = 4, rank.gradient = 4;
  const ReplayedMemory memory = replay_steps(rank, fully_shard_rules, {});
  EXPECT_DOUBLE_EQ(units(memory.peak), 36 + 8 + 8 + 10 + 6 + 60);
  EXPECT_DOUBLE_EQ(units(memory.between), 36 + 12);  // and the sharded fp32 gradients, which only zero_grad frees
  EXPECT_GT(memory.reserved, memory.peak);           // what the streams of the gather and the reduction had at other times
  rank.splits_vocabulary = true;
  EXPECT_DOUBLE_EQ(units(replay_steps(rank, fully_shard_rules, {}).peak), 36 + 8 + 8 + 10 + 6 + 80);
}

// ZeRO 1 over 4 ranks: 24 parameters, 48 fp32 gradients, 12 master copies, 24 moments. The gather of the update needs four flat copies, an
// input and an output: 24 + 6 + 24. ZeRO 0 has all states, buckets of gradients as large as the parameters, and its peak at the loss: what
// is kept (6) and two fp32 tensors of logits (40).
TEST(StepReplay, NanotronGathersItsParametersInFlatCopies) {
  ReplayedRank rank = small_rank();
  rank.shards = 4, rank.replicas = 4, rank.zero = 1;
  const ReplayedMemory memory = replay_steps(rank, nanotron_rules, {});
  EXPECT_DOUBLE_EQ(units(memory.between), 24 + 48 + 12 + 24);
  EXPECT_DOUBLE_EQ(units(memory.peak), 108 + 54);
  rank.shards = 1, rank.zero = 0;
  const ReplayedMemory whole = replay_steps(rank, nanotron_rules, {});
  EXPECT_DOUBLE_EQ(units(whole.between), 24 + 48 + 48 + 96 + 24);
  EXPECT_DOUBLE_EQ(units(whole.peak), 240 + 46);
}

// ZeRO 1 over 4 ranks: 24 parameters, 12 master copies, 24 moments between steps. The peak is at the loss: what is kept (6), logits in fp32 and
// three copies of them for the metrics (80). Without a loss, at the end of the backward: 24 of gradients and 24 of the bucket with all of
// them. The update would need 60 + 6 + 12 + 24.
TEST(StepReplay, InternEvoFlattensGradientsInBuckets) {
  ReplayedRank rank = small_rank();
  rank.shards = 4, rank.replicas = 4, rank.zero = 1;
  const ReplayedMemory memory = replay_steps(rank, internevo_rules, {});
  EXPECT_DOUBLE_EQ(units(memory.between), 60);
  EXPECT_DOUBLE_EQ(units(memory.peak), 60 + 6 + 80);
  rank.chunks.front().back().logits = 0;
  EXPECT_DOUBLE_EQ(units(replay_steps(rank, internevo_rules, {}).peak), 60 + 24 + 24);
  // Sharded: 2 + 4 + 8 bytes over 4 ranks. In the update also 2 + 4 of gradients and 8 of temporaries, 84 in all; more at the loss, with the
  // gathered head (4).
  rank = small_rank();
  rank.shards = 4, rank.replicas = 4, rank.zero = 3;
  const ReplayedMemory sharded = replay_steps(rank, internevo_rules, {});
  EXPECT_DOUBLE_EQ(units(sharded.between), 42);
  EXPECT_DOUBLE_EQ(units(sharded.peak), 42 + 6 + 80 + 4);
  EXPECT_GE(units(sharded.reserved), 42 + 6 + 80 + 8 + 6);  // gathered blocks of 8 and gradients of 6 have memory of their own
}

// Buckets of 512 Mi elements, 25.6 units: two tensors of 15 are reduced one by one, and the second bucket is flattened beside the first. 60
// parameters and 30 / 1000 of states and of the flat gradients; the two gradients (60), their flat buckets (60).
TEST(StepReplay, InternEvoReducesFullBuckets) {
  ReplayedRank rank = small_rank();
  ReplayedLayer embedding = {.tensors = {15 * kUnit}}, head = embedding;
  rank.chunks = {{embedding, head}};
  rank.shards = 1000, rank.replicas = 1000, rank.zero = 1;
  EXPECT_NEAR(units(replay_steps(rank, internevo_rules, {}).peak), 60 + 60 + 60, 0.5);
}

// Two micro-batches in flight keep twice as much. A rank that recomputes its blocks has what their forward makes only in their backward.
TEST(StepReplay, KeptTensorsLiveFromForwardToBackward) {
  ReplayedRank rank = small_rank();
  rank.replicas = 4;
  const double once = units(replay_steps(rank, nanotron_rules, {}).peak);
  rank.list = {{.work = Work::F, .stage = 0, .microbatch = 0},
               {.work = Work::F, .stage = 0, .microbatch = 1},
               {.work = Work::B, .stage = 0, .microbatch = 0},
               {.work = Work::B, .stage = 0, .microbatch = 1}};
  EXPECT_DOUBLE_EQ(units(replay_steps(rank, nanotron_rules, {}).peak), once + 6 + 20);  // the logits of the first wait, too
  rank.list = {{.work = Work::F, .stage = 0, .microbatch = 0}, {.work = Work::B, .stage = 0, .microbatch = 0}};
  for (ReplayedLayer& layer : rank.chunks.front())
    if (layer.in_block) layer.recomputed = true, layer.made = {50 * kUnit};
  // In the backward of the first block: .grad of the head and the second block (12), what it keeps (3), gradients of its result and input.
  EXPECT_DOUBLE_EQ(units(replay_steps(rank, nanotron_rules, {}).peak), 240 + 12 + 3 + 50 + 2);
}

// With room for the peak but not for what the streams hold, segments go back to the device, and the replay says so when even that is too little.
TEST(StepReplay, TheLimitReturnsFreeSegments) {
  ReplayedRank rank = small_rank();
  rank.shards = 4, rank.zero = 3, rank.parameter = 4, rank.gradient = 4;
  const ReplayedMemory free = replay_steps(rank, fully_shard_rules, {});
  const ReplayedMemory tight = replay_steps(rank, fully_shard_rules, free.reserved - Bytes{1});
  EXPECT_LT(tight.reserved, free.reserved);
  EXPECT_FALSE(tight.overflowed);
  EXPECT_TRUE(replay_steps(rank, fully_shard_rules, free.peak - Bytes{1}).overflowed);
}

}  // namespace
}  // namespace foreshard::step_replay_test
