#include "cli/program/progress.h"

#include <algorithm>
#include <ostream>

namespace foreshard {

using std::chrono::steady_clock;

VerbOption progress_option(const std::string& group) {
  return {.name = "--progress",
          .value = "HOW",
          .help = "auto (a bar on a terminal), json (lines on standard error) or none",
          .group = group};
}

std::vector<std::string> progress_modes() { return {"auto", "json", "none"}; }

Progress::Progress(const std::string& mode, const Console& console)
    : console_(console), begin_(steady_clock::now()), last_(begin_ - std::chrono::hours(1)) {
  if (mode == "json")
    kind_ = Kind::Lines;
  else if (mode == "auto" && console.err_is_terminal)
    kind_ = Kind::Bar;
}

Progress::~Progress() {
  if (shown_) console_.err << "\r\x1b[K" << std::flush;
}

void Progress::report(double fraction, const std::string& note) {
  if (kind_ == Kind::None) return;
  const auto now = steady_clock::now();
  const bool last = fraction >= 1;
  if (now - last_ < std::chrono::milliseconds(100) && !last) return;
  if (kind_ == Kind::Lines) {
    last_ = now;
    console_.err << "{\"progress\": " << plain(std::clamp(fraction, 0.0, 1.0)) << "}\n" << std::flush;
    return;
  }
  if (now - begin_ < std::chrono::seconds(1)) return;
  last_ = now;
  shown_ = true;
  static constexpr int kWidth = 40;
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kWidth);
  console_.err << "\r[" << std::string(static_cast<std::size_t>(full), '#')
               << std::string(static_cast<std::size_t>(kWidth - full), ' ') << "] " << percent(fraction) << " %"
               << (note.empty() ? "" : "  " + note) << "\x1b[K" << std::flush;
}

void Progress::line(const std::string& json) {
  if (kind_ != Kind::Lines) return;
  std::string one = json;
  std::replace(one.begin(), one.end(), '\n', ' ');
  while (one.ends_with(' ')) one.pop_back();
  console_.err << one + "\n" << std::flush;
}

}  // namespace foreshard
