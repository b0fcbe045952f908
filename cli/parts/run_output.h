// What `foreshard run` says of a run.
#pragma once

#include <string>

#include "exec/interpreter/execute.h"

namespace foreshard {

struct RunWords {
  const Execution& done;
  TimeMode time = TimeMode::Wall;
  int ranks = 1;
  int ranks_here = 1, cores = 1;  // of this machine
  MemoryChecks checks = {};
  std::string gpu = {};         // empty: the host
  std::string trained_on = {};  // "random tokens", or the name of a file
};

std::string run_text(const RunWords& words);
std::string run_json(const RunWords& words);
// What `steps` of run_json has in place `step`, as soon as it is known.
std::string step_line(int step, const StepReport& done);

}  // namespace foreshard
