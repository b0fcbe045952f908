// Are all indices, sizes and ranges of a Plan in range? What passes here cannot make a reader reach outside a vector,
// overflow a sum or run for ever. parse_plan turns the answer into an Error, check_plan into a defect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/plan/plan.h"

namespace foreshard {

// Limits that keep every sum of a reader inside 64 bits and its memory inside a machine.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 50U;  // of one buffer, offset, message
inline constexpr std::int64_t kMostRanks = std::int64_t{1} << 22U;
inline constexpr std::int64_t kMostSteps = std::int64_t{1} << 26U;  // instructions of a run, all roles
inline constexpr std::size_t kMostStreams = 64;                     // of a role

struct PlanProblem {
  std::string path = {};  // "roles[3].actions[17].args[1]"
  std::string found = {}, expected = {};
  bool operator==(const PlanProblem&) const = default;
};

std::optional<PlanProblem> first_bad_index(const Plan& plan);

// The plan that stands here in a file (a plan file, or inside a result). Throws Error.
class JsonReader;
Plan plan_from(const JsonReader& json);

}  // namespace foreshard
