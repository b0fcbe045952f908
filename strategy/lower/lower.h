// lower: Model + Cluster + Strategy -> Plan. Nothing downstream knows a schedule or policy by name.
#pragma once

#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "strategy/recompute/recompute_runs.h"
#include "strategy/resolve/resolve.h"

namespace foreshard {

struct MachineProfile;  // core/profile/machine_profile.h

struct LowerOptions {
  bool ignore_memory = false;               // give the plan even when it does not fit
  const MachineProfile* profile = nullptr;  // measured costs of the device kind that it names
  std::vector<std::string> settings = {};   // of model and cluster ("cluster.fabric.oversubscription=2"), for the plan's origin
};

struct Lowered {
  Plan plan = {};
  Strategy strategy = {};  // with every default resolved
};

// A pure function of a strategy that leaves nothing open; `runs` of each stage are those of a recomputation schedule.
std::variant<Lowered, Infeasible> lower(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                        const LowerOptions& options = {}, const std::vector<StageRuns>& runs = {});

// Whether the plan fits the devices: arena + framework + reserve <= capacity. The reason names the category that breaks it.
std::optional<Infeasible> does_not_fit(const Plan& plan, const Cluster& cluster);

}  // namespace foreshard
