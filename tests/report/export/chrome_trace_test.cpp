#include "report/export/chrome_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/json/json.h"
#include "report/summary/memory_steps.h"
#include "tests/report/played.h"

namespace foreshard::chrome_trace_test {
namespace {

using namespace played;

struct Slice {
  std::int64_t begin = 0, end = 0;
};
using Track = std::pair<std::int64_t, std::int64_t>;  // (process, thread)

// The file read back: slices per track in file order, and flow events by id.
struct ReadBack {
  std::map<Track, std::vector<Slice>> slices = {};
  std::map<std::int64_t, std::vector<std::pair<Track, std::int64_t>>> starts = {}, ends = {};
  std::map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> memory = {};  // process -> (time, bytes)
  std::set<std::string> names = {};

  explicit ReadBack(const std::string& text) {
    for (const JsonReader& event : JsonReader::parse(text, "trace").at("traceEvents").elements()) {
      const std::string phase = event.at("ph").as_string();
      if (phase == "M") continue;
      const std::int64_t when = std::llround(event.at("ts").as_double() * 1000);
      const Track track = {event.at("pid").as_int(), phase == "C" ? 0 : event.at("tid").as_int()};
      if (phase == "X") {
        slices[track].push_back({when, when + std::llround(event.at("dur").as_double() * 1000)});
        names.insert(event.at("name").as_string());
      } else if (phase == "C") {
        std::int64_t bytes = 0;
        for (const auto& [category, value] : event.at("args").members()) bytes += value.as_int();
        memory[track.first].emplace_back(when, bytes);
      } else {
        EXPECT_TRUE(phase == "s" || phase == "f");
        (phase == "s" ? starts : ends)[event.at("id").as_int()].emplace_back(track, when);
      }
    }
  }
  bool covers(const Track& track, std::int64_t when) const {
    const auto at = slices.find(track);
    if (at == slices.end()) return false;
    for (const Slice& slice : at->second)
      if (slice.begin <= when && when < slice.end) return true;
    return false;
  }
};

void expect_sound(const ReadBack& read) {
  for (const auto& [track, slices] : read.slices) {
    std::vector<Slice> open;
    std::int64_t previous = 0;
    for (const Slice& slice : slices) {
      EXPECT_GE(slice.begin, previous) << "times go back on a track";
      EXPECT_GT(slice.end, slice.begin);
      previous = slice.begin;
      while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(slice.end, open.back().end) << "slices overlap without nesting";
      }
      open.push_back(slice);
    }
  }
  EXPECT_EQ(read.starts.size(), read.ends.size());
  for (const auto& [id, starts] : read.starts) {
    ASSERT_EQ(starts.size(), 1u);
    ASSERT_TRUE(read.ends.contains(id));
    const auto& ends = read.ends.at(id);
    ASSERT_EQ(ends.size(), 1u);
    EXPECT_LE(starts[0].second, ends[0].second);
    EXPECT_NE(starts[0].first, ends[0].first);
    EXPECT_TRUE(read.covers(starts[0].first, starts[0].second)) << "flow " << id;
    EXPECT_TRUE(read.covers(ends[0].first, ends[0].second)) << "flow " << id;
  }
  for (const auto& [process, points] : read.memory)
    for (std::size_t i = 1; i < points.size(); ++i) EXPECT_GT(points[i].first, points[i - 1].first);
}

Result with_memory(Result result) {
  const auto unit = Nanoseconds{1'000'000};
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(result.trace.classes.size()); ++c) {
    MemoryCurve curve{.who = {c}};
    curve.start[0] = {100};
    for (int k = 0; k < 20; ++k) {
      curve.events.push_back({unit * k, Category::Activations, {10 + k}});
      curve.events.push_back({unit * k + Nanoseconds{7}, Category::Activations, {-(10 + k)}});
    }
    result.memory.curves.push_back(curve);
  }
  return result;
}

TEST(ChromeTrace, SlicesNestFlowsPairTimesRise) {
  // A backward that is all weight gradient has an input gradient of no duration.
  for (const Pipeline& pipeline :
       {Pipeline{}, Pipeline{.p = 2, .m = 2, .backward = {1}},
        Pipeline{.p = 2, .m = 3, .latency = 1, .reduce = 2, .update = 1, .unit = 1},
        Pipeline{.schedule = Schedule::GPipe, .p = 3, .m = 4, .replicas = 2, .reduce = 1, .update = 1}}) {
    const Result result = with_memory(result_of(pipeline));
    const ReadBack read(chrome_trace(result));
    expect_sound(read);
    EXPECT_EQ(read.starts.empty(), pipeline.p == 1);
  }
}

TEST(ChromeTrace, EveryNanosecondOfComputeIsThere) {
  const Result result = with_memory(result_of({.p = 3, .m = 5, .latency = 1, .unit = 1237}));
  const ReadBack read(chrome_trace(result));
  for (std::int32_t c = 0; c < 3; ++c) {
    std::int64_t busy = 0, until = 0;
    for (const Slice& slice : read.slices.at({c, 0})) {
      busy += std::max<std::int64_t>(slice.end - std::max(slice.begin, until), 0);
      until = std::max(until, slice.end);
    }
    EXPECT_EQ(busy, (result.trace.makespan - idle_of(result.plan, result.trace, {c})).value);
  }
  EXPECT_TRUE(read.names.contains("F0 forward"));
  EXPECT_TRUE(read.names.contains("B4"));
  EXPECT_TRUE(read.names.contains("weight gradient"));
}

// Between tracks the chain of one micro-batch over two stages goes: forward -> wire -> forward -> wire -> backward.
TEST(ChromeTrace, ArrowsFollowTheCriticalChainOnly) {
  const ReadBack read(chrome_trace(with_memory(result_of({.p = 2, .m = 1, .latency = 1, .unit = 10}))));
  ASSERT_EQ(read.starts.size(), 4u);
  std::vector<std::int64_t> ends;
  for (const auto& [id, at] : read.ends) ends.push_back(at[0].second);
  EXPECT_EQ(ends, (std::vector<std::int64_t>{10, 20, 50, 60}));
}

TEST(ChromeTrace, MemoryKeepsItsPeakWhenThinnedOut) {
  const Result result = with_memory(result_of({.p = 1, .m = 8}));
  const ReadBack all(chrome_trace(result));
  EXPECT_EQ(all.memory.at(0).size(), 40u);  // 20 acquires and releases, the first at 0
  const ReadBack few(chrome_trace(result, {.most_memory_points = 5}));
  expect_sound(few);
  EXPECT_LE(few.memory.at(0).size(), 6u);
  std::int64_t most = 0;
  for (const auto& [when, bytes] : few.memory.at(0)) most = std::max(most, bytes);
  EXPECT_EQ(most, 100 + 10 + 19);
}

TEST(ChromeTrace, LargeResultsLoseDetailAndThenClasses) {
  const Result result = with_memory(result_of({.p = 4, .m = 8}));
  const ReadBack actions(chrome_trace(result, {.most_slices = 200}));
  expect_sound(actions);
  EXPECT_FALSE(actions.names.contains("weight gradient"));
  EXPECT_EQ(actions.slices.at({3, 0}).size(), 16u);
  const std::string text = chrome_trace(result, {.most_slices = 60});
  const ReadBack some(text);
  expect_sound(some);
  EXPECT_FALSE(some.slices.contains({3, 0}));
  EXPECT_EQ(JsonReader::parse(text, "t").at("otherData").at("classes").as_int(), 4);
  EXPECT_LT(JsonReader::parse(text, "t").at("otherData").at("classes_shown").as_int(), 4);
}

}  // namespace
}  // namespace foreshard::chrome_trace_test
