// Every option of every verb: changing it changes what one sees, or the program says why not. The options are those of the
// program's own table: a new one without a case fails.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include "core/strategy/strategy_options.h"
#include "tests/cli/option_effect.h"
#include "tests/cli/session.h"
#include "tests/how_many.h"

namespace foreshard::verb_effect_test {

namespace {

const std::string kNumber = "-?[0-9][0-9.e+-]*";

// What differs from run to run.
std::string clocks_of(const std::string& verb) {
  if (verb == "calibrate")
    return " *-?\\b[0-9][0-9.e+-]*( GB/s| us)?|\\bnan\\b|-{2,}| {2,}";  // tables have columns as wide as their numbers
  if (verb == "run") return "\"(iteration_)?time_s\": " + kNumber + "|iteration +" + kNumber + " [^ ]+";
  return "\"(measuring|screening|wall)_time_s\": " + kNumber;
}

std::vector<std::string> names_of_verbs() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.push_back(verb.name);
  return names;
}

// Those of the strategy are in strategy_effect_test.cpp.
std::set<std::string> strategy_flags(const Verb& verb) {
  std::set<std::string> flags;
  if (std::ranges::find(verb.options, "--strategy", &VerbOption::name) == verb.options.end()) return flags;
  for (const StrategyOption& option : strategy_options()) flags.insert(option.flag);
  return flags;
}

class Environment {
 public:
  explicit Environment(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> variables_;
};

// The first progress of a program, which ends with it: one part of all that it is going to do.
std::string first_progress(const std::string& program) {
  const std::string folder = testing::TempDir() + "first-progress-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const std::string told =
      run_in_shell(program + " --progress json 2>&1 >unused | grep -v --line-buffered ': 0}' | head -n 1", folder);
  std::filesystem::remove_all(folder);
  return told;
}

class EveryOption : public OptionEffects, public testing::WithParamInterface<std::string> {};

std::string line_of(const Verb& verb, std::string arguments) {
  if (arguments.starts_with("! ")) arguments = arguments.substr(2);
  return verb.name + " " + arguments;
}

}  // namespace

TEST_P(EveryOption, ChangesWhatIsSeenOrIsSaid) {
  const std::vector<Verb> all = verbs();
  const Verb& verb = *std::ranges::find(all, GetParam(), &Verb::name);
  const auto table = effect_cases().find(verb.name);
  ASSERT_TRUE(table != effect_cases().end()) << verb.name << " has no cases";
  const std::set<std::string> of_strategy = strategy_flags(verb);
  std::set<std::string> left;
  for (const VerbOption& option : verb.options)
    if (!of_strategy.contains(option.name)) left.insert(option.name);
  const std::set<std::string> known = left;
  for (const EffectCase& one : table->second) {
    EXPECT_TRUE(known.contains(one.option)) << verb.name << " has no " << one.option;
    left.erase(one.option);
  }
  for (const std::string& option : left) ADD_FAILURE() << verb.name << " " << option << " has no case";
  const bool slow =
      std::set<std::string>{"calibrate", "validate", "search", "sweep", "fit", "partition", "simulate", "ablate"}.contains(
          verb.name);
  for (const EffectCase& one : some_of(table->second, slow ? 6 : table->second.size())) {
    if (!one.reason.empty()) continue;
    const Environment environment(one.environment);
    const std::string clocks = one.shows.empty() ? clocks_of(verb.name) : clocks_of("run") + "|" + clocks_of("");
    const std::string base = line_of(verb, one.base);
    const std::string line = one.changed.starts_with("+") ? base + " " + one.changed.substr(1) : line_of(verb, one.changed);
    SCOPED_TRACE(one.option + ": " + line);
    const Seen after = one.shows.empty() ? see(line, clocks) : see(line, "");
    EXPECT_NE(after.code, ExitCode::Bug) << after.err;
    const Seen before = see_base(base, one.shows.empty() ? clocks : "");
    EXPECT_EQ(before.code != ExitCode::Ok, one.base.starts_with("! ")) << before.err;
    const bool named = after.err.find(one.option) != std::string::npos && after.err != before.err;
    if (!one.shows.empty()) {
      const std::regex shown(one.shows);
      EXPECT_TRUE(std::regex_search(after.out + after.err + after.files, shown)) << after.out << after.err << after.files;
      EXPECT_FALSE(std::regex_search(before.out + before.err + before.files, shown)) << before.out << before.err;
    } else if (after.code == ExitCode::WrongInput && before.code != ExitCode::WrongInput && verb.name != "check-plan") {
      EXPECT_TRUE(named) << "refused without a word about it: " << after.err;
    } else {
      EXPECT_TRUE(named || after.code != before.code || after.out != before.out || after.files != before.files)
          << "changes nothing, and nobody says so\n"
          << after.out << after.err;
    }
  }
}

// Without --quick they take half a minute: how much of it the first probe is tells how many there are.
TEST(QuickEffect, FewerProbes) {
  for (const std::string& program : {std::string("foreshard calibrate --precision fp32 --steps 2 --largest-product 16"),
                                     std::string(FORESHARD_TWIN_PROGRAM " selftest")}) {
    const std::string all = first_progress(program), few = first_progress(program + " --quick");
    EXPECT_TRUE(all.starts_with("{\"progress\": 0.")) << program << all;
    EXPECT_TRUE(few.starts_with("{\"progress\": 0.")) << program << few;
    EXPECT_NE(all, few) << program;
  }
}

INSTANTIATE_TEST_SUITE_P(OfVerb, EveryOption, testing::ValuesIn(names_of_verbs()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char letter) { return letter == ' ' || letter == '-'; }, '_');
                           return name;
                         });

}  // namespace foreshard::verb_effect_test
