// Plays of random talk: where nothing meets they are the play of each rank by itself, which no play is faster than, and what they say of
// `enough` holds.
#include "strategy/estimate/estimate_talk_alone.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "strategy/estimate/estimate_speeds.h"

namespace foreshard {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  double seconds(double least, double most) { return std::uniform_real_distribution<double>(least, most)(engine_); }
  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(engine_); }
  bool often() { return number(0, 2) > 0; }

 private:
  std::mt19937 engine_;
};

struct Case {
  Schedule schedule = Schedule::OneFOneB;
  PipelineTimes times = {};
  TalkTimes talk = {};
  Ways ways = {};
  bool overlap = true;
  TalkOf played() const { return {schedule, times, talk, ways, 1, overlap, static_cast<int>(times.microbatches)}; }
  double seconds(double enough = 1e300, PlayMemory* memory = nullptr) const {
    return play_talk(schedule, times, talk, ways, 1, overlap, enough, memory).value();
  }
};

// Parts of the computes one behind the other, holds of parts of what has been said.
TalkStep random_step(Random& random) {
  TalkStep step{.compute = random.seconds(0.5, 2)};
  const auto some = [&](double most) { return random.often() ? random.seconds(0, most) : 0; };
  step.ahead = some(1), step.before = some(0.5), step.said = some(1.5), step.after = some(1), step.over_groups = some(1);
  if (random.often()) step.begin_hold = random.seconds(0, 1) * (step.ahead + step.before);
  step.said_at = some(0.5 * step.compute);
  if (random.often()) step.middle = random.seconds(step.said_at, step.compute), step.middle_hold = some(step.said);
  step.free = random.seconds(std::max(step.said_at, step.middle), step.compute);
  if (random.often()) step.hold = some(step.said);
  step.again = random.number(0, 3) == 0;
  return step;
}

Case random_case(unsigned seed) {
  Random random(seed);
  Case c;
  c.schedule = std::array{Schedule::GPipe, Schedule::OneFOneB, Schedule::Interleaved}[at(random.number(0, 2))];
  const int p = c.times.ranks = random.number(2, 6);
  const bool chunks = c.schedule == Schedule::Interleaved;
  c.times.chunks = chunks ? random.number(2, 3) : 1;
  c.times.microbatches = chunks ? p * random.number(1, 2) : random.number(1, 2 * p);  // all of them are played
  c.overlap = random.often();
  for (TalkOfChunk& of : c.talk.of) {
    of.forward = random_step(random), of.backward = random_step(random), of.last_backward = random_step(random);
    of.sums = random.seconds(0, 2), of.sums_after_tied = random.number(0, 1), of.gathers = random.seconds(0, 1);
    of.one_update = 0.1, of.update = 0.3;
    if (random.often()) of.early_gathers = random.seconds(0, 1), of.early_share = random.seconds(0.1, 1);
  }
  if (random.often()) c.talk.tied = random.seconds(0, 2);
  c.ways.ranks = p;
  for (int rank = 0; rank < p; ++rank)
    for (Ways::Way* way : {&c.ways.output[at(rank)], &c.ways.gradient[at(rank)]})
      way->latency = random.seconds(0.01, 0.1), way->per_byte = random.seconds(0, 1);
  return c;
}

// Some kernels take compute units, some traffic crosses the same links, some computes wait for collectives.
void meet(Case& c, unsigned seed) {
  Random random(seed);
  c.talk.share = random.seconds(0, 0.3);
  Links& links = c.ways.links;
  links.links = random.number(1, 4);
  const auto cross = [&](Links::Traffic& traffic) {
    if (random.often())
      traffic.crosses = {{.link = random.number(0, links.links - 1), .share = random.seconds(0.2, 1), .own = true}};
  };
  for (int rank = 0; rank < c.times.ranks; ++rank) {
    for (int flow = 0; flow < Links::kFlows; ++flow) cross(links.traffic[at(rank * Links::kFlows + flow)]);
    cross(links.tensors[at(rank)]);
    c.ways.output[at(rank)].share = random.seconds(0, 0.1), c.ways.gradient[at(rank)].share = random.seconds(0, 0.1);
  }
  if (random.often())
    for (TalkOfChunk& of : c.talk.of)
      for (TalkStep* step : {&of.forward, &of.backward, &of.last_backward})
        step->still[at(random.number(0, Links::kStills - 1))] = random.seconds(0, 0.5) * step->compute;
  links.find_slower(c.times.ranks);
}

}  // namespace

TEST(AloneTalk, IsThePlayWhereNothingMeets) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Case c = random_case(seed);
    AloneTalk alone(c.played());
    EXPECT_NEAR(alone.run() / c.seconds(), 1, 1e-9) << seed;
  }
}

// 500 random plays, of which most are held up: a play that is asked for no more than a part of what it takes stops beyond that, at a bound, and
// one that is asked for just as much says the same as before.
TEST(AloneTalk, NoPlayTakesLess) {
  int slower = 0, full_links = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    Case c = random_case(seed);
    meet(c, seed);
    const double seconds = c.seconds();
    AloneTalk alone(c.played());
    const double by_itself = alone.run(), least = alone.least();
    EXPECT_LE(by_itself, least) << seed;
    EXPECT_LE(least, seconds * (1 + 1e-9)) << seed;
    slower += seconds > 1.01 * least, full_links += least > 1.01 * by_itself;
    EXPECT_EQ(c.seconds(seconds * (1 + 1e-9)), seconds) << seed;
    for (const double part : {0.5, 0.9, 0.97, 0.999}) {
      const double bound = c.seconds(part * seconds);
      EXPECT_GT(bound, part * seconds) << seed;
      EXPECT_LE(bound, seconds * (1 + 1e-9)) << seed << ", " << part;
    }
  }
  EXPECT_GT(slower, 250);
  EXPECT_GT(full_links, 50);
}

// 200 random plays one after the other, each with variants that differ in one of the things that speeds depend on, or in none.
TEST(PlayTalk, SaysTheSameWhateverIsRemembered) {
  PlayMemory memory;
  Case before = random_case(0);
  for (unsigned seed = 0; seed < 200; ++seed) {
    Case c = random_case(seed);
    meet(c, seed);
    const auto play = [&](const char* what) { EXPECT_EQ(c.seconds(1e300, &memory), c.seconds()) << seed << " " << what; };
    EXPECT_EQ(before.seconds(1e300, &memory), before.seconds()) << "before " << seed;
    before = c;
    play("as it is");
    c.talk.of[1].forward.said += 0.5, play("says more");
    c.talk.share += 0.1, play("kernels of communication take more units");
    c.talk.of[1].backward.still[Links::Tensor] = 0.4 * c.talk.of[1].backward.compute, play("stands still for longer");
    c.ways.output[0].share += 0.2, play("transfers take more units");
    c.ways.links.traffic[0].crosses = {{.link = 0, .share = 0.9, .own = true}}, play("crosses another link");
    c.talk.sums = !c.talk.sums, play("sums over all replicas at once");
    for (int rank = 0; rank < c.times.ranks; ++rank)
      for (const TalkOfChunk& of : c.talk.of) c.talk.by_rank.push_back(of);
    c.talk.by_rank[0].forward.still[Links::Tensor] = 0.3, play("ranks differ");
  }
}

}  // namespace foreshard
