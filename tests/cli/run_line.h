// Runs a command line in this process.
#pragma once

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program/program.h"

namespace foreshard {

struct RanLine {
  ExitCode code = ExitCode::Ok;
  std::string out = {}, err = {};
};

inline RanLine run_words(const std::vector<std::string>& words) {
  std::ostringstream out, err;
  const ExitCode code = run_program(words, {out, err});
  return {code, out.str(), err.str()};
}

// Prose without the breaks of its lines: what goes on is indented.
inline std::string on_one_line(const std::string& text) { return std::regex_replace(text, std::regex("\n +"), " "); }

// Words between blanks.
inline RanLine run_line(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return run_words(words);
}

}  // namespace foreshard
