#include "core/result/result.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/base/error.h"
#include "tests/changed_text.h"
#include "tests/core/support_plan.h"

namespace foreshard::result_test {
namespace {

// Both roles of the small plan, instruction after instruction, one span each, streams one after the other.
Result small_result() {
  Result result{.plan = small_plan(), .makespan_s = 1.0 / 3, .engine_events = 17};
  Trace& trace = result.trace;
  trace.plan_hash = program_hash(result.plan);
  trace.classes = {{{0}, {{0}, {1}}}, {{1}, {{2}, {3}}}};
  for (std::int32_t who : {0, 1})
    for (std::int32_t stream : {0, 1, 2, 3}) {
      std::int64_t now = 10 * stream;
      const Role& role = result.plan.roles[static_cast<std::size_t>(who)];
      for (std::size_t a = 0; a < role.actions.size(); ++a) {
        const Segment& segment = result.plan.segments[role.actions[a].segment.index()];
        for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
          if (segment.instructions[i].stream.value != stream) continue;
          trace.spans.push_back(Span{.who = {who},
                                     .action = static_cast<int>(a),
                                     .instruction = static_cast<int>(i),
                                     .stream = {stream},
                                     .ready = {now},
                                     .begin = {now + 1},
                                     .end = {now + 1000}});
          now += 1000;
        }
      }
    }
  trace.makespan = {333333333};
  trace.links = {{"NIC \"up\"", {{4}, {9}}, {12.5e9}, 1e6 / 7, {0.1}}};
  result.memory = memory_timeline(result.plan, trace, {.events = false});
  return result;
}

std::string message(const std::string& text) {
  return error_of([&] { parse_result(text, "r.result"); });
}

}  // namespace

// The plan of an older version had another hash: the trace gets that of the plan as it was read.
TEST(ResultFile, WithAPlanOfAnOlderVersionIsRead) {
  const Result result = small_result();
  std::string text = replaced(to_json(result), "\"version\": 2", "\"version\": 1");  // the result's own is 1
  text = replaced(text, "\"dense\":\"data\",", "");
  text = replaced(text, "\"order\": [0, \"role\"]", "\"order\": [\"dp\", \"role\"]");
  text = replaced(text, result.trace.plan_hash, "0123456789abcdef");
  EXPECT_EQ(parse_result(text, "r.result").trace, result.trace);
}

TEST(ResultFile, ReadsBackWhatItWroteWithAndWithoutEvents) {
  Result result = small_result();
  EXPECT_EQ(parse_result(to_json(result), "r"), result);
  result.memory = memory_timeline(result.plan, result.trace);
  EXPECT_FALSE(result.memory.curves[0].events.empty());
  const Result back = parse_result(to_json(result), "r");
  EXPECT_EQ(back, result);
  EXPECT_EQ(parse_result(to_json(Result{}), "r"), Result{});
}

TEST(ResultFile, SaysWhatItWasMeasuredOnAndAnOldFileDoesNot) {
  Result result = small_result();
  const std::string old = to_json(result);
  EXPECT_EQ(old.find("measured_on"), std::string::npos);
  EXPECT_EQ(parse_result(old, "r").measured_on, MeasuredOn{});
  result.trace.origin = Origin::Measured;
  result.measured_on = {"host", "a \"processor\", 2 cores"};
  const std::string text = to_json(result);
  EXPECT_EQ(parse_result(text, "r"), result);
  EXPECT_EQ(message(replaced(text, "\"kind\": \"host\"", "\"sort\": \"host\"")).substr(0, 27), "r.result: measured_on.sort:");
}

TEST(ResultFile, SavesAndLoadsFiles) {
  const std::string path = testing::TempDir() + "foreshard_small.result";
  save_result(small_result(), path);
  EXPECT_EQ(load_result(path), small_result());
  std::remove(path.c_str());
}

TEST(ResultFile, MessagesNameFileFieldFoundAndExpected) {
  const std::string text = to_json(small_result());
  EXPECT_EQ(message(replaced(text, "foreshard result", "foreshard plan")),
            "r.result: format: found \"foreshard plan\", expected \"foreshard result\"");
  EXPECT_EQ(message("{\"model_type\": \"gpt2\"}"),
            "r.result: found an object of 1, expected a result file, with \"format\": \"foreshard result\"");
  EXPECT_EQ(message(replaced(text, "\"who\": [0", "\"who\": [2")),
            "r.result: trace.spans.who[0]: found 2, expected an integer from 0 to 1");
  EXPECT_EQ(message(replaced(text, "\"action\": [0", "\"action\": [7")),
            "r.result: trace.spans.action[0]: found 7, expected an action of role \"stage0\", which has 7");
  EXPECT_EQ(
      message(replaced(text, "\"count\": [1", "\"count\": [2")),
      "r.result: trace.spans.count[0]: found 2, expected at most as many as the stream has instructions left in the action");
  EXPECT_EQ(message(replaced(text, "\"stream\": [0", "\"stream\": [1")),
            "r.result: trace.spans.stream[0]: found 1, expected the stream of the instruction");
  EXPECT_EQ(message(replaced(text, "\"begin\": [1,", "\"begin\": [1001,")),
            "r.result: trace.spans.end[0]: found 1000, expected a time not before the begin of the span");
  EXPECT_EQ(message(replaced(text, "\"begin\": [1, 1001,", "\"begin\": [1, 0,")),
            "r.result: trace.spans.begin[1]: found 0, expected spans in the order of class, stream and begin");
  EXPECT_EQ(message(replaced(text, "\"end\": [1000, ", "\"end\": [")).substr(0, 51),
            "r.result: trace.spans.end: found an array of 29, ex");
  EXPECT_EQ(message(replaced(text, "\"samples\": 6", "\"samples\": 7")).substr(0, 33), "r.result: trace.plan_hash: found ");
  EXPECT_EQ(message(replaced(text, "\"members\":[0,1]", "\"members\":[0,4]")),
            "r.result: trace.classes[0].members[1]: found 4, expected an integer from 0 to 3");
  EXPECT_EQ(message(replaced(text, "\"bytes\":512", "\"bytes\":-1")).substr(0, 59),
            "r.result: plan.segments[0].instructions[1].bytes: found -1,");
}

TEST(ResultFile, MangledFilesAreRefusedOrHarmless) {
  Result result = small_result();
  result.memory = memory_timeline(result.plan, result.trace);
  result.trace.plan_hash.clear();  // else hardly any change is accepted
  const std::string text = to_json(result);
  int accepted = 0;
  for (std::uint32_t seed = 0; seed < 800; ++seed) {
    try {
      const Result back = parse_result(mangled(text, seed), "r");
      ++accepted;
      memory_timeline(back.plan, back.trace, {.events = false});
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace foreshard::result_test
