// search --progress json: the lines that a program reads while it works.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/json/json.h"
#include "core/strategy/strategy.h"
#include "tests/cli/run_line.h"

namespace foreshard::search_progress_test {

static std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Every strategy that is ranked at the end was told before, with the same numbers, and the simulated ones twice.
TEST(SearchProgress, SearchTellsEveryCandidateAsItComes) {
  const RanLine r = run_line(
      "search --model gpt2-124m --cluster dgx-a100 --gpus 8 --global-batch 16 --seq 128 --refine 6 --top 2 --rows 100 "
      "--fix recompute=none --progress json --json --threads 2");
  ASSERT_EQ(r.code, ExitCode::Ok) << r.err;
  std::map<std::string, std::optional<double>> told;
  for (const std::string& line : lines_of(r.err)) {
    const JsonReader json = JsonReader::parse(line, "line");
    if (!json.has("candidate")) {
      EXPECT_TRUE(json.has("progress")) << line;
      continue;
    }
    const JsonReader candidate = json.at("candidate");
    EXPECT_FALSE(candidate.has("rank"));
    const std::string key = std::to_string(candidate.at("estimate").at("time_s").as_double()) + " " +
                            std::to_string(candidate.at("peak_memory_bytes").as_int()) + " " +
                            candidate.at("strategy").at("schedule").found();
    const JsonReader simulated = candidate.at("simulated");
    if (simulated.is_null())
      told.try_emplace(key);
    else
      told[key] = simulated.as_double();
  }
  const JsonReader answer = JsonReader::parse(r.out, "answer");
  const std::vector<JsonReader> ranked = answer.at("results").elements();
  ASSERT_GE(ranked.size(), 4u);
  int simulated = 0;
  for (const JsonReader& candidate : ranked) {
    const std::string key = std::to_string(candidate.at("estimate").at("time_s").as_double()) + " " +
                            std::to_string(candidate.at("peak_memory_bytes").as_int()) + " " +
                            candidate.at("strategy").at("schedule").found();
    ASSERT_TRUE(told.contains(key)) << key;
    if (candidate.at("simulated").is_null()) continue;
    ++simulated;
    EXPECT_EQ(told.at(key), candidate.at("simulated").as_double());
  }
  EXPECT_GE(simulated, 2);
}

// What is wrong with the last one of several jobs is told before the first one is searched.
TEST(SearchProgress, NoSearchBeginsWhileAJobOfItIsWrong) {
  const std::string job = "--model gpt2-124m --gpus 8 --global-batch 16 --seq 128 --refine 2 --top 0 --progress json ";
  for (const std::string& line : {"search " + job + "--cluster dgx-a100 --cluster nowhere",
                                  "sweep " + job + "--cluster dgx-a100 --vary model.n_layer=12,none"}) {
    const RanLine r = run_line(line);
    EXPECT_EQ(r.code, ExitCode::WrongInput) << line;
    EXPECT_EQ(r.err.find("progress"), std::string::npos) << r.err;
  }
}

}  // namespace foreshard::search_progress_test
