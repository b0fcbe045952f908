#include "strategy/cost/framework_memory.h"

#include <algorithm>

#include "core/cluster/cluster.h"
#include "core/profile/machine_profile.h"

namespace foreshard {

namespace {

constexpr Bytes kContext{std::int64_t{512} << 20};
constexpr Bytes kWorkspace{std::int64_t{32} << 20};
constexpr Bytes kConnection{9'633'792};
constexpr int kRingChannels = 8;  // typical for a ring inside a node or over one NIC
constexpr int kPeerChannels = 2;  // point to point

}  // namespace

std::optional<Bytes> measured_outside(const MachineProfile* profile, const Cluster& cluster) {
  if (!profile || profile->outside_memory == Bytes{} || profile->device != cluster.nodes.front().shape.gpu) return {};
  return profile->outside_memory + kWorkspace;
}

Bytes framework_memory(const Strategy& strategy) { return framework_memory(strategy, {}); }

Bytes framework_memory(const Strategy& strategy, const MemoryTraits& traits) {
  if (strategy.device_memory.framework) return *strategy.device_memory.framework;
  const bool replicas = strategy.dp > 1 || std::ranges::any_of(strategy.stages, [](const auto& stage) { return stage.dp > 1; });
  const int rings = (replicas ? 1 : 0) + (strategy.cp > 1 ? 1 : 0) + (widest_tp(strategy) > 1 ? 1 : 0);
  const int peers = strategy.pp > 1 ? 2 : 0;
  return traits.context.value_or(kContext + kWorkspace) + kConnection * (rings * kRingChannels + peers * kPeerChannels);
}

}  // namespace foreshard
