// Checks that all indices, sizes and ranges of a Plan are in range. Code that reads a plan that passes cannot index outside a vector,
// overflow a sum or loop for ever. parse_plan turns the answer into an Error, check_plan into a defect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/plan/plan.h"

namespace foreshard {

// Limits that keep every sum over a plan inside 64 bits, and what simulations allocate for it inside the memory of a machine.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 50U;  // of one buffer, offset, message
inline constexpr std::int64_t kMostRanks = std::int64_t{1} << 22U;
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 20U;  // of a micro-batch, for each rank of the plan
inline constexpr std::int64_t kMostSteps = std::int64_t{1} << 26U;    // instructions of a run, all roles
inline constexpr std::size_t kMostStreams = 64;                       // of a role

struct PlanProblem {
  std::string path = {};  // "roles[3].actions[17].args[1]"
  std::string found = {}, expected = {};
  bool operator==(const PlanProblem&) const = default;
};

// The first value out of range; empty if there is none.
std::optional<PlanProblem> first_bad_index(const Plan& plan);

// Reads the plan at this place of a file (a plan file, or a member of a result). Throws Error.
class JsonReader;
Plan plan_from(const JsonReader& json);

}  // namespace foreshard
