// Four kinds of errors, four answers: wrong input throws Error (caught once, in main); a strategy that does not fit is an
// Infeasible value; a failing device call throws DeviceError; a bug of ours throws Bug, through FS_ASSERT. Where a Bug is caught:
// docs/decisions/bugs.md.
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

// We have a bug. what(): "CONDITION is false (FILE:LINE)". Nobody catches it in order to go on with the object in which it was thrown: only
// where work on separate values is repeated (rows of a table, candidates of a search) the rest goes on.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// A strategy that cannot run: an answer, not an exception.
struct Infeasible {
  std::string reason = {};                   // one sentence with the numbers
  std::vector<std::string> would_help = {};  // changes that would help, nearest first
  bool operator==(const Infeasible&) const = default;
};

// The name of `known` with the smallest edit distance to `name`; "" if each is further than max(2, half the length of `name`).
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

// Throws Bug. Called by FS_ASSERT, which is active in every build. Destructors and noexcept functions do not use FS_ASSERT.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace foreshard

#define FS_ASSERT(condition) ((condition) ? void(0) : ::foreshard::assertion_failed(#condition, __FILE__, __LINE__))
