#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tests/cli/session.h"

namespace foreshard {

static std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

static const std::string kMeasured = "```console measured";

// Calls `on_text` for lines that stay, `on_command` for those of a command, `on_end` where its output ends.
template <class OnText, class OnOutput, class OnEnd>
static void walk(const std::string& text, OnText on_text, OnOutput on_output, OnEnd on_end) {
  bool inside = false, running = false, continued = false;
  for (const std::string& line : lines_of(text)) {
    const bool border = line.starts_with("```");
    const bool prompt = inside && line.starts_with("$ ");
    if (running && !continued && (border || prompt)) on_end(), running = false;
    if (border) inside = !inside && (line == "```console" || line == kMeasured);
    if (running && !continued) {
      on_output(line);
    } else {
      on_text(line, prompt || continued);
      running = running || prompt;
      continued = (prompt || continued) && line.ends_with("\\");
    }
  }
  if (running) on_end();
}

std::vector<Command> commands_of(const std::string& text) {
  std::vector<Command> commands;
  Command current;
  bool measured = false;
  walk(
      text,
      [&](const std::string& line, bool of_command) {
        if (line.starts_with("```")) measured = line == kMeasured;
        current.measured = measured;
        if (of_command) current.line += (line.starts_with("$ ") ? line.substr(2) : line) + "\n";
      },
      [&](const std::string& line) { current.output += line + "\n"; }, [&] { commands.push_back(std::exchange(current, {})); });
  return commands;
}

std::string with_outputs(const std::string& text, const std::vector<std::string>& outputs) {
  std::string out;
  std::size_t next = 0;
  walk(
      text, [&](const std::string& line, bool) { out += line + "\n"; }, [](const std::string&) {},
      [&] { out += outputs.at(next++); });
  return out;
}

std::string run_in_shell(const std::string& line, const std::string& folder) {
  const std::string program = FORESHARD_PROGRAM;
  const std::string script = "cd '" + folder + "' && export LC_ALL=C.UTF-8 && PATH='" + program.substr(0, program.rfind('/')) +
                             "':$PATH && { " + line + "\n} 2>&1";
  FILE* pipe = popen(script.c_str(), "r");
  if (!pipe) throw std::runtime_error("popen failed");
  std::string output;
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  const int status = pclose(pipe);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code != 0) output += "[exit " + std::to_string(code) + "]\n";
  return output;
}

static bool lines_match(const std::vector<std::string>& expected, std::size_t e, const std::vector<std::string>& actual,
                        std::size_t a) {
  for (; e < expected.size(); ++e, ++a) {
    if (expected[e] == "...") {
      for (std::size_t skip = a; skip <= actual.size(); ++skip)
        if (lines_match(expected, e + 1, actual, skip)) return true;
      return false;
    }
    if (a >= actual.size() || expected[e] != actual[a]) return false;
  }
  return a == actual.size();
}

bool output_matches(const std::string& expected, const std::string& actual) {
  return lines_match(lines_of(expected), 0, lines_of(actual), 0);
}

std::string without_numbers(const std::string& text) {
  static const std::regex number("[+-]?[0-9][0-9.,]*(e[+-]?[0-9]+)?( (s|ms|us|ns)\\b)?"), blanks(" +"), rule("(─|-){2,}");
  // A measured peak may equal the predicted one, or not: streams overlap as they like.
  static const std::regex equal("\\bequal\\b");
  const std::string numbered = std::regex_replace(std::regex_replace(text, number, "#"), equal, "# %");
  return std::regex_replace(std::regex_replace(numbered, blanks, " "), rule, "--");
}

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace foreshard
