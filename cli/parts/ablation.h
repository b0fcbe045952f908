// `ablate`: a chain of steps, each of which adds settings to the strategy of the step before, and the time, memory and traffic of
// each step's plan.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/job/job.h"
#include "core/check/check_plan.h"

namespace foreshard {

struct AblationStep {
  std::string name = {};
  std::vector<std::pair<std::string, std::string>> settings = {};  // (path as in `list options`, value)
  bool operator==(const AblationStep&) const = default;
};
// Parses "overlap:overlap=grad,p2p,recompute=full": a name, then settings separated by commas. Values may contain commas too.
// Throws Error.
AblationStep parse_step(const std::string& text);
// The steps without --step: none, pipeline, top-k, quantization. The step "none" sets what the job leaves open: one tensor-parallel
// group in a node, a micro-batch that can be split into parts, unfused attention. `said`: whether the command line gives the option
// with this path.
std::vector<AblationStep> default_chain(const Job& job, const std::function<bool(const std::string&)>& said);

struct AblationRow {
  AblationStep step = {};
  Strategy strategy = {};    // with all steps so far
  std::string why_not = {};  // why there is no plan; empty: there is one
  Plan plan = {};
  std::string hash = {};  // program_hash of the plan
  Seconds time = {};      // of an iteration
  Bytes peak = {};        // arena of the fullest device plus framework memory
  Bytes margin = {};      // device memory less the peak and the reserve
  Bytes sent = {};        // payload that the GPU with the most sends in an iteration, in collectives and exchanges
  std::vector<PlanDefect> defects = {};  // what check_plan finds
};
// Lowers and replays `job`, which has the settings of `step` and of the steps before it.
AblationRow ablation_row(const Job& job, const AblationStep& step);

// Payload that the rank that sends the most sends in one run of the plan.
Bytes sent_bytes(const Plan& plan);

std::string ablation_text(const Job& job, const std::vector<AblationRow>& rows, bool unicode);
std::string ablation_json(const Job& job, const std::vector<AblationRow>& rows);

}  // namespace foreshard
