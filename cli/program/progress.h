// How far a long verb is: a bar on a terminal once it has taken a second, or JSON lines for programs.
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
  ~Progress();  // takes the bar away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void report(double fraction);
  // One line of JSON on standard error in the mode "json", at once; nothing otherwise.
  void line(const std::string& json);

 private:
  enum class Kind { None, Bar, Lines };
  const Console& console_;
  Kind kind_ = Kind::None;
  std::chrono::steady_clock::time_point begin_, last_;
  bool shown_ = false;
};

std::vector<std::string> progress_modes();
VerbOption progress_option(const std::string& group = "");  // --progress, under this heading of the help

}  // namespace foreshard
