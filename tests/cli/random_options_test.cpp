// Random command lines: whatever a person types, the answer is a result, a refusal with its reason or one line that says what
// was wrong. Never a crash, a hang, or a number that is not one.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/json/json.h"
#include "core/strategy/strategy_options.h"
#include "tests/cli/run_line.h"
#include "tests/how_many.h"

namespace foreshard::random_options_test {

static const std::vector<std::string> kModels = {"gpt2-124m", "toy-matmul", "bert-large", "llama-3-8b", "resnet-50"};
static const std::vector<std::string> kClusters = {"dgx-a100", "workstation-rtx4090", "pcie-a100-8", "eth25-a100-x2"};
static const std::vector<std::string> kValues = {"0",    "1",   "2",    "3",     "4",   "8",    "-1",        "1e3", "abc",
                                                 "none", "all", "full", "true",  "x",   "16",   "0.5",       "nan", "1,2",
                                                 "12x1", ",",   "auto", "flash", "5%",  "4 MB", "inf",       "2x6", "=",
                                                 "tp",   "sgd", "ring", "mlp",   "fp8", "1e99", "1000000000"};

template <class T>
static const T& pick(const std::vector<T>& from, std::mt19937& random) {
  return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random)];
}

// Half of the values are words that the option knows, so that many lines get far.
static std::string value_for(const StrategyOption& option, std::mt19937& random) {
  if (!option.values.empty() && random() % 2 == 0) return pick(option.values, random);
  if (option.type == OptionType::Integer && random() % 2 == 0) return std::to_string(1 << random() % 4);
  return pick(kValues, random);
}

static std::vector<std::string> random_line(std::mt19937& random) {
  std::vector<std::string> words = {
      "simulate", "--model", pick(kModels, random), "--cluster", pick(kClusters, random), "--json", "--seq", "128"};
  const std::vector<StrategyOption>& options = strategy_options();
  for (std::size_t n = random() % 6; n > 0; --n) {
    const StrategyOption& option = pick(options, random);
    if (option.path == "seq" || std::find(words.begin(), words.end(), option.flag) != words.end()) continue;
    words.push_back(option.flag);
    if (option.type != OptionType::Flag) words.push_back(value_for(option, random));
  }
  if (random() % 4 == 0) words.push_back("--ignore-memory");
  if (random() % 8 == 0) words.insert(words.end(), {"--gpus", pick(kValues, random)});
  if (random() % 8 == 0) words.insert(words.end(), {"--granularity", random() % 2 == 0 ? "op" : "stage"});
  return words;
}

static void check_answer(const RanLine& ran) {
  switch (ran.code) {
    case ExitCode::WrongInput:
      EXPECT_EQ(ran.out, "");
      EXPECT_TRUE(ran.err.starts_with("foreshard: ")) << ran.err;
      EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
      EXPECT_NE(ran.err.find(": found "), std::string::npos) << ran.err;
      return;
    case ExitCode::Ok:
    case ExitCode::Infeasible: {
      const JsonReader json = JsonReader::parse(ran.out, "output");  // NaN and infinity are no JSON
      EXPECT_TRUE(ran.code == ExitCode::Ok || !json.at("feasible").as_bool());
      EXPECT_EQ(json.at("feasible").as_bool(), json.at("infeasible_reason").is_null());
      EXPECT_TRUE(json.at("iteration_time_s").is_null() || json.at("iteration_time_s").as_double() > 0);
      return;
    }
    case ExitCode::DeviceFailure:
    case ExitCode::Bug:
    case ExitCode::Interrupted: ADD_FAILURE() << static_cast<int>(ran.code) << " " << ran.err;
  }
}

TEST(RandomOptions, AlwaysGetAnAnswer) {
  std::mt19937 random(20240731);
  int simulated = 0;
  for (int i = 0; i < how_many(100, 300); ++i) {
    const std::vector<std::string> words = random_line(random);
    std::string line;
    for (const std::string& word : words) line += "'" + word + "' ";
    SCOPED_TRACE(line);
    const RanLine ran = run_words(words);
    check_answer(ran);
    simulated += ran.code == ExitCode::Ok;
    if (HasFailure()) break;
  }
  EXPECT_GT(simulated, how_many(10, 30)) << "the lines are too wild to test anything";
}

}  // namespace foreshard::random_options_test
