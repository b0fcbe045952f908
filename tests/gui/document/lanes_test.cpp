#include "gui/document/lanes.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "report/words/span_words.h"
#include "tests/gui/documents.h"

namespace foreshard::lanes_test {
namespace {

// Slices that may overlap, in the order of their begin.
Lane random_lane(unsigned seed, int count) {
  std::mt19937 random(seed);
  Lane lane;
  std::int64_t at = 0;
  for (int i = 0; i < count; ++i) {
    at += static_cast<std::int64_t>(random() % 40);
    lane.push({at}, {at + 1 + static_cast<std::int64_t>(random() % 60)}, i, {static_cast<Paint>(random() % kPaints), 0, true});
  }
  return lane;
}

TEST(Lanes, BusyTimeIsTheUnionOfTheSlices) {
  const Lane lane = random_lane(7, 60);
  std::int64_t busy = 0;
  for (std::int64_t t = 0; t <= lane.last_end + 5; ++t) {
    EXPECT_EQ(lane.busy_until(t), busy) << "until " << t;
    bool covered = false;
    for (std::size_t i = 0; i < lane.size(); ++i) covered = covered || (lane.begin[i] <= t && t < lane.end[i]);
    busy += covered ? 1 : 0;
  }
}

TEST(Lanes, ASliceIsFoundWhereItIs) {
  const Lane lane = random_lane(8, 60);
  for (std::int64_t t = -3; t <= lane.last_end + 5; ++t) {
    std::optional<std::size_t> expected;
    for (std::size_t i = 0; i < lane.size(); ++i)
      if (lane.begin[i] <= t && t < lane.end[i]) expected = i;
    EXPECT_EQ(lane.slice_at(t), expected) << "at " << t;
  }
}

TEST(Lanes, LooksSurviveThePacking) {
  Lane lane;
  lane.push({0}, {1}, 0, {Paint::Host, 7, false});
  lane.push({1}, {2}, 1, {Paint::Forward, 0, true});
  EXPECT_EQ(lane.look_of(0), (Look{Paint::Host, 7, false}));
  EXPECT_EQ(lane.look_of(1), (Look{Paint::Forward, 0, true}));
}

TEST(Lanes, EverySpanWithADurationIsInOneLaneOfItsClass) {
  const auto document = pipeline_document();
  std::vector<int> seen(document->trace().spans.size(), 0);
  for (const Lane& lane : document->lanes.all) {
    if (lane.kind == LaneKind::InLine) continue;
    for (const std::int32_t span : lane.span) {
      ++seen[static_cast<std::size_t>(span)];
      EXPECT_EQ(document->trace().spans[static_cast<std::size_t>(span)].who, lane.who);
    }
  }
  for (std::size_t s = 0; s < seen.size(); ++s)
    EXPECT_EQ(seen[s], document->trace().spans[s].begin < document->trace().spans[s].end ? 1 : 0) << s;
}

// Four all-to-alls of a layer in each direction of a step: rows there and back, and the counts there.
TEST(Lanes, DispatchAndCombineHavePaintsOfTheirOwn) {
  const auto document = mixture_document();
  std::map<Paint, std::set<std::string>> names;
  for (const Lane& lane : document->lanes.all)
    for (std::size_t s = 0; s < lane.size(); ++s)
      if (lane.kind != LaneKind::Compute)
        names[lane.look_of(s).paint].insert(
            instruction_of(document->plan(), document->trace(), document->trace().spans[static_cast<std::size_t>(lane.span[s])])
                .name);
  EXPECT_EQ(names[Paint::Dispatch], (std::set<std::string>{"dispatch_all_to_all", "expert_counts_all_to_all"}));
  EXPECT_EQ(names[Paint::Combine], (std::set<std::string>{"combine_all_to_all"}));
  EXPECT_FALSE(names[Paint::Collective].empty() && names[Paint::InLine].empty());  // those of ZeRO
  const auto dense = simulated_document();
  for (const Lane& lane : dense->lanes.all)
    for (std::size_t s = 0; s < lane.size(); ++s)
      EXPECT_TRUE(lane.look_of(s).paint != Paint::Dispatch && lane.look_of(s).paint != Paint::Combine);
}

TEST(Lanes, IdleTimeIsBubblesToTheNanosecond) {
  const auto document = pipeline_document(played::Fold::None, {.rank = 3, .factor = 2});
  for (std::size_t c = 0; c < document->trace().classes.size(); ++c) {
    const ClassId who = {static_cast<std::int32_t>(c)};
    std::int64_t idle = 0;
    for (const Bubble& bubble : document->bubbles) idle += bubble.who == who ? (bubble.end - bubble.begin).value : 0;
    const std::int64_t makespan = document->trace().makespan.value;
    EXPECT_EQ(document->lanes.find(who, LaneKind::Compute)->busy_until(makespan) + idle, makespan);
  }
}

TEST(Lanes, ABubbleIsFoundWhereItIs) {
  const auto document = pipeline_document();
  for (std::size_t b = 0; b < document->bubbles.size(); ++b) {
    const Bubble& bubble = document->bubbles[b];
    EXPECT_EQ(bubble_at(document->lanes, document->bubbles, bubble.who, bubble.begin.value), static_cast<std::int32_t>(b));
    EXPECT_EQ(bubble_at(document->lanes, document->bubbles, bubble.who, bubble.end.value - 1), static_cast<std::int32_t>(b));
  }
  // Stage 0 computes from the start: no bubble there, nor for a class that is not.
  EXPECT_EQ(bubble_at(document->lanes, document->bubbles, {0}, 0), -1);
  EXPECT_EQ(bubble_at(document->lanes, document->bubbles, {99}, 0), -1);
  EXPECT_EQ(document->lanes.find({99}, LaneKind::Compute), nullptr);
}

}  // namespace
}  // namespace foreshard::lanes_test
