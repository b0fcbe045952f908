#include "cli/program/shell_words.h"

#include <algorithm>
#include <cctype>

namespace foreshard {

static std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string("_-./:=,+@%").find(c) != std::string::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string shell_line(const std::string& verb, const std::vector<VerbOption>& options, const Arguments& arguments) {
  std::vector<std::string> words;
  for (const VerbOption& option : options)
    for (const std::string& value : arguments.all(option.name)) {
      const bool named = option.name.starts_with("-");
      if (named) words.push_back(option.name);
      if (!named || !option.value.empty()) words.push_back(value);
    }
  return "foreshard " + verb + (words.empty() ? "" : " ") + shell_line(words);
}

}  // namespace foreshard
