// Progress: shows how far a long verb is, as a bar on a terminal once the verb has run for a second, or as JSON lines for programs.
#pragma once

#include <chrono>
#include <functional>

#include "cli/program/verb.h"

namespace foreshard {

class Progress {
 public:
  // `mode`: "auto" (a bar when standard error is a terminal), "json" ({"progress": 0.25} lines on standard error),
  // "none".
  Progress(const std::string& mode, const Console& console);
  ~Progress();  // erases the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void report(double fraction, const std::string& note = {});  // 0 to 1; `note` is shown after the bar
  // In mode "json" writes this line to standard error at once; otherwise does nothing.
  void line(const std::string& json);

 private:
  enum class Kind { None, Bar, Lines };
  const Console& console_;
  Kind kind_ = Kind::None;
  std::chrono::steady_clock::time_point begin_, last_;
  bool shown_ = false;
};

std::vector<std::string> progress_modes();
VerbOption progress_option(const std::string& group = "");  // --progress; `group`: heading in the help

}  // namespace foreshard
