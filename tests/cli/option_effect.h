// What a changed option changes: the line with and without it, and everything that one can see of both.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/run_line.h"

namespace foreshard {

struct EffectCase {
  std::string option = {};
  std::string base = {};     // arguments after the verb; "! ..." where they are refused
  std::string changed = {};  // "+ ...": the base and these; else a whole line
  std::string shows = {};    // a regular expression that fits what the changed line tells and not what the base tells
  std::map<std::string, std::string> environment = {};
  std::string reason = {};  // the test that sees the option's effect; then there are no lines
};

const std::map<std::string, std::vector<EffectCase>>& effect_cases();  // by verb; without the options of the strategy

// Values other than the default, by the path of the option of the strategy.
const std::map<std::string, std::vector<std::string>>& other_values();

struct Seen {
  ExitCode code = ExitCode::Ok;
  std::string out = {}, err = {}, files = {};  // without what the clock says
};

// Each line runs in a folder of its own; "@/NAME" is a file that effect_file() knows how to make.
class OptionEffects : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  // `clocks`: a regular expression of what differs from run to run.
  Seen see(const std::string& line, const std::string& clocks);
  // Sees `line` once per test, or twice: it is the same both times, but for `clocks` if there are any.
  const Seen& see_base(const std::string& line, const std::string& clocks);

 private:
  std::string with_files(const std::string& line);

  std::filesystem::path before_, folder_;
  std::map<std::string, Seen> bases_ = {};
};

}  // namespace foreshard
