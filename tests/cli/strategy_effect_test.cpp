// Options of the strategy in the verbs that search, cut or lower: as in option_effect_test.cpp for simulate.
#include <algorithm>
#include <regex>
#include <set>

#include "core/json_edit.h"
#include "core/strategy_options.h"
#include "strategy/search.h"
#include "tests/cli/option_effect.h"

namespace foreshard {

namespace {

struct Verbs {
  std::string verb = {};
  std::vector<std::string> bases = {};
};

const std::string kGpt = "--model gpt2-124m --seq 256 --global-batch 16 --cluster ";
const std::string kSearch = " --top 1 --refine 2 --fix cp=1 --fix virtual_stages=1 --json ";

std::vector<Verbs> verbs_with_strategies() {
  return {{"search", {kGpt + "dgx-a100 --gpus 2" + kSearch, kGpt + "dgx-a100 --gpus 4 --optimizer sgd" + kSearch}},
          {"sweep", {kGpt + "dgx-a100 --gpus 2 --vary cluster.power_per_node=1,2" + kSearch}},
          {"partition", {kGpt + "dgx-a100 --gpus 2 --set model.n_layer=4 --json"}},
          {"lower",
           {kGpt + "dgx-a100 --tp 2 --pp 2 --save-plan p.plan.json", kGpt + "dgx-a100 --zero 2 --save-plan p.plan.json",
            kGpt + "dgx-a100 --gpus 4 --cp 2 --save-plan p.plan.json",
            kGpt + "eth25-a100-x2 --pp 2 --optimizer sgd --save-plan p.plan.json"}}};
}

// What the answer says besides repeating the strategy.
std::string numbers(const Seen& seen) {
  static const std::regex strategy(R"rx("strategy": ?\{([^{}]|\{[^{}]*\})*\})rx"), origin(R"("origin": ?"[^\n]*)");
  return std::regex_replace(std::regex_replace(seen.out + seen.files, strategy, ""), origin, "");
}

class StrategyOptions : public OptionEffects, public testing::WithParamInterface<Verbs> {};

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
  for (const StrategyOption& option : strategy_options()) {
    if (option.flag.empty()) continue;
    if (option.path == "dp") continue;  // the number that the GPUs give is said, and no mistake
    // Values that hold without being given, where nothing is said.
    if (option.path == "attention" || option.path == "zero_group" || option.path == "placement") continue;
    if (option.path == "reserve") continue;  // a limit: what stays below it is the same
    const auto& varied = searched_options();
    const bool searched = (GetParam().verb == "search" || GetParam().verb == "sweep") &&
                          std::find(varied.begin(), varied.end(), option.path) != varied.end();
    if (searched) continue;  // a limit of the search, whose best may lie inside: in tests/strategy
    const auto values = other_values().find(option.path);
    ASSERT_TRUE(values != other_values().end()) << option.path << " has no case: give values other than its default";
    for (const std::string& base : GetParam().bases)
      for (const std::string& value : values->second) {
        if (value.find(' ') != std::string::npos) continue;
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
        EXPECT_TRUE(numbers(after) != numbers(before) || after.err.find(option.flag + " changes nothing") != std::string::npos)
            << line << ": the answer is the same and nobody says so\n"
            << after.err;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(OfVerb, StrategyOptions, testing::ValuesIn(verbs_with_strategies()),
                         [](const testing::TestParamInfo<Verbs>& info) { return info.param.verb; });

// Every verb that takes a strategy is among them, or is simulate.
TEST(StrategyOptionsOf, EveryVerbThatTakesThem) {
  std::set<std::string> known = {"simulate"};
  for (const Verbs& one : verbs_with_strategies()) known.insert(one.verb);
  for (const Verb& verb : verbs()) {
    std::set<std::string> flags;
    for (const VerbOption& option : verb.options) flags.insert(option.name);
    if (!flags.contains("--strategy")) continue;
    EXPECT_TRUE(known.contains(verb.name)) << verb.name;
    for (const StrategyOption& option : strategy_options())
      EXPECT_TRUE(option.flag.empty() || flags.contains(option.flag)) << verb.name << option.flag;
  }
}

}  // namespace foreshard
