// lower: Model + Cluster + Strategy -> Plan. Resolves every choice; nothing downstream knows a schedule or policy by name.
#pragma once

#include <optional>
#include <variant>

#include "core/cluster.h"
#include "core/error.h"
#include "core/model.h"
#include "core/plan.h"
#include "core/strategy.h"

namespace foreshard {

struct MachineProfile;  // core/machine_profile.h

struct LowerOptions {
  bool ignore_memory = false;               // give the plan even when it does not fit
  const MachineProfile* profile = nullptr;  // measured costs of the device kind that it names
};

struct Lowered {
  Plan plan = {};
  Strategy strategy = {};  // with every default resolved
};

// The strategy with defaults resolved (dp, schedule, dtypes, attention, bucket, placement), or why it cannot be.
std::variant<Strategy, Infeasible> resolve(const Model& model, const Cluster& cluster, const Strategy& strategy);

std::variant<Lowered, Infeasible> lower(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                        const LowerOptions& options = {});

// Whether the plan fits the devices: arena + framework + reserve <= capacity. The reason names the category that breaks it.
std::optional<Infeasible> does_not_fit(const Plan& plan, const Cluster& cluster);

}  // namespace foreshard
