// The command that shows a candidate of a search evaluates the same strategy.
#include "cli/parts/search_failed.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/json/json.h"
#include "tests/cli/run_line.h"

namespace foreshard::search_failed_test {

static const std::map<std::string, std::vector<std::string>> kJob = {
    {"--model", {"gpt2-355m"}}, {"--cluster", {"dgx-a100"}}, {"--set", {"model.n_layer=4", "strategy.tp=1"}}};

TEST(SearchFailed, TheCommandHasTheJobAndTheStrategy) {
  Strategy strategy;
  strategy.tp = 2, strategy.sequence_parallel = true, strategy.batch.global = 16;
  EXPECT_EQ(simulate_command(Arguments(kJob), strategy),
            "foreshard simulate --model gpt2-355m --cluster dgx-a100 --set model.n_layer=4 --tp 2 --sequence-parallel "
            "--global-batch 16");
}

// Simulated by its command, the winner takes as long as the search says.
TEST(SearchFailed, TheCommandEvaluatesTheStrategy) {
  const std::string file = testing::TempDir() + "/searched.strategy.json";
  const RanLine searched = run_line(
      "search --model gpt2-355m --cluster dgx-a100 --set model.n_layer=4 --global-batch 16 --seq 128 --refine 2 --top 1 --fix "
      "pp=2 --json "
      "--save-strategy " +
      file);
  ASSERT_EQ(searched.code, ExitCode::Ok) << searched.err;
  const JsonReader answer = JsonReader::parse(searched.out, "out");
  EXPECT_EQ(answer.at("failed").size(), 0U);
  const JsonReader best = answer.at("results").elements().front();
  const Strategy strategy = parse_strategy(read_file(file), file);
  const std::string command = simulate_command(Arguments(kJob), strategy);
  const RanLine ran = run_line(command.substr(command.find(' ') + 1) + " --granularity stage --json");
  ASSERT_EQ(ran.code, ExitCode::Ok) << command << "\n" << ran.err;
  EXPECT_EQ(JsonReader::parse(ran.out, "out").at("iteration_time_s").as_double(), best.at("simulated").as_double()) << command;
}

// What is told of failed candidates: on standard error, in the JSON, in the summary, and by the exit code.
TEST(SearchFailed, IsTold) {
  std::ostringstream out, err;
  const Console console = {out, err};
  SearchResult result;
  result.failed = {{.strategy = {.tp = 2}, .why = "a is false (here.cpp:1)", .candidates = 3}};
  ToldSearches searches(console);
  searches.tell(Arguments(kJob), {});
  EXPECT_EQ(searches.code(ExitCode::Ok), ExitCode::Ok);
  searches.tell(Arguments(kJob), result);
  EXPECT_EQ(searches.code(ExitCode::Ok), ExitCode::Bug);
  EXPECT_EQ(err.str(),
            "foreshard: 3 strategies left out: internal error: a is false (here.cpp:1); please report it with this command: "
            "foreshard simulate "
            "--model gpt2-355m --cluster dgx-a100 --set model.n_layer=4 --tp 2\n");
  JsonWriter json(0);
  write_failed(json, Arguments(kJob), result.failed);
  const JsonReader failed = JsonReader::parse(json.text(), "out").elements().front();
  EXPECT_EQ(failed.at("why").as_string(), "a is false (here.cpp:1)");
  EXPECT_EQ(failed.at("candidates").as_int(0, 10), 3);
  EXPECT_EQ(failed.at("command").as_string().find("foreshard simulate"), 0U);
}

}  // namespace foreshard::search_failed_test
