// `ablate`: a chain of steps, each with settings of the strategy on top of those of the steps before it, and what each plan takes.
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
  std::vector<std::pair<std::string, std::string>> settings = {};  // path of `list options`, value
  bool operator==(const AblationStep&) const = default;
};
// "overlap:overlap=grad,p2p,recompute=full": a name, and settings between commas; a value may have commas itself. Throws Error.
AblationStep parse_step(const std::string& text);
// Nothing, then each technique on top of the ones before. The first step has the defaults of what the job leaves open: one group of tensor-parallel
// ranks in a node, a micro-batch that can be cut. `said`: whether the command line has an option, by its path.
std::vector<AblationStep> default_chain(const Job& job, const std::function<bool(const std::string&)>& said);

struct AblationRow {
  AblationStep step = {};
  Strategy strategy = {};    // with all steps so far
  std::string why_not = {};  // empty: there is a plan
  Plan plan = {};
  std::string hash = {};
  Seconds time = {};
  Bytes peak = {};    // arena of the fullest device, and what the framework needs
  Bytes margin = {};  // what is free beside it and what is kept free
  Bytes sent = {};    // by the GPU that sends the most, in an iteration: payload of collectives and exchanges
  std::vector<PlanDefect> defects = {};  // what check_plan finds
};
AblationRow ablation_row(const Job& job, const AblationStep& step);  // of a job that has the settings

// Payload that the rank with the most of it sends in a run.
Bytes sent_bytes(const Plan& plan);

std::string ablation_text(const Job& job, const std::vector<AblationRow>& rows, bool unicode);
std::string ablation_json(const Job& job, const std::vector<AblationRow>& rows);

}  // namespace foreshard
