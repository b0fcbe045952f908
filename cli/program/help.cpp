#include "cli/program/help.h"

#include <algorithm>
#include <sstream>

namespace foreshard {

std::string paragraph(const std::string& text) { return "  " + wrapped(text, 4) + "\n"; }

// "  left      right, wrapped below itself": left beyond the column gets a line of its own.
static std::string row(const std::string& left, const std::string& right, std::size_t column) {
  std::string text = "  " + left;
  if (text.size() + 2 > column)
    text += "\n" + std::string(column, ' ');
  else
    text.resize(column, ' ');
  return text + wrapped(right, column) + "\n";
}

static bool positional(const VerbOption& option) { return !option.name.starts_with("-"); }

static std::string usage(const Verb& verb) {
  std::string text = "foreshard " + verb.name;
  for (const VerbOption& option : verb.options)
    if (positional(option)) text += option.required ? " " + option.name : " [" + option.name + "]";
  for (const VerbOption& option : verb.options)
    if (!positional(option) && option.required) text += " " + option.name + " " + option.value;
  return text + " [options]";
}

std::string program_help(const std::vector<Verb>& verbs) {
  std::string text = "foreshard plans and simulates the training of large models on GPU clusters.\n\n";
  text += "usage: foreshard VERB [options]\n\n";
  for (const Verb& verb : verbs) text += row(verb.name, verb.summary, 18);
  text += "\n\"foreshard VERB --help\" explains a verb, \"foreshard --version\" prints the\nversion.\n";
  text += "Exit codes: 0 ok, 1 wrong input, 2 the strategy does not fit, 3 a device or\nlibrary failed.\n";
  return text;
}

std::string verb_help(const Verb& verb) {
  std::string text = wrapped("usage: " + usage(verb), 9) + "\n\n" + wrapped(verb.summary, 0) + "\n";
  if (!verb.notes.empty()) text += wrapped(verb.notes, 0) + "\n";
  std::vector<std::string> groups;
  for (const VerbOption& option : verb.options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  for (const std::string& group : groups) {
    text += "\n" + (group.empty() ? std::string("options") : group) + ":\n";
    for (const VerbOption& option : verb.options)
      if (option.group == group)
        text +=
            row(option.name + (option.value.empty() || positional(option) ? "" : " " + option.value), option.shown_help(), 30);
    if (group.empty()) text += row("--help", "print this text", 30);
  }
  if (std::find(groups.begin(), groups.end(), "") == groups.end()) text += "\n" + row("--help", "print this text", 30);
  text += verb.examples.size() > 1 ? "\nexamples:\n" : "\nexample:\n";
  for (const std::string& example : verb.examples) text += "  " + wrapped(example, 6, kTextWidth - 2) + "\n";
  return text;
}

std::string family_help(const std::string& word, const std::vector<Verb>& verbs) {
  std::string text = "usage: foreshard " + word + " WHAT [options]\n\n";
  for (const Verb& verb : verbs)
    if (verb.name.starts_with(word + " ")) text += row(verb.name, verb.summary, 18);
  return text + "\n\"foreshard " + word + " WHAT --help\" explains each.\n";
}

}  // namespace foreshard
