// Verb: a command of the program, with its options as data (parsing and help use them) and the function that runs it.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace foreshard {

enum class ExitCode : std::uint8_t { Ok = 0, WrongInput = 1, Infeasible = 2, DeviceFailure = 3, Bug = 70, Interrupted = 130 };

struct VerbOption {
  std::string name = {};   // "--model"; without dashes: a positional argument
  std::string value = {};  // placeholder of the value in the help ("N"); empty: a flag
  std::string help = {};
  std::string group = {};  // heading in the help; empty: "options"
  bool required = false;
  bool repeatable = false;
  std::string (*read_help)() = nullptr;  // instead of `help`, where files have to be read for it
  std::string shown_help() const { return read_help != nullptr ? read_help() : help; }
  bool operator==(const VerbOption&) const = default;
};

// The parsed command line: for every option given its values, in order. A flag's value is "true" or "false".
class Arguments {
 public:
  explicit Arguments(std::map<std::string, std::vector<std::string>> values) : values_(std::move(values)) {}
  bool has(const std::string& option) const { return values_.contains(option); }
  bool flag(const std::string& option) const { return text(option, "false") == "true"; }
  std::string text(const std::string& option, const std::string& otherwise = "") const;
  std::vector<std::string> all(const std::string& option) const;
  // integer, number: `otherwise` when the option is not given; Error when the value is no number in [least, most].
  std::int64_t integer(const std::string& option, std::int64_t otherwise, std::int64_t least, std::int64_t most) const;
  // Copies of the arguments in which `option` has the only value `value`, one more value, or one value less.
  Arguments with(const std::string& option, const std::string& value) const;
  Arguments adding(const std::string& option, const std::string& value) const;
  Arguments without(const std::string& option, const std::string& value) const;
  double number(const std::string& option, double otherwise, double least, double most) const;
  // The value, `otherwise` when not given. Throws Error, which names the nearest of `known`, when the value is none of them.
  std::string choice(const std::string& option, const std::string& otherwise, const std::vector<std::string>& known) const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
  std::vector<std::string>* notes = nullptr;  // where what is said beside the answer is kept for the files that are written
};

struct Verb {
  std::string name = {};  // "simulate", "show schedule"
  std::string summary = {};
  std::string notes = {};  // a paragraph below the usage line
  std::vector<std::string> examples = {};
  std::vector<VerbOption> options = {};
  ExitCode (*run)(const Arguments&, const Console&) = nullptr;
};

// One file per verb.
Verb simulate_verb();
Verb search_verb();
Verb sweep_verb();
Verb ablate_verb();
Verb partition_verb();
Verb fit_verb();
Verb lower_verb();
Verb export_verb();
Verb run_verb();
Verb selftest_verb();
Verb doctor_verb();
Verb check_plan_verb();
Verb list_verb();
Verb show_schedule_verb();
Verb show_model_verb();
Verb show_cluster_verb();
Verb show_plan_verb();
Verb show_policies_verb();
Verb validate_verb();

std::vector<Verb> verbs();  // in the order of the help

// The source in errors about options: "command line: --tp: found ...".
inline constexpr const char* kCommandLine = "command line";
// A number as text: six significant digits, no trailing zeros after the point.
std::string plain(double value);
std::string percent(double fraction);  // 0.25 -> "25.00"
std::string joined(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace foreshard
