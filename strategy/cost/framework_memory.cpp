#include "strategy/cost/framework_memory.h"

#include <algorithm>

#include "core/cluster/cluster.h"
#include "core/plan/attention_memory.h"
#include "core/profile/machine_profile.h"

namespace foreshard {

namespace {

constexpr Bytes kContext{std::int64_t{512} << 20};
constexpr Bytes kWorkspace{std::int64_t{32} << 20};
constexpr Bytes kConnection{9'633'792};
constexpr int kRingChannels = 8;  // typical for a ring inside a node or over one NIC
constexpr int kPeerChannels = 2;  // point to point
// A communicator of PyTorch inside a node with NVLink: 544 MB of two A100s, 688 MB of more (NVIDIA/nccl issue 964, a table of measurements),
// and proportional to the number of channels (issue 986), of which NCCL makes 24 on A100 and 32 on later generations.
constexpr double kPairCommunicator = 544e6, kCommunicator = 688e6;
constexpr double kAmpereChannels = 24, kLaterChannels = 32;

FixedOrder fixed_order_of(const Gpu& gpu) {
  const std::string& name = gpu.architecture;
  const bool has_library = name == "ampere" || name == "ada" || name == "hopper" || name == "blackwell";
  return has_library ? FixedOrder::ByMap : FixedOrder::None;
}

// The most that the attention needs on any of the GPUs, if `op` is one.
Bytes attention_memory_on(const Cluster& cluster, const Operation& op, const std::vector<Shape>& shapes) {
  const auto* attention = std::get_if<ops::Attention>(&op);
  Bytes most = {};
  for (std::size_t i = 0; attention && i < cluster.gpus.size(); ++i)
    most = std::max(most, attention_memory(*attention, shapes, fixed_order_of(cluster.gpus[i]), cluster.gpus[i].memory));
  return most;
}

bool needs_workspace(const Strategy& strategy) {
  return strategy.framework == Strategy{}.framework && !strategy.device_memory.framework;
}

}  // namespace

std::optional<Bytes> measured_outside(const MachineProfile* profile, const Cluster& cluster) {
  if (!profile || profile->outside_memory == Bytes{} || profile->device != cluster.nodes.front().shape.gpu) return {};
  return profile->outside_memory + kWorkspace;
}

Bytes attention_workspace(const Plan& plan, const Cluster& cluster, const Strategy& strategy) {
  Bytes most = {};
  if (!needs_workspace(strategy)) return most;
  for (const Segment& segment : plan.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* compute = std::get_if<Compute>(&instruction.what))
        most = std::max(most, attention_memory_on(cluster, compute->op, compute->shapes));
  return most;
}

Bytes attention_workspace(const OpGraph& graph, const Cluster& cluster, const Strategy& strategy) {
  Bytes most = {};
  if (!needs_workspace(strategy)) return most;
  for (const LayerGraph& layer : graph.kinds)
    for (const Operator& op : layer.operators)
      if (!op.communication) most = std::max(most, attention_memory_on(cluster, op.op, op.shapes));
  return most;
}

Bytes framework_memory(const Strategy& strategy) { return framework_memory(strategy, {}, ""); }

static int ranks_of(const Strategy& s, const std::string& group) {
  if (group == "world") return s.tp * s.pp * s.cp * s.dp;
  if (group == "dp") return s.dp * s.cp;
  if (group == "tp") return s.tp;
  if (group == "pp") return s.pp;
  if (group == "model") return s.tp * s.pp;
  return s.pp > 1 ? 2 : 1;  // tied embeddings
}

Bytes framework_memory(const Strategy& strategy, const MemoryTraits& traits, const std::string& architecture) {
  if (strategy.device_memory.framework) return *strategy.device_memory.framework;
  if (!traits.communicators.empty()) {
    double bytes = 0;
    for (const std::string& group : traits.communicators)
      if (const int ranks = ranks_of(strategy, group); ranks > 1) bytes += ranks == 2 ? kPairCommunicator : kCommunicator;
    const bool later = architecture == "hopper" || architecture == "blackwell";
    bytes *= (later ? kLaterChannels : kAmpereChannels) / kAmpereChannels;
    return traits.context.value_or(kContext + kWorkspace) + Bytes{static_cast<std::int64_t>(bytes)};
  }
  const bool replicas = strategy.dp > 1 || std::ranges::any_of(strategy.stages, [](const auto& stage) { return stage.dp > 1; });
  const int rings = (replicas ? 1 : 0) + (strategy.cp > 1 ? 1 : 0) + (widest_tp(strategy) > 1 ? 1 : 0);
  const int peers = strategy.pp > 1 ? 2 : 0;
  return traits.context.value_or(kContext + kWorkspace) + kConnection * (rings * kRingChannels + peers * kPeerChannels);
}

}  // namespace foreshard
