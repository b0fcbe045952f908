// Options of the strategy in the verbs that search, cut or lower: as in option_effect_test.cpp for simulate. A value that the
// answer has without it is no change.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "core/strategy/strategy_options.h"
#include "tests/cli/option_effect.h"
#include "tests/how_many.h"

namespace foreshard::strategy_effect_test {

namespace {

struct Verbs {
  std::string verb = {};
  std::vector<std::string> bases = {};
};

const std::string kGpt = "--model gpt2-124m --set model.n_layer=4 --seq 256 --global-batch 16 --cluster ";
const std::string kFewStrategies =
    "--model gpt2-124m --set model.n_layer=4 --seq 256 --global-batch 4 --cluster ";  // few strategies to try
const std::string kSearch = " --top 1 --refine 2 --fix cp=1 --fix virtual_stages=1 --json ";

std::vector<Verbs> verbs_with_strategies() {
  return {{"search",
           {kFewStrategies + "dgx-a100 --gpus 2" + kSearch,
            kGpt + "dgx-a100 --gpus 4 --optimizer sgd --fix micro_batch=1" + kSearch}},
          {"sweep", {kFewStrategies + "dgx-a100 --gpus 2 --vary cluster.power_per_node=2" + kSearch}},
          {"ablate", {kGpt + "dgx-a100 --gpus 4 --tp 2 --micro-batch 2 --step whole --json"}},
          {"partition", {kGpt + "dgx-a100 --gpus 2 --json --save-strategy s.strategy.json"}},
          {"lower",
           {kGpt + "dgx-a100 --tp 2 --pp 2 --json --save-plan p.plan.json",
            kGpt + "dgx-a100 --zero 2 --json --save-plan p.plan.json",
            kGpt + "dgx-a100 --gpus 4 --cp 2 --json --save-plan p.plan.json",
            kGpt + "eth25-a100-x2 --pp 2 --optimizer sgd --json --save-plan p.plan.json"}}};
}

const std::regex kStrategy(R"rx("strategy": ?(\{([^{}]|\{[^{}]*\})*\}))rx"), kSaved("s[.]strategy[.]json:\n([^\\0]*)");

// What the answer says besides repeating the strategy.
std::string numbers(const Seen& seen) {
  static const std::regex origin(R"("origin": ?"[^\n]*)");
  std::string text = seen.out + seen.files;
  for (const std::regex* repeated : {&kStrategy, &kSaved, &origin}) text = std::regex_replace(text, *repeated, "");
  return text;
}

// Whether the first strategy of the answer has this value without being asked for it.
bool holds(const Seen& seen, const StrategyOption& option, const std::string& value) {
  std::smatch found;
  if (!std::regex_search(seen.out, found, kStrategy) && !std::regex_search(seen.files, found, kSaved)) return false;
  Strategy asked;
  option.set(asked, option.type == OptionType::Flag ? "true" : value, "test");
  return option.get(parse_strategy(found[1].str(), "answer")) == option.get(asked);
}

class StrategyOptions : public OptionEffects, public testing::WithParamInterface<Verbs> {};

std::set<std::string> flags_of(const std::string& verb) {
  const std::vector<Verb> all = verbs();
  std::set<std::string> flags;
  for (const VerbOption& option : std::ranges::find(all, verb, &Verb::name)->options) flags.insert(option.name);
  return flags;
}

// The words of `base` with this option instead of its own.
std::string with_option(const std::string& base, const StrategyOption& option, const std::string& value) {
  std::istringstream in(base);
  std::string line;
  for (std::string word; in >> word;) {
    if (word == option.flag && option.type != OptionType::Flag)
      in >> word;
    else if (word != option.flag)
      line += word + " ";
  }
  return line + option.flag + (option.type == OptionType::Flag ? "" : " " + value);
}

}  // namespace

TEST_P(StrategyOptions, ChangeTheAnswerOrAreSaid) {
  const std::string clocks = "\"(measuring|screening|wall)_time_s\": -?[0-9][0-9.e+-]*";
  std::vector<const StrategyOption*> options;
  for (const StrategyOption& option : strategy_options()) {
    if (option.flag.empty() || !flags_of(GetParam().verb).contains(option.flag)) continue;
    ASSERT_TRUE(other_values().contains(option.path)) << option.path << " has no case: give values other than its default";
    options.push_back(&option);
  }
  for (const StrategyOption* one : some_of(options, 12)) {
    const StrategyOption& option = *one;
    const auto values = other_values().find(option.path);
    for (const std::string& value : values->second)
      for (const std::string& base : GetParam().bases) {  // until it changes an answer
        if ((base + " ").find(" " + option.flag + " " + value + " ") != std::string::npos) continue;  // as it is
        const std::string line = GetParam().verb + " " + with_option(base, option, value);
        const Seen after = see(line, clocks);
        EXPECT_NE(after.code, ExitCode::Bug) << line << after.err;
        if (after.code != ExitCode::Ok) {
          EXPECT_FALSE(after.err.empty() && after.out.empty()) << line;
          continue;
        }
        const Seen& before = see_base(GetParam().verb + " " + base, clocks);
        EXPECT_EQ(before.code, ExitCode::Ok) << base << before.err;
        if (holds(before, option, value)) continue;
        if (numbers(after) != numbers(before)) break;
        EXPECT_NE(after.err.find(option.flag + " changes nothing"), std::string::npos)
            << line << ": the answer is the same and nobody says so\n"
            << after.err;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(OfVerb, StrategyOptions, testing::ValuesIn(verbs_with_strategies()),
                         [](const testing::TestParamInfo<Verbs>& info) { return info.param.verb; });

// Every verb that takes a strategy is among them, or is simulate. Partition finds degrees and orders by itself; show policies prints what
// lower obeys, which is not all that a strategy says (the memory that stays free).
TEST(StrategyOptionsOf, EveryVerbThatTakesThem) {
  const std::set<std::string> found = {"--dp",
                                       "--tp",
                                       "--pp",
                                       "--cp",
                                       "--context",
                                       "--sequence-parallel",
                                       "--virtual-stages",
                                       "--schedule",
                                       "--schedule-times",
                                       "--microbatch-group",
                                       "--delay-wgrad",
                                       "--layer-split",
                                       "--stages",
                                       "--placement",
                                       "--zero",
                                       "--zero-group"};
  std::set<std::string> known = {"simulate", "show policies"};
  for (const Verbs& one : verbs_with_strategies()) known.insert(one.verb);
  for (const Verb& verb : verbs()) {
    const std::set<std::string> flags = flags_of(verb.name);
    if (!flags.contains("--strategy")) continue;
    EXPECT_TRUE(known.contains(verb.name)) << verb.name;
    for (const StrategyOption& option : strategy_options())
      EXPECT_EQ(flags.contains(option.flag), verb.name != "partition" || !found.contains(option.flag))
          << verb.name << option.flag;
  }
}

// One thing changes nothing, several change nothing.
TEST(StrategyOptionsOf, WhatAFileSetsOfPartitionIsSaidInGoodGrammar) {
  const std::string file = testing::TempDir() + "first-grammar-" + std::to_string(::getpid()) + ".strategy.json";
  const std::string job =
      "partition --model gpt2-124m --seq 256 --global-batch 16 --cluster dgx-a100 --gpus 2 --strategy " + file;
  write_file(file, R"({"zero": 1})");
  EXPECT_NE(run_line(job).err.find("--zero of " + file + " changes nothing: partition does not look at it\n"),
            std::string::npos)
      << run_line(job).err;
  write_file(file, R"({"zero": 1, "tp": 2})");
  EXPECT_NE(run_line(job).err.find(" of " + file + " change nothing: partition does not look at them\n"), std::string::npos)
      << run_line(job).err;
  std::filesystem::remove(file);
}

// What partition finds by itself and --set or a file give all the same is said.
TEST(StrategyOptionsOf, PartitionSaysWhatItFindsByItself) {
  const std::string job =
      "partition --model gpt2-124m --seq 256 --global-batch 16 --cluster dgx-a100 --gpus 2 --set model.n_layer=4 ";
  EXPECT_EQ(run_line(job + "--tp 2").code, ExitCode::WrongInput);
  for (const char* setting : {"tp=2", "placement=role,tp,cp,dp", "zero=1"}) {
    const RanLine ran = run_line(job + "--set strategy." + setting);
    const std::string path = std::string(setting).substr(0, std::string(setting).find('='));
    EXPECT_EQ(ran.code, ExitCode::Ok) << ran.err;
    EXPECT_NE(ran.err.find("--set strategy." + path + " changes nothing: partition does not look at it"), std::string::npos)
        << ran.err;
  }
}

}  // namespace foreshard::strategy_effect_test
