// lower: Model + Cluster + Strategy -> Plan. Whatever reads the plan needs no name of a schedule or policy.
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
  // Pack memory by the order of a whole run (MemoryPlanOptions::by_order) where the arena gets smaller. False: only if the plan does not fit
  // otherwise. A search lowers thousands of plans: always, it would take up to eleven times as long (VGG-16); its winners are lowered anew.
  bool pack_by_order = true;
  // Says of a plan that does not fit what it would take. False: the reason is not read, and a plan with too much alive at one time is refused
  // before its memory is packed, which is most of the time of lowering many micro-batches.
  bool explain = true;
  const MachineProfile* profile = nullptr;  // measured costs of the device kind that it names
  std::vector<std::string> settings =
      {};  // changed fields of model and cluster ("cluster.fabric.levels=2"); kept in Plan::origin
};

struct Lowered {
  Plan plan = {};
  Strategy strategy = {};  // with every default resolved
};

// A pure function of a tuned strategy (nothing is left as `auto` or `best`), with what `tune` decided of its activations.
std::variant<Lowered, Infeasible> lower(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                        const LowerOptions& options = {}, const TunedRows& tuned = {});

// Nothing if the plan fits the devices: arena + framework memory + reserve <= capacity. Else the reason, which names the category of memory
// that exceeds it.
std::optional<Infeasible> does_not_fit(const Plan& plan, const Cluster& cluster);
// Whether it cannot fit wherever its blocks lie: what a device holds at one time is too much. Needs no offsets.
bool never_fits(const Plan& plan, const Cluster& cluster);

}  // namespace foreshard
