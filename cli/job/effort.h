// An estimate of the memory and time that a verb needs for a job. Work above a limit is refused before it starts, unless --force is given.
#pragma once

#include <string>

#include "cli/job/job.h"
#include "core/plan/plan.h"
#include "core/result/result.h"

namespace foreshard {

enum class WorkKind : std::uint8_t { Lower, Simulate, Search };
struct EffortOptions {
  WorkKind kind = WorkKind::Lower;
  Granularity granularity = Granularity::Layer;
  Folding folding = Folding::Full;
};

struct Effort {
  Bytes memory = {};
  Seconds time = {};         // on one core
  std::string size = {};     // "1,000,000 micro-batches on 16 pipeline ranks: 32,000,000 actions"
  std::string instead = {};  // what takes less, where that is not what the verb says; "": it is
};

// The estimate; within a factor of four of the measured jobs in tests/cli/job/effort_test.cpp. All zero for small jobs and for jobs
// that cannot be lowered.
Effort effort_of(const Job& job, const EffortOptions& work);
Effort effort_of(const Plan& plan, const EffortOptions& work);  // of a saved plan

// Throws Error when the effort is above 4 GiB or 60 s and --force is not given. The message has the size and `instead`, which tells
// the user how to ask for less.
void refuse_large(const Effort& effort, const Arguments& arguments, const std::string& instead);
void refuse_large_search(const Job& job, const Arguments& arguments);
VerbOption force_option();

}  // namespace foreshard
