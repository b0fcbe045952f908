// Sessions: text files that show commands and what they print. Everything between "```console" and "```" is one:
//   $ foreshard list schedules
//   name  ...
//   [exit 2]          only when the exit code is not 0
// A line that is only "..." stands for any number of lines. After "```console measured" numbers with their unit of time may be
// any: what the machine decides is shown as it was once, and only its form is compared.
#pragma once

#include <string>
#include <vector>

namespace foreshard {

struct Command {
  std::string line = {};    // after "$ "; a final backslash joins the next line
  std::string output = {};  // standard output and standard error together, then "[exit N]" unless 0
  bool measured = false;
  bool operator==(const Command&) const = default;
};

std::vector<Command> commands_of(const std::string& text);
// The text with the outputs of all its commands replaced, in order.
std::string with_outputs(const std::string& text, const std::vector<std::string>& outputs);

// Runs a line in a shell in a fresh folder, `foreshard` being the program of this build.
std::string run_in_shell(const std::string& line, const std::string& folder);

// The text with every number and unit of time as "#", and one blank or rule for many.
std::string without_numbers(const std::string& text);

// Whether `actual` is `expected`, whose lines "..." stand for any lines.
bool output_matches(const std::string& expected, const std::string& actual);

std::string read_text(const std::string& path);

}  // namespace foreshard
