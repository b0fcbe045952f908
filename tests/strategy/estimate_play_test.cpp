// The play of a few micro-batches beside the schedule's own recurrence.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "strategy/estimate/estimate_talk.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

namespace {

struct Case {
  Schedule schedule = Schedule::OneFOneB;
  PipelineTimes times = {};
  Ways ways = {};
  double bytes = 1;
  std::array<double, Ways::kMost> faster = {};  // backwards of a rank
};

// Stages that differ, transfers as long as a stage or longer; what one rank sends another takes turns.
Case random_case(std::mt19937& random, int rounds) {
  std::uniform_real_distribution<double> seconds(0.5, 2);
  Case c;
  c.times.ranks = std::uniform_int_distribution<int>(2, 5)(random);
  const int schedule = std::uniform_int_distribution<int>(0, 2)(random);
  c.schedule = schedule == 0 ? Schedule::GPipe : schedule == 1 ? Schedule::OneFOneB : Schedule::Interleaved;
  if (schedule == 2) c.times.chunks = std::uniform_int_distribution<int>(2, 4)(random);
  c.times.microbatches = c.times.ranks * rounds;
  if (schedule != 2) c.times.microbatches += std::uniform_int_distribution<int>(1 - c.times.ranks, 0)(random);
  for (std::size_t kind = 0; kind < 4; ++kind)
    c.times.forward[kind] = seconds(random), c.times.backward[kind] = seconds(random);
  c.ways.ranks = c.times.ranks;
  for (int rank = 0; rank < c.times.ranks; ++rank) {
    const int next = (rank + 1) % c.times.ranks;
    const auto lane = [&](int from, int to) { return from * c.times.ranks + to; };
    c.ways.output[static_cast<std::size_t>(rank)] = {.per_byte = seconds(random), .lane = lane(rank, next)};
    c.ways.gradient[static_cast<std::size_t>(next)] = {.lane = lane(next, rank)};
  }
  for (int rank = 0; rank < c.times.ranks; ++rank) {  // the recurrence has one time for a border, whichever way
    const auto next = static_cast<std::size_t>((rank + 1) % c.times.ranks);
    c.ways.gradient[next].per_byte = c.ways.output[static_cast<std::size_t>(rank)].per_byte;
  }
  return c;
}

double recurrence(const Case& c) {
  const int p = c.times.ranks, v = c.times.chunks;
  ScheduleTimes<double> times{.in_turn = true};
  for (int stage = 0; stage < p * v; ++stage) {
    const std::size_t kind = stage == 0 ? 0 : stage + 1 == p * v ? 2 : 1;
    times.forward.push_back(c.times.forward[kind]);
    times.input_grad.push_back(c.times.backward[kind] - c.faster[static_cast<std::size_t>(stage % p)]),
        times.weight_grad.push_back(0);
    times.hops.push_back(c.bytes * c.ways.output[static_cast<std::size_t>(stage % p)].per_byte);
  }
  const auto lists = schedule_entry(c.schedule).lists({.p = p, .m = static_cast<int>(c.times.microbatches), .v = v});
  return evaluate(lists, times)->end[0].back();
}

}  // namespace

// Up to three rounds of the ranks every action is played, whichever backwards are faster: 300 random pipelines, seed 5.
TEST(PlayPipeline, EqualsTheRecurrence) {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    Case c = random_case(random, 1 + i % 3);
    for (double& rank : c.faster) rank = std::uniform_real_distribution<double>(0, 0.5)(random);
    const auto played = play_pipeline(c.schedule, c.times, c.ways, c.bytes, true, c.faster);
    ASSERT_TRUE(played.has_value());
    EXPECT_NEAR(*played, recurrence(c), 1e-9) << i;
  }
}

// Of more micro-batches the middle is as long as the second round says, which with transfers up to four times as long as stages
// may not be settled yet; seed 6.
TEST(PlayPipeline, GoesOnAsItWasInTheMiddle) {
  std::mt19937 random(6);
  double sum = 0;
  for (int i = 0; i < 300; ++i) {
    const Case c = random_case(random, 12);
    const double error = std::abs(*play_pipeline(c.schedule, c.times, c.ways, c.bytes, true) / recurrence(c) - 1);
    EXPECT_LT(error, 0.06) << i;
    sum += error;
  }
  EXPECT_LT(sum / 300, 0.006);
}

// Two stages of one second each way, a transfer of one second, four micro-batches, the sender waits:
//   r0  F0 > F1 >  .  .  B0 F2 > B1 F3 > B2 . . B3     F of rank 0 ends at 1, its transfer at 2, ...
//   r1     . F0 B0 > F1 B1 > ...
// Rank 1: F0 2..3, B0 3..4, sends until 5, F1 5..6, B1 6..7, sends until 8: three seconds for each; B3 12..13, sent at 14. Rank 0 ends
// at 15.
TEST(PlayPipeline, ARankThatWaitsForItsTransfersStandsStill) {
  Case c;
  c.times = {.ranks = 2, .microbatches = 4, .forward = {1, 1, 1, 1}, .backward = {1, 1, 1, 1}};
  c.ways.ranks = 2;
  for (std::size_t rank : {0, 1}) {
    c.ways.output[rank] = {.per_byte = 1, .lane = static_cast<int>(rank)};
    c.ways.gradient[rank] = {.per_byte = 1, .lane = static_cast<int>(rank)};
  }
  EXPECT_DOUBLE_EQ(*play_pipeline(c.schedule, c.times, c.ways, 1, false), 15);
}

// Half the compute units for a transfer of two seconds at both ends. GPipe of two stages, two micro-batches: F0 0..1, its transfer
// 1..3, beside it F1 takes 1..3; F0 of the last rank 3..: beside the second transfer, 3..5, two seconds, F1 5..6; B0 6..7, its
// transfer 7..9; B1 beside it 7..9, its transfer 9..11. Rank 0: B0 9..11, beside the second transfer, B1 11..12.
TEST(PlayPipeline, TransfersTakeComputeUnits) {
  Case c;
  c.times = {.ranks = 2, .microbatches = 2, .forward = {1, 1, 1, 1}, .backward = {1, 1, 1, 1}};
  c.ways.ranks = 2;
  for (std::size_t rank : {0, 1}) {
    c.ways.output[rank] = {.per_byte = 2, .share = 0.5, .lane = static_cast<int>(rank)};
    c.ways.gradient[rank] = {.per_byte = 2, .share = 0.5, .lane = static_cast<int>(rank)};
  }
  EXPECT_DOUBLE_EQ(*play_pipeline(Schedule::GPipe, c.times, c.ways, 1, true), 12);
}

namespace {

TalkTimes silent(const PipelineTimes& times) {
  TalkTimes talk;
  for (std::size_t kind = 0; kind < talk.of.size(); ++kind) {
    talk.of[kind].forward.compute = times.forward[kind];
    talk.of[kind].backward.compute = talk.of[kind].last_backward.compute = times.backward[kind];
  }
  return talk;
}

// Two stages of one second each way on one node, one micro-batch, transfers that take no time: the last rank ends at 3, the first at 4.
Case two_stages() {
  Case c{.schedule = Schedule::GPipe};
  c.times = {.ranks = 2, .microbatches = 1, .forward = {1, 1, 1, 1}, .backward = {1, 1, 1, 1}};
  c.ways.ranks = 2;
  for (std::size_t rank : {0, 1})
    c.ways.output[rank].lane = static_cast<int>(rank), c.ways.gradient[rank].lane = static_cast<int>(rank);
  return c;
}

// All that ranks say, and the collectives that they stand still for, cross one link.
void share_a_link(Case& c) {
  Links& links = c.ways.links;
  links.links = 1;
  const Links::Traffic whole{.crosses = {{.link = 0, .share = 1, .own = true}}};
  for (int rank = 0; rank < c.times.ranks; ++rank) {
    links.traffic[static_cast<std::size_t>(Links::flow(rank, Links::Shards))] = whole;
    links.tensors[static_cast<std::size_t>(rank)] = whole;
  }
  links.find_slower(c.times.ranks);
}

double with_talk(const Case& c, const TalkTimes& talk) {
  return play_talk(c.schedule, c.times, talk, c.ways, c.bytes, true).value();
}

}  // namespace

// Where nothing is said and every kind of transfer has a lane of its own, both plays are the same as far as both play it all: 300 random
// pipelines, seed 7.
TEST(PlayTalk, WithoutTalkItIsThePlayOfThePipeline) {
  std::mt19937 random(7);
  int seen = 0;
  for (int i = 0; i < 300; ++i) {
    Case c = random_case(random, 1 + i % 6);
    for (std::size_t rank = 0; rank < Ways::kMost; ++rank) {
      c.ways.output[rank].lane = static_cast<int>(2 * rank), c.ways.gradient[rank].lane = static_cast<int>(2 * rank + 1);
      c.ways.output[rank].latency = 0.1;
    }
    const bool overlap = i % 2 == 0;
    const auto talked = play_talk(c.schedule, c.times, silent(c.times), c.ways, c.bytes, overlap);
    if (!talked) continue;
    ++seen;
    // Of more than two rounds of one chunk each measures the middle in a way of its own.
    const bool exact = i % 6 < 2 || c.times.chunks > 1;
    EXPECT_NEAR(*talked / *play_pipeline(c.schedule, c.times, c.ways, c.bytes, overlap), 1, exact ? 1e-9 : 0.05) << i;
  }
  EXPECT_GT(seen, 200);
}

// Sums of two seconds each: the last rank's run alone from 3 to 4, together until 6, when it is done; the first rank's have one
// second left: 7. With a NIC for each they would be done at 6. The tied embeddings meet then, three seconds: 10. Both
// gather for a second, together: 12.
TEST(PlayTalk, RanksShareTheNicAtTheEnd) {
  Case c = two_stages();
  TalkTimes talk = silent(c.times);
  for (TalkOfChunk& of : talk.of) of.sums = 2;
  EXPECT_NEAR(with_talk(c, talk), 6, 1e-9);
  share_a_link(c);
  EXPECT_NEAR(with_talk(c, talk), 7, 1e-9);
  talk.tied = 3;
  EXPECT_NEAR(with_talk(c, talk), 10, 1e-9);
  for (TalkOfChunk& of : talk.of) of.gathers = 1;
  EXPECT_NEAR(with_talk(c, talk), 12, 1e-9);
}

// On the last rank the tied copy is summed first: it is at the meeting with one of its two seconds said, from 3 to 4; the first rank
// has said its two from 4 on alone, at 6; they meet until 9; then the last rank says the rest: 10.
TEST(PlayTalk, TheRestOfTheSumsComesBehindTheTiedEmbedding) {
  Case c = two_stages();
  share_a_link(c);
  TalkTimes talk = silent(c.times);
  talk.tied = 3;
  talk.of[0].sums = 2, talk.of[2].sums = 1, talk.of[2].sums_after_tied = 1;
  EXPECT_NEAR(with_talk(c, talk), 10, 1e-9);
}

// Two seconds of gathers ahead of every forward, and computes at half speed beside talk. The first rank's forward begins at 2 and
// ends at 3, the last one's waits from 3 to 5 and ends at 6. Its backward says three seconds after half of its compute, at 6.5, is
// twice as slow then until 7.5, and waits at its end until one second is left, at 8.5; the first rank's likewise: until 11, and
// one second more for what is left.
TEST(PlayTalk, ActionsWaitForWhatTheyReadAndForPlaces) {
  const Case c = two_stages();
  TalkTimes talk = silent(c.times);
  talk.share = 0.5;
  for (TalkOfChunk& of : talk.of) {
    of.forward.before = 2, of.forward.begin_hold = 0;
    of.last_backward.said_at = 0.5, of.last_backward.said = 3, of.last_backward.free = 1, of.last_backward.hold = 1;
  }
  EXPECT_NEAR(with_talk(c, talk), 12, 1e-9);
}

// A backward says two seconds after a quarter of its compute and waits after half of it until one of them is left: the last rank's begins at 2,
// says at 2.25, waits from 2.5 to 3.25 and ends at 3.75; the first one's ends 1.75 later, and half a second is left then.
TEST(PlayTalk, LayersWithoutAPlaceWaitInTheMiddle) {
  const Case c = two_stages();
  TalkTimes talk = silent(c.times);
  for (TalkOfChunk& of : talk.of) {
    of.last_backward.said_at = 0.25, of.last_backward.said = 2;
    of.last_backward.middle = 0.5, of.last_backward.middle_hold = 1;
  }
  EXPECT_NEAR(with_talk(c, talk), 6, 1e-9);
}

// The first rank gathers for a second ahead of a forward and for a quarter from its middle on. F0 1..2; its last layer, the second half of the
// last half second, has all from 1.75 on, so what F1 gathers begins there: F1 2.75..3.75. Last rank: F0 2..3, F1 until 4.75, two backwards until
// 6.75; the first one's last one until 7.75.
TEST(PlayTalk, TheNextForwardGathersBesideTheLastLayer) {
  Case c = two_stages();
  c.times.microbatches = 2;
  TalkTimes talk = silent(c.times);
  TalkStep& forward = talk.of[0].forward;
  forward.ahead = 1, forward.begin_hold = 0, forward.said_at = 0.5, forward.said = 0.25, forward.free = 0.75, forward.hold = 0;
  EXPECT_NEAR(with_talk(c, talk), 7.75, 1e-9);
}

namespace {

// Two ranks of two chunks, two micro-batches, one second for each.
Case two_chunks() {
  Case c = two_stages();
  c.schedule = Schedule::Interleaved, c.times.chunks = 2, c.times.microbatches = 2;
  return c;
}

}  // namespace

// Half a second of gathers ahead of the first chunk's forwards, a second ahead of those between: F0 of the first rank 0.5..1.5, F1 2..3, and behind
// what F1 gathers, until 3, that of its next chunk, which need not wait for the end of F1: 3..4, and 5..6, behind what it gathers from 4 on. Last rank: 1.5..2.5,
// 3.5..4.5, its second chunk F0 4.5..5.5, B0 5.5..6.5, F1 6.5..7.5, B1 7.5..8.5. First rank: B0 6.5..7.5, B1 8.5..9.5. Last rank: 8.5..9.5, 9.5..10.5. First
// rank: 9.5..10.5, 10.5..11.5.
TEST(PlayTalk, ChunksGatherAheadOfEachOther) {
  const Case c = two_chunks();
  TalkTimes talk = silent(c.times);
  for (const std::size_t kind : {0, 1}) {
    TalkStep& forward = talk.of[kind].forward;
    forward.ahead = kind == 0 ? 0.5 : 1, forward.begin_hold = 0, forward.hold = 0, forward.free = 1;
  }
  EXPECT_NEAR(with_talk(c, talk), 11.5, 1e-9);
}

// The first rank's first chunk gathers for half a second ahead of a forward and for a quarter from its middle on; a second is gathered ahead of the
// forwards between. First rank: F0 0.5..1.5, F1 2..3, and behind what it says at 2.5, until 2.75, what its next chunk gathers, until 3.75: F0
// 3.75..4.75, F1 5.75..6.75. Last rank: 1.5..2.5, 3.5..4.5, its second chunk F0 4.75..5.75, B0 until 6.75, F1 until 7.75, B1 until 8.75. First rank: B0
// 6.75..7.75, B1 8.75..9.75. Last rank: 8.75..9.75, 9.75..10.75. First rank: 9.75..10.75, 10.75..11.75.
TEST(PlayTalk, TheNextChunkGathersBehindWhatAForwardSaysInItsMiddle) {
  const Case c = two_chunks();
  TalkTimes talk = silent(c.times);
  TalkStep &first = talk.of[0].forward, &between = talk.of[1].forward;
  first.ahead = 0.5, first.begin_hold = 0, first.said_at = 0.5, first.said = 0.25, first.hold = 0, first.free = 1;
  between.ahead = 1, between.begin_hold = 0;
  EXPECT_NEAR(with_talk(c, talk), 11.75, 1e-9);
}

// Forwards between say five seconds at their end, backwards two, and these wait until all is said, but only behind the same chunk. First rank:
// F0, F1 until 2, of its second chunk 2..3 and 3..4: ten seconds until 13. Last rank: 1..2, 2..3: until 12; its second chunk F0 3..4, B0 4..5, F1
// 5..6, B1 6..7. First rank: B0 5..6 does not wait, two seconds more, until 15; B1 15..16. Last rank: B0 7..8, until 14; B1 16..17, and 19.
TEST(PlayTalk, ChunksWaitForTheirOwnPlace) {
  const Case c = two_chunks();
  TalkTimes talk = silent(c.times);
  talk.of[1].forward.after = 5;
  for (TalkStep* step : {&talk.of[1].backward, &talk.of[1].last_backward}) step->again = true, step->hold = 0, step->after = 2;
  EXPECT_NEAR(with_talk(c, talk), 19, 1e-9);
}

// The first rank's forward stands still for half a second of collectives and says a second at its begin, on one link and in one stream: these take turns,
// so the forward is not held up, and half of what it said is left when it ends.
TEST(PlayTalk, CollectivesTakeTurnsWithWhatTheirOwnRankSays) {
  Case c = two_stages();
  share_a_link(c);
  TalkTimes talk = silent(c.times);
  talk.of[0].forward.before = 1, talk.of[0].forward.still[Links::OfShards] = 0.5;
  EXPECT_NEAR(with_talk(c, talk), 4, 1e-9);
}

// A second of gathers ahead of the first rank's forwards, a second for its outputs, for which it stands still: F0 1..2, sent at 3, and what F1
// gathers is there then, too: 3..4, sent at 5. Last rank: F0 3..4, F1 5..6, backwards until 8; the first rank's last one until 9.
TEST(PlayTalk, ARankThatStandsStillGathersBesideThat) {
  Case c = two_stages();
  c.times.microbatches = 2;
  c.ways.output[0].per_byte = 1;
  TalkTimes talk = silent(c.times);
  talk.of[0].forward.ahead = 1, talk.of[0].forward.begin_hold = 0;
  EXPECT_NEAR(play_talk(c.schedule, c.times, talk, c.ways, c.bytes, false).value(), 9, 1e-9);
}

// The first rank's output and its three seconds of talk cross one link. It says them at the end of its forward, at 1; the transfer, two
// seconds alone, is through at 5, and one second of talk is left, until 6. The last rank ends at 7.
TEST(PlayTalk, ATransferSharesItsLinkWithTalk) {
  Case c = two_stages();
  share_a_link(c);
  c.ways.links.traffic[Links::flow(0, Links::Output)] = c.ways.links.tensors[0];
  c.ways.output[0].per_byte = 2;
  TalkTimes talk = silent(c.times);
  talk.of[0].forward.after = 3;
  EXPECT_NEAR(with_talk(c, talk), 8, 1e-9);
}

// GPipe, two micro-batches, forwards that are nothing but tensor collectives on one link: F0 0..1 alone, then F1 of the first and F0 of the last
// rank at half speed, 1..3, F1 3..4 alone; backwards 4..5, 5..6 and 6..7. When half of a forward computes, and the two ranks drift past each
// other, each is held up for r / 2 of its half second by the other, which goes at speed r = 1 / (1 / 2 + (1 + r / 2) / 2) = 2 sqrt(2) - 2: these
// two take 1 / r = 1.207 instead of one second, and all 6.207.
TEST(PlayTalk, CollectivesThatComputesWaitForShareLinks) {
  Case c = two_stages();
  share_a_link(c);
  c.times.microbatches = 2;
  TalkTimes talk = silent(c.times);
  for (TalkOfChunk& of : talk.of) of.forward.still[Links::Tensor] = 1;
  EXPECT_NEAR(with_talk(c, talk), 7, 1e-6);
  for (TalkOfChunk& of : talk.of) of.forward.still[Links::Tensor] = 0.5;
  EXPECT_NEAR(with_talk(c, talk), 6.207, 0.01);
}

}  // namespace foreshard
