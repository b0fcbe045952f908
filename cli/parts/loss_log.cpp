#include "cli/parts/loss_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard {

namespace {

const std::string kHead = "step,loss,time_s,loss_scale,skipped";

// Enough digits to read back the same number.
std::string exact(double number) {
  if (std::isnan(number)) return "nan";
  std::array<char, 40> digits = {};
  const auto [end, problem] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  FS_ASSERT(problem == std::errc());
  return {digits.data(), end};
}

int step_of(const std::string& line, const std::string& path, std::size_t number) {
  int step = 0;
  const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), step);
  if (problem != std::errc() || end == line.data() + line.size() || *end != ',')
    throw Error(path, "line " + std::to_string(number), "\"" + line.substr(0, 60) + "\"", "a step and its loss");
  return step;
}

// The header line and the lines of the first `done` steps.
std::string lines_until(const std::string& text, int done, const std::string& path) {
  std::string kept = kHead + "\n";
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (number == 0 && line != kHead)
      throw Error(path, "line 1", "\"" + line.substr(0, 60) + "\"", "\"" + kHead + "\", as run --loss-log writes it");
    if (end == std::string::npos) break;
    if (number > 0 && step_of(line, path, number + 1) <= done) kept += line + "\n";
    at = end + 1;
  }
  return kept;
}

}  // namespace

LossLog::LossLog(std::string path, int done) : path_(std::move(path)), lock_(path_, FileLock::IfHeld::Refuse) {
  const bool goes_on = done > 0 && std::filesystem::exists(path_);
  write_file(path_, goes_on ? lines_until(read_file(path_), done, path_) : kHead + "\n");
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0) throw Error(path_, "", std::strerror(errno), "a file that can be written");
}

LossLog::~LossLog() {
  if (file_ >= 0) ::close(file_);
}

void LossLog::add(int step, const StepReport& report) {
  std::string line = std::to_string(step) + "," + exact(report.loss) + "," + exact(report.time_s) + ",";
  line += (report.loss_scale ? exact(*report.loss_scale) + "," + (report.skipped ? "1" : "0") : std::string(",")) + "\n";
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size()))
    throw DeviceError("write of " + path_, written < 0 ? std::strerror(errno) : "no room for the whole line");
}

}  // namespace foreshard
