// lower: Model + Cluster + Strategy -> Plan. Readers of a plan need not know its schedule or policies.
#pragma once

#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "strategy/resolve/resolve.h"
#include "strategy/resolve/value_move.h"

namespace foreshard {

struct MachineProfile;  // core/profile/machine_profile.h

struct LowerOptions {
  bool ignore_memory = false;  // give the plan even when it does not fit
  // Pack memory by the order of a whole run (MemoryPlanOptions::by_order) where the arena gets smaller. False: only if the plan does not
  // fit otherwise. A search lowers thousands of plans and would take up to eleven times as long with it (VGG-16); its winners are lowered
  // anew.
  bool pack_by_order = true;
  // The reason why a plan does not fit states the memory it needs. False: nobody reads the reason, so a plan with too much alive at one
  // time is refused before packing, which takes most of the time of lowering many micro-batches.
  bool explain = true;
  // tuned_plan and lower_tuned check the plan that they return: one that is not sound is a bug, and throws Bug. False: for plans of which only
  // times are compared and whose winner is lowered anew, and where the caller checks.
  bool check = true;
  const MachineProfile* profile = nullptr;  // measured costs of the device kind that it names
  std::vector<std::string> settings =
      {};  // changed fields of model and cluster ("cluster.fabric.levels=2"); kept in Plan::origin
};

struct Lowered {
  Plan plan = {};
  Strategy strategy = {};  // with every default resolved
};

// A pure function of a tuned strategy (nothing is left as `auto` or `best`), and of the rows that `tune` decided.
std::variant<Lowered, Infeasible> lower(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                        const LowerOptions& options = {}, const TunedRows& tuned = {});

// Nothing if the plan fits the devices: arena + framework memory + reserve <= capacity. Else the reason, which names the category of memory
// that exceeds it.
std::optional<Infeasible> does_not_fit(const Plan& plan, const Cluster& cluster);
// Nothing if the host memory and the drives of each node hold what its ranks keep there.
std::optional<Infeasible> host_does_not_fit(const Plan& plan, const Cluster& cluster);
// Whether it cannot fit with any offsets: the blocks alive at one time exceed a device's memory. Needs no offsets.
bool never_fits(const Plan& plan, const Cluster& cluster);

}  // namespace foreshard
