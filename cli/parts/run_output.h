// The output of `foreshard run`.
#pragma once

#include <string>

#include "exec/interpreter/execute.h"

namespace foreshard {

// The input of run_text and run_json.
struct RunWords {
  const Execution& done;  // the finished run
  TimeMode time = TimeMode::Wall;
  int ranks = 1;                  // of the plan
  int ranks_here = 1, cores = 1;  // ranks on this machine, and its usable cores
  MemoryChecks checks = {};
  std::string gpu = {};         // the GPUs in words; empty: the run was on the host
  std::string trained_on = {};  // "random tokens", or the name of a file
};

std::string run_text(const RunWords& words);
std::string run_json(const RunWords& words);
// Element `step` of the array "steps" of run_json; printed as soon as the step is done.
std::string step_line(int step, const StepReport& done, const std::vector<RouterName>& routers);
// "most chosen expert 1.31 times the mean (layers.3), 12 of 4,096 choices dropped"; "" without experts.
std::string experts_text(const StepReport& done, const std::vector<RouterName>& routers);

}  // namespace foreshard
