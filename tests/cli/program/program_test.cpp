// The program in this process: exit codes, where output goes, and the message of each wrong option.
#include "cli/program/program.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/program/help.h"
#include "core/base/data_path.h"
#include "core/json/json.h"
#include "core/strategy/strategy_options.h"
#include "tests/cli/run_line.h"

namespace foreshard::program_test {

static void expect_refused(const std::string& line, const std::string& message) {
  const RanLine r = run_line(line);
  EXPECT_EQ(r.code, ExitCode::WrongInput) << line;
  EXPECT_EQ(r.err, "foreshard: " + message + "\n") << line;
  EXPECT_EQ(r.out, "") << line;
}

TEST(Program, ExitCodesAreThoseOfTheDesign) {
  EXPECT_EQ(run_line("--version").code, ExitCode::Ok);
  EXPECT_EQ(run_line("--help").code, ExitCode::Ok);
  EXPECT_EQ(run_line("").code, ExitCode::WrongInput);
  EXPECT_EQ(run_line("show schedule 1f1b --pp 2 --micro-batches 4").code, ExitCode::Ok);
  EXPECT_EQ(run_line("show schedule gpipe --pp 2 --micro-batches 4 --virtual-stages 2").code, ExitCode::Infeasible);
  EXPECT_EQ(static_cast<int>(ExitCode::WrongInput), 1);
  EXPECT_EQ(static_cast<int>(ExitCode::Infeasible), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::DeviceFailure), 3);
}

TEST(Program, UnknownVerbsNameTheNearest) {
  const RanLine r = run_line("shcedule");
  EXPECT_EQ(r.code, ExitCode::WrongInput);
  EXPECT_TRUE(r.err.starts_with("foreshard: command line: verb: found \"shcedule\", expected one of ")) << r.err;
  EXPECT_NE(run_line("show schedul").err.find("(nearest: show schedule)"), std::string::npos);
  EXPECT_NE(run_line("help simulat").err.find("(nearest: simulate)"), std::string::npos);
  EXPECT_EQ(run_line("help show plan").out, run_line("show plan --help").out);
}

TEST(Program, UnknownOptionsNameTheNearest) {
  expect_refused("show schedule 1f1b --pp 2 --micro-batch 4",
                 "command line: --micro-batch: found an unknown option, expected --micro-batches (nearest)");
  expect_refused(
      "show schedule 1f1b --pp 2 --micro-batches 4 --zzzzzzzzzzz",
      "command line: --zzzzzzzzzzz: found an unknown option, expected an option of \"foreshard show schedule --help\"");
}

TEST(Program, ValuesAreChecked) {
  const std::string base = "show schedule 1f1b --micro-batches 4 ";
  expect_refused(base + "--pp four", "command line: --pp: found \"four\", expected a whole number from 1 to 4096");
  expect_refused(base + "--pp 0", "command line: --pp: found \"0\", expected a whole number from 1 to 4096");
  expect_refused(base + "--pp -1", "command line: --pp: found \"-1\", expected a whole number from 1 to 4096");
  expect_refused(base + "--pp 2.5", "command line: --pp: found \"2.5\", expected a whole number from 1 to 4096");
  expect_refused(base + "--pp 99999999999999999999",
                 "command line: --pp: found \"99999999999999999999\", expected a whole number from 1 to 4096");
  expect_refused(base + "--pp", "command line: --pp: found no value, expected P");
  expect_refused(base + "--pp --latency 1", "command line: --pp: found no value, expected P");
  expect_refused(base + "--pp 2 --pp 4", "command line: --pp: found 2 values, expected one");
  expect_refused(base + "--pp 2 more", "command line: show schedule: found \"more\", expected no further argument");
  expect_refused(base + "--pp 2 --latency nan", "command line: --latency: found \"nan\", expected a number from 0 to 1e+09");
  expect_refused(base + "--pp 2 --times 1,2",
                 "command line: --times: found \"1,2\", expected three numbers F,I,W from 0 to 1e9, such as 1,1,1");
  expect_refused("show schedule 1f1b --pp 2",
                 "command line: --micro-batches: found nothing, expected M: micro-batches per iteration; see \"foreshard show "
                 "schedule --help\"");
  expect_refused(
      "show schedule 1f1c --pp 2 --micro-batches 4",
      "command line: NAME: found \"1f1c\", expected one of gpipe, 1f1b, interleaved-1f1b, zb-h1, zb-h2, zb-v, looped-bfs, "
      "interleaved-zb-1p, v-half, v-min, chimera, dualpipe, dualpipe-v, 1f1b-cells, interleaved-cells, pipedream, "
      "pipedream-2bw, pipemare, zb-2p, file (nearest: 1f1b)");
}

TEST(Program, HelpOfEveryVerbFitsATerminalAndHasAnExample) {
  std::string all = program_help(verbs());
  for (const Verb& verb : verbs()) {
    EXPECT_FALSE(verb.examples.empty()) << verb.name;
    for (const std::string& example : verb.examples) EXPECT_TRUE(example.starts_with("foreshard " + verb.name)) << example;
    const RanLine r = run_line(verb.name + " --help");
    EXPECT_EQ(r.code, ExitCode::Ok);
    EXPECT_EQ(r.out, verb_help(verb));
    all += r.out;
  }
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kTextWidth) << line;
}

TEST(Program, EveryOptionHasHelp) {
  for (const Verb& verb : verbs())
    for (const VerbOption& option : verb.options) EXPECT_FALSE(option.shown_help().empty()) << verb.name << " " << option.name;
}

TEST(Program, ListsAreJsonWithTheirKeys) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> lists = {
      {"models", {"name", "family", "layers", "parameters"}},
      {"topologies", {"name", "nodes", "gpus_per_node", "gpu", "nics_per_node", "rails"}},
      {"schedules", {"name", "virtual_stages", "what"}},
      {"options", {"path", "flag", "type", "values", "default", "unit", "help", "constraint", "group"}},
      {"frameworks", {"name", "what"}},
      {"policies", {"name", "of", "zero", "what"}},
      {"choices", {"option", "default", "choices"}}};
  for (const auto& [what, keys] : lists) {
    const RanLine r = run_line("list " + what + " --json");
    EXPECT_EQ(r.code, ExitCode::Ok);
    const JsonReader json = JsonReader::parse(r.out, what);
    ASSERT_GT(json.size(), 0u) << what;
    for (const JsonReader& row : json.elements()) {
      row.only(keys);
      for (const std::string& key : keys) EXPECT_TRUE(row.has(key)) << what << " " << key;
    }
  }
}

TEST(Program, EveryShippedNameIsListed) {
  for (const std::string& name : shipped("models")) EXPECT_NE(run_line("list models").out.find(name), std::string::npos);
  const RanLine options = run_line("list options --json");
  for (const StrategyOption& option : strategy_options())
    EXPECT_NE(options.out.find("\"path\": \"" + option.path + "\""), std::string::npos) << option.path;
}

TEST(Wrapped, BreaksBetweenWords) {
  EXPECT_EQ(wrapped("aa bb cc", 2, 7), "aa bb\n  cc");
  EXPECT_EQ(wrapped("aaaaaaaaaa b", 0, 5), "aaaaaaaaaa\nb");
}

}  // namespace foreshard::program_test
