#include "report/tables/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "core/base/error.h"
#include "core/json/json.h"
#include "report/tables/compare_text.h"
#include "report/words/text_table.h"
#include "tests/report/played.h"

namespace foreshard::compare_test {
namespace {

using namespace played;

Result hashed(Result result) {
  result.trace.plan_hash = program_hash(result.plan);
  return result;
}

const ComparedKind& kind(const Comparison& comparison, const std::string& name) {
  for (const ComparedKind& row : comparison.op_kinds)
    if (row.kind == name) return row;
  throw std::runtime_error("no kind " + name);
}

// One rank, 2 micro-batches of 1 ms forward and 2 ms backward (1 ms of it weight gradient): 6 ms. The rank that is twice as
// slow takes 12 ms; its spans differ by 1 ms each: 2 forwards, 2 input gradients, 2 weight gradients.
TEST(Compare, OneRankTwiceAsSlow) {
  const Pipeline pipeline{.p = 1, .m = 2};
  const Comparison c = compare(hashed(result_of(pipeline)), hashed(result_of(pipeline, Fold::None, {0, 2})));
  EXPECT_DOUBLE_EQ(c.iteration_time.predicted, 6e-3);
  EXPECT_DOUBLE_EQ(c.iteration_time.measured, 12e-3);
  EXPECT_DOUBLE_EQ(c.iteration_time.signed_error(), -0.5);
  EXPECT_DOUBLE_EQ(kind(c, "matmul forward").seconds.predicted, 2e-3);
  EXPECT_DOUBLE_EQ(kind(c, "matmul forward").seconds.measured, 4e-3);
  EXPECT_EQ(kind(c, "matmul weight_grad").instructions, 2);
  EXPECT_EQ(c.joined, 6);
  EXPECT_EQ(c.without_twin, 0);
  ASSERT_EQ(c.spans.size(), 6U);
  for (const ComparedSpan& span : c.spans) EXPECT_NEAR(span.seconds.difference(), -1e-3, 1e-12);
}

// Of results that are the same no span differs most.
TEST(Compare, TheSameResultTwiceHasNoSpansThatDiffer) {
  const Result one = hashed(result_of({.p = 1, .m = 2})), slow = hashed(result_of({.p = 1, .m = 2}, Fold::None, {0, 2}));
  const std::string same = compare_text(compare(one, one)), other = compare_text(compare(one, slow));
  EXPECT_EQ(same.find("differ most"), std::string::npos) << same;
  EXPECT_NE(same.find("No instruction takes longer in one than in the other."), std::string::npos) << same;
  EXPECT_NE(other.find("Spans that differ most"), std::string::npos) << other;
}

// What a processor takes says nothing of a GPU: times have no errors, memory has.
TEST(Compare, TimesOfAnotherDeviceHaveNoError) {
  const Result predicted = hashed(result_of({.p = 1, .m = 2}));
  Result measured = hashed(result_of({.p = 1, .m = 2}, Fold::None, {0, 2}));
  measured.trace.origin = Origin::Measured;
  measured.measured_on = {"host", "a processor, 4 cores"};
  const Comparison c = compare(predicted, measured);
  EXPECT_FALSE(c.same_device);
  const std::string text = compare_text(c);
  EXPECT_NE(text.find("A is simulated for unit, B is measured on a processor, 4 cores.\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("-50.0 %"), std::string::npos) << text;
  EXPECT_EQ(text.find(" points"), std::string::npos) << text;
  EXPECT_NE(text.find("equal"), std::string::npos) << text;  // memory
  const JsonReader json = JsonReader::parse(compare_json(c), "compare");
  EXPECT_EQ(json.at("devices").at("measured").as_string(), "a processor, 4 cores");
  EXPECT_FALSE(json.at("devices").at("same").as_bool());
  EXPECT_FALSE(json.at("iteration_time").at("signed_error").is_number());
  EXPECT_FALSE(json.at("op_kinds").at(0).at("signed_error").is_number());
  EXPECT_EQ(json.at("memory").at("signed_error").as_double(), 0);
  measured.measured_on = {"unit", "two units"};
  EXPECT_NE(compare_text(compare(predicted, measured)).find("-50.0 %"), std::string::npos);
}

// GPipe and 1F1B idle (p - 1) / (m + p - 1) of the time (Narayanan et al. 2021, section 2.2): 1/3 of p = m = 2.
TEST(Compare, BubblesAreSharesOfTheirOwnIteration) {
  const Pipeline pipeline{.p = 2, .m = 2};
  Pipeline slower = pipeline;
  slower.unit *= 3;
  const Comparison c = compare(hashed(result_of(pipeline)), hashed(result_of(slower)));
  EXPECT_NEAR(c.bubble.predicted, 1.0 / 3, 1e-12);
  EXPECT_NEAR(c.bubble.measured, 1.0 / 3, 1e-12);
  EXPECT_NEAR(c.iteration_time.signed_error(), 1.0 / 3 - 1, 1e-12);
  double causes = 0;
  for (const Compared& cause : c.bubble_by_cause) causes += cause.predicted;
  EXPECT_NEAR(causes, c.bubble.predicted, 1e-12);
}

// Two replicas played by one class against the same unfolded and with one rank slow: the class is joined with both.
TEST(Compare, FoldedResultsAreUnfolded) {
  const Pipeline pipeline{.p = 2, .m = 2, .replicas = 2};
  const Result folded = hashed(result_of(pipeline, Fold::Roles));
  const Comparison same = compare(folded, hashed(result_of(pipeline, Fold::None)));
  EXPECT_EQ(same.ranks, 4);
  EXPECT_EQ(same.iteration_time.signed_error(), 0);
  for (const ComparedKind& row : same.op_kinds) EXPECT_EQ(row.seconds.difference(), 0) << row.kind;
  // 4 ranks x 2 micro-batches of 1 ms; rank 1 takes 2 ms.
  const Comparison slow = compare(folded, hashed(result_of(pipeline, Fold::None, {1, 2})));
  EXPECT_NEAR(kind(slow, "matmul forward").seconds.predicted, 8e-3, 1e-12);
  EXPECT_NEAR(kind(slow, "matmul forward").seconds.measured, 10e-3, 1e-12);
  EXPECT_EQ(slow.spans.front().rank.value, 1);
  EXPECT_EQ(kind(slow, "matmul forward").instructions, 8);
}

// A backward of 4 ms with 3 ms of weight gradient as one span: cut 1 : 3, as the isolated times say.
TEST(Compare, MergedSpansAreCut) {
  const Pipeline pipeline{.p = 2, .m = 3, .backward = {4}, .weight_gradient = 3};
  const Result exact = hashed(result_of(pipeline));
  Result coarse = exact;
  coarse.trace = merged(exact.trace);
  ASSERT_LT(coarse.trace.spans.size(), exact.trace.spans.size());
  const Comparison c = compare(coarse, exact);
  EXPECT_EQ(c.without_twin, 0);
  for (const ComparedSpan& span : c.spans) EXPECT_NEAR(span.seconds.difference(), 0, 1e-12);
  EXPECT_NEAR(kind(c, "matmul weight_grad").seconds.predicted, 2 * 3 * 3e-3, 1e-12);
}

TEST(Compare, MemoryIsTheLargestPeak) {
  Result a = hashed(result_of({.p = 2, .m = 2})), b = a;
  a.memory.curves = {{.who = {0}, .peak = {Bytes{100}, Bytes{20}}}, {.who = {1}, .peak = {Bytes{50}, Bytes{100}}}};
  b.memory.curves = {{.who = {0}, .peak = {Bytes{100}}}, {.who = {1}, .space = Space::PinnedHost, .peak = {Bytes{900}}}};
  const Comparison c = compare(a, b);
  EXPECT_EQ(c.memory, (Compared{150, 100}));
  EXPECT_DOUBLE_EQ(c.memory.signed_error(), 0.5);
  EXPECT_EQ(c.memory_by_category[0], (Compared{50, 100}));
  EXPECT_EQ(c.memory_by_category[1], (Compared{100, 0}));
}

std::string message(const Result& a, const Result& b) {
  try {
    compare(a, b, {.predicted_name = "a.result", .measured_name = "b.result"});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Compare, OtherPlansAndEmptyResultsAreRefused) {
  const Result a = hashed(result_of({.p = 2, .m = 2})), b = hashed(result_of({.p = 2, .m = 4}));
  EXPECT_EQ(message(a, b),
            "b.result: plan_hash: found " + b.trace.plan_hash + ", expected " + a.trace.plan_hash + ", the plan of a.result");
  Result empty = a;
  empty.trace.spans.clear();
  EXPECT_EQ(message(a, empty), "b.result: spans: found none, expected the spans of a run");
  Result partial = a;
  partial.trace.spans.pop_back();
  EXPECT_EQ(compare(a, partial).without_twin, 1);
}

TEST(CompareText, FitsAHundredColumns) {
  const Pipeline pipeline{.p = 4, .m = 4, .latency = 1, .reduce = 1, .update = 1};
  Result a = hashed(result_of(pipeline));
  for (Role& role : a.plan.roles) role.layers = {std::string(60, 'x')};
  for (Segment& segment : a.plan.segments)
    for (Instruction& instruction : segment.instructions) instruction.layer = {0};
  std::istringstream lines(compare_text(compare(a, hashed(result_of(pipeline, Fold::Roles, {1, 2})))));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(width_of(line), 100) << line;
  EXPECT_GT(count, 20);
}

TEST(CompareText, JsonHasEveryNumberTwice) {
  const Pipeline pipeline{.p = 1, .m = 2};
  const JsonReader json = JsonReader::parse(
      compare_json(compare(hashed(result_of(pipeline)), hashed(result_of(pipeline, Fold::None, {0, 2})))), "out");
  for (const char* key : {"iteration_time", "bubble", "memory"})
    for (const char* field : {"predicted", "measured", "signed_error"}) EXPECT_TRUE(json.at(key).has(field)) << key;
  EXPECT_DOUBLE_EQ(json.at("iteration_time").at("signed_error").as_double(), -0.5);
  ASSERT_EQ(json.at("op_kinds").size(), 3U);
  for (const JsonReader& row : json.at("op_kinds").elements()) EXPECT_DOUBLE_EQ(row.at("signed_error").as_double(), -0.5);
}

// Stream 0 of the only class: thread 0 shows the prediction, thread 1 the measurement, 6 slices each.
TEST(CompareTrace, TwinsAreOnAdjacentTracks) {
  const Pipeline pipeline{.p = 1, .m = 2};
  const std::string text = compare_trace(hashed(result_of(pipeline)), hashed(result_of(pipeline, Fold::None, {0, 2})));
  std::map<std::int64_t, double> length;
  std::map<std::int64_t, int> slices;
  for (const JsonReader& event : JsonReader::parse(text, "trace").at("traceEvents").elements()) {
    if (event.at("ph").as_string() != "X") continue;
    length[event.at("tid").as_int()] += event.at("dur").as_double();
    ++slices[event.at("tid").as_int()];
  }
  EXPECT_EQ(slices, (std::map<std::int64_t, int>{{0, 6}, {1, 6}}));
  EXPECT_DOUBLE_EQ(length[0], 6000);
  EXPECT_DOUBLE_EQ(length[1], 12000);
}

}  // namespace
}  // namespace foreshard::compare_test
