#include "cli/program/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <ostream>
#include <streambuf>

#include "cli/program/failure.h"
#include "cli/program/help.h"
#include "core/base/error.h"
#include "core/base/printable.h"

namespace foreshard {

static std::vector<std::string> option_names(const Verb& verb) {
  std::vector<std::string> names = {"--help"};
  for (const VerbOption& option : verb.options)
    if (option.name.starts_with("-")) names.push_back(option.name);
  return names;
}

[[noreturn]] static void refuse_extra(const Verb& verb, const std::string& extra) {
  if (!extra.starts_with("-")) throw Error(kCommandLine, verb.name, "\"" + extra + "\"", "no further argument");
  const std::string name = extra.substr(0, extra.find('='));
  const std::string nearest = nearest_name(name, option_names(verb));
  throw Error(kCommandLine, name, "an unknown option",
              nearest.empty() ? "an option of \"foreshard " + verb.name + " --help\"" : nearest + " (nearest)");
}

[[noreturn]] static void refuse_no_value(const Verb& verb, const std::string& name) {
  std::string expected = "a value";
  for (const VerbOption& option : verb.options)
    if (option.name == name) expected = option.value;
  throw Error(kCommandLine, name, "no value", expected);
}

// CLI11 only separates options, values and positional arguments; help and messages are written here.
static Arguments parse(const Verb& verb, const std::vector<std::string>& words) {
  CLI::App app;
  app.set_help_flag("");
  app.allow_extras();
  std::vector<std::pair<const VerbOption*, CLI::Option*>> added;
  added.reserve(verb.options.size());
  for (const VerbOption& option : verb.options) {
    CLI::Option* made = option.value.empty() && option.name.starts_with("-") ? app.add_flag(option.name)
                                                                             : app.add_option(option.name)->expected(1);
    made->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (option.repeatable && !option.name.starts_with("-")) made->expected(-1);  // FILE...
    added.emplace_back(&option, made);
  }
  app.add_flag("--help,-h");
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 reads them from the back
  } catch (const CLI::ArgumentMismatch& problem) {
    const std::string text = problem.what();
    refuse_no_value(verb, text.substr(0, text.find(':')));
  } catch (const CLI::ParseError& problem) {
    throw Error(kCommandLine, "", std::string("\"") + problem.what() + "\"", "");
  }
  std::map<std::string, std::vector<std::string>> values;
  if (app.count("--help") > 0) values["--help"] = {"true"};
  for (const auto& [option, made] : added) {
    if (made->count() == 0) continue;
    values[option->name] = made->results();
    // CLI11 takes the next word as the value of an option, even if that word is an option.
    if (!option->value.empty() && values[option->name].back().starts_with("--")) refuse_no_value(verb, option->name);
    if (made->count() > 1 && !option->repeatable)
      throw Error(kCommandLine, option->name, std::to_string(made->count()) + " values", "one");
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) refuse_extra(verb, extras.front());
  return Arguments(std::move(values));
}

static void check_required(const Verb& verb, const Arguments& arguments) {
  for (const VerbOption& option : verb.options)
    if (option.required && !arguments.has(option.name))
      throw Error(kCommandLine, option.name, "nothing",
                  (option.value == option.name ? "" : option.value + ": ") + option.shown_help() + "; see \"foreshard " +
                      verb.name + " --help\"");
}

// The verb with the longest name that the words begin with, and the number of words in the name.
static std::optional<std::pair<Verb, std::size_t>> find_verb(const std::vector<Verb>& all,
                                                             const std::vector<std::string>& words) {
  for (const std::size_t length : {std::size_t{2}, std::size_t{1}}) {
    if (words.size() < length) continue;
    const std::string name = length == 2 ? words[0] + " " + words[1] : words[0];
    for (const Verb& verb : all)
      if (verb.name == name) return std::pair{verb, length};
  }
  return {};
}

[[noreturn]] static void refuse_verb(const std::vector<Verb>& all, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  std::string tried = words[0];
  for (const Verb& verb : all) {
    if (verb.name.starts_with(words[0] + " ") && words.size() > 1) tried = words[0] + " " + words[1];
    names.push_back(verb.name);
  }
  const std::string nearest = nearest_name(tried, names);
  throw Error(kCommandLine, "verb", "\"" + tried + "\"",
              "one of " + joined(names) + (nearest.empty() ? "" : " (nearest: " + nearest + ")"));
}

static ExitCode dispatch(const std::vector<std::string>& words, const Console& console) {
  const std::vector<Verb> all = verbs();
  if (words.size() > 1 && words[0] == "help") {  // foreshard help VERB
    std::vector<std::string> asked(words.begin() + 1, words.end());
    asked.emplace_back("--help");
    return dispatch(asked, console);
  }
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    console.out << program_help(all);
    return words.empty() ? ExitCode::WrongInput : ExitCode::Ok;
  }
  if (words[0] == "--version") {
    console.out << "foreshard " FORESHARD_VERSION "\n";
    return ExitCode::Ok;
  }
  const auto found = find_verb(all, words);
  if (!found) {
    const bool family = std::any_of(all.begin(), all.end(), [&](const Verb& v) { return v.name.starts_with(words[0] + " "); });
    if (!family || (words.size() > 1 && words[1] != "--help" && words[1] != "-h")) refuse_verb(all, words);
    console.out << family_help(words[0], all);
    return words.size() > 1 ? ExitCode::Ok : ExitCode::WrongInput;
  }
  const auto& [verb, length] = *found;
  const Arguments arguments = parse(verb, {words.begin() + static_cast<std::ptrdiff_t>(length), words.end()});
  if (arguments.has("--help")) {
    console.out << verb_help(verb);
    return ExitCode::Ok;
  }
  check_required(verb, arguments);
  return verb.run(arguments, console);
}

namespace {

// Replaces control characters, so that names in files cannot send commands to the terminal. Passes on whole lines.
class PrintableBuffer : public std::streambuf {
 public:
  explicit PrintableBuffer(std::ostream& to) : to_(to) {}
  PrintableBuffer(const PrintableBuffer&) = delete;
  PrintableBuffer& operator=(const PrintableBuffer&) = delete;
  ~PrintableBuffer() override {
    try {
      pass_on();
    } catch (...) {  // no memory for what is left: the reason is told
    }
  }

 protected:
  int_type overflow(int_type letter) override {
    line_ += traits_type::to_char_type(letter);
    if (line_.back() == '\n') pass_on();
    return to_ ? letter : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    line_.append(text, static_cast<std::size_t>(count));
    if (line_.find('\n') != std::string::npos) pass_on();
    return to_ ? count : 0;
  }
  int sync() override {
    pass_on();
    to_.flush();
    return to_ ? 0 : -1;
  }

 private:
  void pass_on() {
    to_ << printable_lines(line_);
    line_.clear();
  }

  std::ostream& to_;
  std::string line_ = {};
};

}  // namespace

ExitCode run_program(const std::vector<std::string>& arguments, const Console& terminal) {
  PrintableBuffer printed(terminal.out);
  std::ostream out(&printed);
  const Console console = {out, terminal.err, terminal.err_is_terminal};
  try {
    const ExitCode code = dispatch(arguments, console);
    console.out.flush();
    if (!console.out)
      throw DeviceError("writing to standard output", "the device is full, the reader has gone, or there is no memory");
    return code;
  } catch (...) {
    return tell_failure(arguments, terminal.err);
  }
}

}  // namespace foreshard
