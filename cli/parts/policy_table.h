// `simulate --policy all`: one row for each runtime policy.
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/summary.h"

namespace foreshard {

struct PolicyTraffic {  // per step; each the maximum over the ranks
  Bytes gathered = {};  // parameters that are all-gathered
  Bytes copied = {};    // everything copied to and from host memory and drives
};
PolicyTraffic policy_traffic(const Plan& plan);

struct PolicyRow {
  std::string name = {}, of = {};  // of: the framework whose policy it is
  std::string why_not = {};        // why it was not replayed; empty: it was
  Summary summary = {};
  PolicyTraffic traffic = {};
};
std::string policy_table_text(const std::vector<PolicyRow>& rows, bool counts_tokens, bool unicode);
std::string policy_table_json(const std::vector<PolicyRow>& rows);

}  // namespace foreshard
