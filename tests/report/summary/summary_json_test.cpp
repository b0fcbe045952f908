#include "report/summary/summary_json.h"

#include <gtest/gtest.h>

#include "core/json/json.h"
#include "tests/report/summaries.h"

namespace foreshard::summary_json_test {
namespace {

const SummaryOrigin kOrigin{.model = "gpt3-175b",
                            .cluster = "dgx-a100-x128",
                            .strategy_json = R"({"tp": 8})",
                            .wall_time_s = 0.02,
                            .makespan_s = 41.3187000001,
                            .simgrid_events = 12345,
                            .granularity = Granularity::Stage,
                            .folding = Folding::Tp};

TEST(SummaryJson, HasEveryPromisedKey) {
  const JsonReader json = JsonReader::parse(summary_json(summaries::typical(3), kOrigin), "out");
  for (const std::string& key : summaries::promised_keys()) EXPECT_TRUE(json.has(key)) << key;
  for (const char* key : {"model", "hardware", "convention"}) EXPECT_TRUE(json.at("flops").has(key)) << key;
  for (const char* key : {"max", "per_stage", "allocated", "with_framework", "reserved"})
    EXPECT_TRUE(json.at("peak_memory_bytes").has(key)) << key;
  ASSERT_EQ(json.at("stage_times").size(), 3u);
  for (const char* key : {"forward_s", "backward_input_s", "backward_weight_s", "p2p_s"})
    EXPECT_TRUE(json.at("stage_times").at(0).has(key)) << key;
  for (const char* key : {"wall_time_s", "makespan_s", "simgrid_events", "granularity", "folding"})
    EXPECT_TRUE(json.at("simulation").has(key)) << key;
}

TEST(SummaryJson, CarriesTheNumbers) {
  const Summary summary = summaries::typical(3);
  const JsonReader json = JsonReader::parse(summary_json(summary, kOrigin), "out");
  EXPECT_EQ(json.at("strategy").at("tp").as_int(), 8);
  EXPECT_TRUE(json.at("feasible").as_bool());
  EXPECT_TRUE(json.at("infeasible_reason").is_null());
  EXPECT_EQ(json.at("iteration_time_s").as_double(), 41.3187);
  double sum = 0;
  for (const auto& [cause, share] : json.at("bubble_by_cause").members()) sum += share.as_double();
  EXPECT_DOUBLE_EQ(sum, json.at("bubble_fraction").as_double());
  // 4 + 4 + 24 + 8 + 2 + 1/4 GiB on stage 0; the categories sum to the peak of every stage.
  EXPECT_EQ(json.at("peak_memory_bytes").at("max").as_int(), 42LL * (1 << 30) + (1 << 28));
  for (std::size_t r = 0; r < 3; ++r) {
    std::int64_t bytes = 0;
    for (const auto& [category, value] : json.at("memory_by_category").at(r).members())
      if (category != "role") bytes += value.as_int();
    EXPECT_EQ(bytes, json.at("peak_memory_bytes").at("per_stage").at(r).as_int());
  }
  EXPECT_EQ(json.at("static_bytes").at("per_stage").at(0).as_int(), 32LL << 30);
  EXPECT_EQ(json.at("link_utilization").at(0).at("name").as_string(), "node0/nic->leaf");
  EXPECT_EQ(json.at("simulation").at("granularity").as_string(), "stage");
  EXPECT_EQ(json.at("simulation").at("folding").as_string(), "tp");
  EXPECT_EQ(json.at("simulation").at("makespan_s").as_double(), 41.3187000001);
}

void expect_documented(const JsonReader& json, const std::string& text) {
  if (json.is_object())
    for (const auto& [key, value] : json.members()) {
      EXPECT_NE(text.find("`" + key + "`"), std::string::npos) << key << " is not in docs/json-output.md";
      if (key != "strategy") expect_documented(value, text);
    }
  if (json.is_array())
    for (const JsonReader& element : json.elements()) expect_documented(element, text);
}

TEST(SummaryJson, EveryKeyIsDocumented) {
  const std::string text = read_file(std::string(FORESHARD_SOURCE) + "/docs/json-output.md");
  expect_documented(JsonReader::parse(summary_json(summaries::typical(2), kOrigin), "out"), text);
}

TEST(SummaryJson, WhatWasNotPlayedIsNull) {
  Summary summary = summaries::typical(2);
  summary.iteration_time = {};
  summary.feasible = false;
  summary.infeasible_reason = "stage 0 is too large";
  summary.would_help = {"--tp 4"};
  summary.cost_per_million_tokens = {};
  const JsonReader json = JsonReader::parse(summary_json(summary, {}), "out");
  EXPECT_FALSE(json.at("feasible").as_bool());
  EXPECT_EQ(json.at("infeasible_reason").as_string(), "stage 0 is too large");
  EXPECT_EQ(json.at("would_help").at(0).as_string(), "--tp 4");
  for (const char* key : {"strategy", "iteration_time_s", "tokens_per_s", "bubble_fraction", "cost_per_million_tokens"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
  EXPECT_GT(json.at("peak_memory_bytes").at("max").as_int(), 0);
}

}  // namespace
}  // namespace foreshard::summary_json_test
