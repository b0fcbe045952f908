// lower: Model + Cluster + Strategy -> Plan. Resolves every choice; nothing downstream knows a schedule or policy by name.
#pragma once

#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"

namespace foreshard {

struct MachineProfile;  // core/profile/machine_profile.h

struct LowerOptions {
  bool ignore_memory = false;               // give the plan even when it does not fit
  const MachineProfile* profile = nullptr;  // measured costs of the device kind that it names
  std::vector<std::string> settings = {};   // of model and cluster ("cluster.fabric.oversubscription=2"), for the plan's origin
};

// A way to recompute the layers of a pipeline rank: what it costs and what it keeps.
struct LayerTrade {
  Seconds seconds = {};          // more of one micro-batch's backward than when everything is kept
  Bytes kept = {};               // by the layers, of all micro-batches in flight
  std::vector<int> layers = {};  // [form]: of a chunk
  bool operator==(const LayerTrade&) const = default;
};
// What `--recompute best` chose from: the trades between time and memory that no other beats, fastest first (none for very many
// layers), and the one that fills the memory.
struct RankTrades {
  std::vector<LayerRecompute> forms = {};
  std::vector<LayerTrade> front = {};
  LayerTrade chosen = {};
};

struct Lowered {
  Plan plan = {};
  Strategy strategy = {};               // with every default resolved
  std::vector<RankTrades> trades = {};  // [pipeline rank], with `--recompute best`
};

// The strategy with defaults resolved (dp, schedule, dtypes, attention, bucket, placement), or why it cannot be.
std::variant<Strategy, Infeasible> resolve(const Model& model, const Cluster& cluster, const Strategy& strategy);

std::variant<Lowered, Infeasible> lower(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                        const LowerOptions& options = {});

// Whether the plan fits the devices: arena + framework + reserve <= capacity. The reason names the category that breaks it.
std::optional<Infeasible> does_not_fit(const Plan& plan, const Cluster& cluster);

}  // namespace foreshard
