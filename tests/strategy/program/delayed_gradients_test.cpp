// Weight gradients behind the next communication: how much earlier a backward ends, what moves with them and what they stay before.
#include "strategy/program/delayed_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "strategy/program/segment_builder.h"

namespace foreshard::delayed_gradients_test {
namespace {

constexpr StreamId kCompute{0}, kWire{1}, kSums{2};

Use use(const Block& block) { return {.buffer = block.buffer, .slot = block.slot}; }

Instruction on(StreamId stream, const std::string& name, const std::vector<Block>& reads, const std::vector<Block>& writes) {
  Instruction run{.name = name, .stream = stream};
  if (stream == kWire)
    run.what = Collective{.kind = CollectiveKind::AllToAll};
  else if (stream == kSums)
    run.what = Collective{.kind = CollectiveKind::AllReduce};
  else
    run.what = Compute{.phase = name[0] == 'w' ? Phase::WeightGrad : Phase::InputGrad};
  for (const Block& block : reads) run.reads.push_back(use(block));
  for (const Block& block : writes) run.writes.push_back(use(block));
  return run;
}

Block block(int number) { return {.buffer = {number}}; }

// Per layer: an input gradient, the weight gradient of the same product, the backward of what precedes it, an all-to-all of the result.
//   dy(l) = block 4l   dx(l) = 4l + 1   weights' gradient = 4l + 2   sent(l) = 4l + 3   dy(l + 1) = what the all-to-all brings
Segment backward(int layers, bool sums) {
  SegmentBuilder out("backward", {});
  for (int l = 0; l < layers; ++l) {
    const Block dy = block(4 * l), dx = block(4 * l + 1), dw = block(4 * l + 2), sent = block(4 * l + 3);
    const auto add = [&](Instruction run) { run.layer = {l}, out.emit(std::move(run)); };
    add(on(kCompute, "input", {dy}, {dx}));
    add(on(kCompute, "weight", {dy}, {dw}));
    out.release(dy);
    if (sums) add(on(kSums, "sum", {dw}, {dw}));
    add(on(kCompute, "rest", {dx}, {sent}));
    add(on(kWire, "send", {sent}, {block(4 * l + 4)}));
  }
  return out.take();
}

std::vector<LayerId> layers_to(int count) {
  std::vector<LayerId> all;
  for (int l = 0; l < count; ++l) all.push_back({l});
  return all;
}

std::string names(const Segment& segment) {
  std::string text;
  for (const Instruction& run : segment.instructions) text += run.name + std::to_string(run.layer.value) + " ";
  return text;
}

struct Durations {
  int input = 0, weight = 0, rest = 0, send = 0;
};

// Every stream runs its instructions in order, each after those of `after`.
int time_of(const Segment& segment, const Durations& of) {
  std::vector<int> ends;
  int busy[3] = {};
  for (const Instruction& run : segment.instructions) {
    int& stream = busy[run.stream.value];
    for (const std::int32_t earlier : run.after) stream = std::max(stream, ends[static_cast<std::size_t>(earlier)]);
    stream += run.name == "input"    ? of.input
              : run.name == "weight" ? of.weight
              : run.name == "rest"   ? of.rest
              : run.name == "send"   ? of.send
                                     : 0;
    ends.push_back(stream);
  }
  return *std::ranges::max_element(ends);
}

// L (I + W + R + C) becomes L (I + R + max(W, C)).
TEST(DelayedGradients, HideTheCommunicationOfTheInputGradient) {
  for (const int layers : {1, 2, 5})
    for (const Durations& of : {Durations{2, 3, 1, 3}, {2, 5, 2, 3}, {2, 3, 1, 7}, {1, 0, 1, 4}}) {
      const Segment whole = backward(layers, false);
      const Segment delayed = delay_weight_gradients(whole, kWire, layers_to(layers));
      EXPECT_EQ(time_of(whole, of), layers * (of.input + of.weight + of.rest + of.send));
      EXPECT_EQ(time_of(delayed, of), layers * (of.input + of.rest + std::max(of.weight, of.send)));
    }
}

TEST(DelayedGradients, SumsOfGradientsFollowThem) {
  const Segment delayed = delay_weight_gradients(backward(2, true), kWire, layers_to(2));
  EXPECT_EQ(names(delayed), "input0 rest0 send0 weight0 sum0 input1 rest1 send1 weight1 sum1 ");
  EXPECT_EQ(delayed.instructions[2].after, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(delayed.instructions[4].after, (std::vector<std::int32_t>{3}));
  EXPECT_EQ(delayed.instructions[5].after, (std::vector<std::int32_t>{2}));
}

// A block lives until the last instruction that reads it, wherever that is now.
TEST(DelayedGradients, WhatTheyReadIsReleasedBehindThem) {
  SegmentBuilder out("backward", {});
  out.emit(on(kCompute, "weight", {block(0)}, {block(2)}));
  out.emit(on(kCompute, "input", {block(0)}, {block(1)}));
  out.release(block(0));
  out.emit(on(kWire, "send", {block(1)}, {block(3)}));
  Segment whole = out.take();
  for (Instruction& run : whole.instructions) run.layer = {0};
  const Segment delayed = delay_weight_gradients(whole, kWire, layers_to(1));
  ASSERT_EQ(names(delayed), "input0 send0 weight0 ");
  EXPECT_TRUE(delayed.instructions[0].releases.empty());
  EXPECT_EQ(delayed.instructions[2].releases, std::vector<Block>{block(0)});
}

// A gradient that the next instruction adds to, and one of a layer that is not asked for.
TEST(DelayedGradients, StayBeforeWhatChangesTheirInput) {
  SegmentBuilder out("backward", {});
  out.emit(on(kCompute, "weight", {block(0)}, {block(2)}));
  out.emit(on(kCompute, "weight", {block(1)}, {block(4)}));
  out.emit(on(kCompute, "input", {block(5)}, {block(0)}));
  out.emit(on(kWire, "send", {block(0)}, {block(3)}));
  Segment whole = out.take();
  for (Instruction& run : whole.instructions) run.layer = {0};
  EXPECT_EQ(names(delay_weight_gradients(whole, kWire, {})), names(whole));
  const Segment delayed = delay_weight_gradients(whole, kWire, layers_to(1));
  ASSERT_EQ(names(delayed), "weight0 input0 send0 weight0 ");
  EXPECT_EQ(delayed.instructions[0].writes, whole.instructions[0].writes);
  EXPECT_EQ(delayed.instructions[3].writes, whole.instructions[1].writes);
}

}  // namespace
}  // namespace foreshard::delayed_gradients_test
