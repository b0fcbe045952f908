// Four kinds of errors, four answers: wrong input throws Error (caught once, in main); a strategy that does not fit is an
// Infeasible value; a failing device call throws DeviceError; a bug of ours ends the process through FS_ASSERT.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/units.h"

namespace foreshard {

// The user's input is wrong. what() is one line: "FILE: FIELD: found FOUND, expected EXPECTED".
class Error : public std::runtime_error {
 public:
  Error(std::string where, std::string field, std::string found, std::string expected);
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// A device or library call failed. what() holds the call and its code.
class DeviceError : public std::runtime_error {
 public:
  DeviceError(const std::string& call, const std::string& code) : std::runtime_error(call + " failed: " + code) {}
};

// A strategy that cannot run: an answer, not an exception.
struct Infeasible {
  std::string reason = {};                   // one sentence with the numbers
  std::vector<std::string> would_help = {};  // changes that would help, nearest first
  bool operator==(const Infeasible&) const = default;
};

// The name of `known` with the smallest edit distance to `name`; "" if each is further than max(2, half the length of `name`).
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

// Prints the condition with its place on stderr and aborts. Called by FS_ASSERT, which is active in every build.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace foreshard

#define FS_ASSERT(condition) ((condition) ? void(0) : ::foreshard::assertion_failed(#condition, __FILE__, __LINE__))
