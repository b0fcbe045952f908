// `simulate --policy all`: one row for each runtime policy.
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/summary.h"

namespace foreshard {

struct PolicyTraffic {  // of parameters, per step, of the rank that has the most
  Bytes gathered = {};  // whole tensors and units that are all-gathered
  Bytes copied = {};    // to and from host memory and drives, everything
};
PolicyTraffic policy_traffic(const Plan& plan);

struct PolicyRow {
  std::string name = {}, of = {};
  std::string why_not = {};  // empty: it was played
  Summary summary = {};
  PolicyTraffic traffic = {};
};
std::string policy_table_text(const std::vector<PolicyRow>& rows, bool counts_tokens, bool unicode);
std::string policy_table_json(const std::vector<PolicyRow>& rows);

}  // namespace foreshard
