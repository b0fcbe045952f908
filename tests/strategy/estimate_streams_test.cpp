// The play of ranks whose streams wait for each other: beside the schedule's recurrence, and by hand.
#include "strategy/estimate/estimate_streams.h"

#include <gtest/gtest.h>

#include <random>

#include "strategy/schedule/schedule.h"

namespace foreshard {

namespace {

struct Case {
  Schedule schedule = Schedule::OneFOneB;
  PipelineTimes times = {};
  StreamTimes streams = {};
};

Case random_case(std::mt19937& random, int rounds) {
  std::uniform_real_distribution<double> seconds(0.5, 2);
  Case c;
  c.times.ranks = std::uniform_int_distribution<int>(2, 5)(random);
  const int schedule = std::uniform_int_distribution<int>(0, 2)(random);
  c.schedule = schedule == 0 ? Schedule::GPipe : schedule == 1 ? Schedule::OneFOneB : Schedule::Interleaved;
  if (schedule == 2) c.times.chunks = std::uniform_int_distribution<int>(2, 4)(random);
  c.times.microbatches = c.times.ranks * rounds;
  for (ChunkStreams& of : c.streams.of)
    of.forward = seconds(random), of.backward = seconds(random), of.redone = 1, of.redo = 0.3;
  for (double& fewer : c.streams.fewer) fewer = std::uniform_int_distribution<int>(0, 1)(random);
  return c;
}

double recurrence(const Case& c) {
  const int p = c.times.ranks, v = c.times.chunks;
  ScheduleTimes<double> times{.in_turn = true};
  for (int stage = 0; stage < p * v; ++stage) {
    const ChunkStreams& of = c.streams.of[stage == 0 ? 0 : stage + 1 == p * v ? 2 : 1];
    times.forward.push_back(of.forward);
    times.input_grad.push_back(of.backward - of.redo * c.streams.fewer[static_cast<std::size_t>(stage % p)]);
    times.weight_grad.push_back(0), times.hops.push_back(0);
  }
  const auto lists = schedule_entry(c.schedule).lists({.p = p, .m = static_cast<int>(c.times.microbatches), .v = v});
  return evaluate(lists, times)->end[0].back();
}

// Two ranks of one layer each, forward 1, backward 2.
Case two_ranks(int microbatches) {
  Case c;
  c.times.ranks = 2, c.times.microbatches = microbatches;
  for (ChunkStreams& of : c.streams.of) of = {.forward = 1, .backward = 2, .head = 0.5};
  return c;
}

}  // namespace

// Up to three rounds of the ranks every action is played, whichever ranks redo less: 300 random pipelines, seed 5.
TEST(PlayStreams, WithoutTalkItIsTheRecurrence) {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const Case c = random_case(random, 1 + i % 3);
    const auto played = play_streams(c.schedule, c.times, c.streams, true);
    ASSERT_TRUE(played.has_value());
    EXPECT_NEAR(*played, recurrence(c), 1e-9) << i;
  }
}

// A reduction takes 3. A chunk of one layer has one place, so a weight gradient, 0.5 into a backward, waits for the last reduction:
//   rank 1   F 1-2  B 2-4           F 4-5  B 5-5.5, 7-8.5       F 8.5-9.5  B 9.5-10, 11.5-13
//            reductions 4-7, 8.5-11.5
//   rank 0   F 0-1  F 1-2  B 4-6    F 6-7  B 8.5-9, 9-10.5                 B 13-13.5, 13.5-15
//            reductions 6-9, 10.5-13.5
// A layer more makes the second place count: rank 1 ends at 10 as without reductions when they take no longer than 0.1.
TEST(PlayStreams, AWeightGradientWaitsForItsPlace) {
  Case c = two_ranks(3);
  c.streams.reduce_places = 2;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 12, 1e-9);
  for (ChunkStreams& of : c.streams.of) of.scatter = 3;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 15, 1e-9);
  for (ChunkStreams& of : c.streams.of) of.scatter = 0.1, of.layers = 2;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 12, 1e-9);
}

// Gathers take 1: rank 0's first forward waits for one, rank 1 has its own by then; the weights of the backward are gathered when the
// forward has given their place back: 0-1, F 1-2, rank 1 F 2-3, gather 3-4, B 4-6, rank 0 B 6-8.
TEST(PlayStreams, AForwardWaitsForItsGather) {
  Case c = two_ranks(1);
  for (ChunkStreams& of : c.streams.of) of.gather = 1, of.scatter = 1;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 8, 1e-9);
}

// The last stage ends with a head: half a second of its backward comes first, and 3 of reductions behind that. With one place its layer's
// weight gradient waits for these, with two it does not; nor where most of them are of a tied embedding, which has a place of its own.
//   rank 1   F 1-2  head 2-2.5  B 2.5-3, 5.5-6.5    or B 2.5-4           rank 0   B 6.5-8.5 or 4-6
TEST(PlayStreams, AHeadIsOneMoreUnit) {
  Case c = two_ranks(1);
  for (ChunkStreams& of : c.streams.of) of.scatter = 0.1;
  c.streams.of[2].end = 1, c.streams.of[2].backward_end = 0.5, c.streams.of[2].end_scatter = 3;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 8.5, 1e-9);
  c.streams.reduce_places = 2;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 6, 1e-9);
  c.streams.reduce_places = 1, c.streams.of[2].end_scatter = 0.25, c.streams.of[2].tied_scatter = 2.75;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 6, 1e-9);
}

// The first stage begins with an embedding, a quarter of a second of its forward, gathered in 2, and ends with half a second of its
// backward, whose gradient waits for the layer's reduction. It is not gathered for that.
//   rank 0   gathers 0-2, 2-3  embedding 2-2.25  F 3-3.75     B 7.75-9.25  reduction 9.25-10.25  embedding 10.25-10.75
//   rank 1   F 3.75-4.75  gather 4.75-5.75  B 5.75-7.75
// With one place the layer is gathered a quarter of a second later.
TEST(PlayStreams, AnEmbeddingIsOneMoreUnit) {
  Case c = two_ranks(1);
  for (ChunkStreams& of : c.streams.of) of.gather = 1, of.scatter = 1;
  ChunkStreams& first = c.streams.of[0];
  first.end = -1, first.end_gather = 2, first.end_scatter = 1, first.forward_end = 0.25, first.backward_end = 0.5;
  c.streams.gather_places = 2;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 10.75, 1e-9);
  c.streams.gather_places = 1;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 11, 1e-9);
}

// Two layers take turns at two places: the next micro-batch's first layer is gathered, in 0.6, when this one's first layer is done.
//   rank 0   gathers 0-0.6, 0.6-1.2  F 0.6-1.1, 1.2-1.7     gathers 1.2-1.8, 1.8-2.4  F 1.8-2.3, 2.4-2.9
//   rank 1   F 1.7-2.7     gathers 2.2-2.8, 2.8-3.4  F 2.9-3.9     gathers 3.9-4.5, 4.5-5.1  B 4.5-6.5, the last reduction until 6.55
//            gathers 6.55-7.15, 7.15-7.75  B 7.15-9.15
//   rank 0   B 6.5-8.5, the last reduction until 8.55     gathers 8.55-9.15, 9.15-9.75  B 9.15-11.15
TEST(PlayStreams, LayersAreGatheredWhenTheirPlaceIsFree) {
  Case c = two_ranks(2);
  c.schedule = Schedule::GPipe;
  for (ChunkStreams& of : c.streams.of) of.layers = 2, of.gather = 0.6, of.scatter = 0.05;
  c.streams.gather_places = c.streams.reduce_places = 2;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 11.15, 1e-9);
}

// A transfer of 1 goes at half speed beside a reduction of 2; or half of it does, where the other half is latency.
//   rank 0   F 0-1, B 6-8    rank 1   F 2-3  B 3-5  transfer 5-6
//   beside its reduction: transfer 5-7, B 7-9; half of it: 5-6.5, B 6.5-8.5
TEST(PlayStreams, TransfersAndTalkShareALink) {
  Case c = two_ranks(1);
  c.times.hop = 1;
  for (ChunkStreams& of : c.streams.of) of.scatter = 2;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 8, 1e-9);
  c.streams.hop_on_link = 1, c.streams.hop_speed = 0.5, c.streams.talk_beside_hop = 0.25;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 9, 1e-9);
  c.streams.hop_on_link = 0.5;
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 8.5, 1e-9);
}

// While 1 second of reductions is under way computes run at half speed, they at a quarter: 2 seconds, and then 1 of the forward's 2.
//   rank 1   F 1-2  B 2-4  F 4-6, beside a reduction 4-8, at half speed
TEST(PlayStreams, WhatIsSaidSlowsComputes) {
  Case c = two_ranks(2);
  for (ChunkStreams& of : c.streams.of) of.scatter = 1, of.compute_speed = {0.5, 0.5}, of.talk_speed = {0.25, 0.25};
  // Rank 1: the forward takes 2, the head of the backward 1 (6-7), then 0.25 of a reduction is left and nothing computes beside it: 7.25;
  // 1.5 of backward: 8.75. Rank 0: B 4-6, reduction from 6, alone until 7; B of the second at 8.75-10.75.
  EXPECT_NEAR(*play_streams(c.schedule, c.times, c.streams, true), 10.75, 1e-9);
}

// A play that would take too long is left to the closed form.
TEST(PlayStreams, LongOnesAreNotPlayed) {
  Case c = two_ranks(64);
  c.schedule = Schedule::Interleaved, c.times.chunks = 128;
  EXPECT_FALSE(play_streams(c.schedule, c.times, c.streams, true).has_value());
}

}  // namespace foreshard
