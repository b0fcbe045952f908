#include "strategy/cost/collective_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/network/algorithms.h"
#include "strategy/kernels/machine_constants.h"

namespace foreshard {

namespace {

constexpr double kChannelBytes = 256.0 * 1024;  // NCCL uses one channel per this many bytes, up to its limit
constexpr double kSliceBytes = 512.0 * 1024;    // NCCL: 4 MiB buffer in 8 steps
constexpr double kPageableFactor = 2.0;

Seconds step_time(const ProtocolLatency& latency, LinkKind kind) {
  switch (kind) {
    case LinkKind::NvLink: return latency.nvlink;
    case LinkKind::Pcie:
    case LinkKind::CpuToCpu:
    case LinkKind::DramBus:
    case LinkKind::NvmeBus: return latency.pcie;
    case LinkKind::Network: return latency.network;
  }
  return latency.network;
}

// What the links' efficiency stretches the flow by: each phase is held up by the link that is busy longest at its effective rate. `nvlink`:
// NVLink's share of its datasheet rate. A path without phases is its busiest link.
double stretch(const CommunicationPath& path, double nvlink) {
  const double others = peer_stretch(path);
  if (path.phases.empty() || !(path.flow.value > 0)) return path.link == LinkKind::NvLink ? 1 / nvlink : others;
  Seconds seconds;
  for (const CommunicationPath::Phase& phase : path.phases) seconds += max(phase.nvlink * (1 / nvlink), phase.others * others);
  return seconds.value / path.flow.value;
}

// What a collective's messages are to NCCL's protocols.
struct Messages {
  double tensor = 0;    // bytes
  double nvlink = 1;    // share of NVLink's datasheet rate
  double own = 0;       // own_part
  bool sliced = false;  // they go through NCCL's buffers, slice by slice
  bool tree = false;    // to a parent and to children, not around a ring
  int far = 0;          // latency steps that cross the network
};

// Share of a protocol, of the rate that a ring reaches by protocol Simple.
double protocol_share(const CommunicationPath& path, Protocol protocol, bool tree) {
  switch (protocol) {
    case Protocol::Simple: return tree ? kTreeEfficiency : 1;
    case Protocol::LL128:
      return tree ? kTreeEfficiency * (path.nodes > 1 ? kTreeLl128Efficiency : kTreeLl128InNode) : kLl128Efficiency;
    case Protocol::LL: return tree ? kTreeEfficiency * kTreeLlEfficiency : kLlEfficiency;
  }
  return 1;
}

// Bytes on the wire per byte of data.
double wire_factor(const MachineConstants& machine, const CommunicationPath& path, Protocol protocol, double nvlink,
                   bool tree = false) {
  double share = protocol_share(path, protocol, tree) / stretch(path, nvlink);
  if (protocol == Protocol::LL && path.bytes > 0)
    share = std::min(share, path.flow.value * machine.ll_limit.value / path.bytes);
  return 1.0 / share;
}

double sm_share(const Gpu& gpu, const MachineConstants& machine, double bytes) {
  const double channels = std::clamp(std::ceil(bytes / kChannelBytes), 1.0, static_cast<double>(machine.channels));
  return gpu.sm_count > 0 ? std::min(1.0, channels / gpu.sm_count) : 0.0;
}

// A rank can forward a slice only after it has received it. So the last slice of the pipeline, of at most NCCL's buffer of a step per
// channel, follows the rest of the data without overlap.
double last_slice(const MachineConstants& machine, const CommunicationPath& path, double tensor) {
  if (!(path.flow.value > 0)) return 1;
  const double slice = std::min(tensor / path.members, machine.channels * kSliceBytes);
  return 1.0 + slice / path.bandwidth.value / path.flow.value;
}

// What the rank's own part adds to the wire's time, over that of the bytes at the datasheet rate (CommunicationPath::flow): in one step of every round of a ring a
// rank adds or copies its own part and sends nothing, at the protocol's pace whatever the link's rate is. Trees get the same, so that they are
// not chosen for the lack of it.
double own_part(const MachineConstants& machine, const Collective& what, const CommunicationPath& path) {
  const bool parts = what.kind == CollectiveKind::AllReduce || what.kind == CollectiveKind::ReduceScatter ||
                     what.kind == CollectiveKind::AllGather;
  if (!parts || !(path.flow.value > 0)) return 0;
  const double part = static_cast<double>(what.bytes.value) / path.members;
  return part / machine.ring_copy.value / path.flow.value;
}

struct Choice {
  Seconds busy = {};
  double factor = 1;
};

// A hop of a tree over the network takes longer than one of a ring where the route's latency sets it: of all-reduces over AWS's adapters
// (docs/cost-model.md) those of 1 to 16 MiB, which take trees, 88 us a hop, longer ones, which take rings, 55.
constexpr double kTreeHop = 1.6;

Choice cheapest(const MachineConstants& machine, const CommunicationPath& path, const Messages& messages) {
  Choice best;
  double least = std::numeric_limits<double>::infinity();
  for (int p = 0; p < kProtocols; ++p) {
    const auto protocol = static_cast<Protocol>(p);
    const ProtocolLatency& latency = messages.tree ? tree_latency(protocol) : protocol_latency(protocol);
    const Seconds near = step_time(latency, path.nodes > 1 ? path.inside_link : path.link);
    const Seconds across = max(latency.network, path.step_latency * (messages.tree ? kTreeHop : 1.0));
    const Seconds local = path.nodes > 1 ? near : max(near, path.step_latency);
    const Seconds busy = latency.base + local * (path.steps - messages.far) + across * messages.far;
    const double slice = protocol == Protocol::Simple && messages.sliced ? last_slice(machine, path, messages.tensor) : 1.0;
    const double on_wire = wire_factor(machine, path, protocol, messages.nvlink, messages.tree);
    const double factor = on_wire * slice + messages.own / protocol_share(path, protocol, messages.tree);
    const double time = busy.value + path.flow.value * factor;
    if (time < least) {
      least = time;
      best = {busy, factor};
    }
  }
  return best;
}

// Latency steps that cross the network. A ring crosses each border between nodes once per pass, and an all-reduce makes two passes; a tree
// goes up to the root and down again.
int far_steps(const CommunicationPath& path, bool tree) {
  if (path.nodes <= 1) return 0;
  if (tree) return std::min(path.steps, 2 * algorithms::depth_of(path.nodes));
  const int passes = std::max(1, path.steps / std::max(1, path.members - 1));
  return std::min(path.steps, passes * (path.nodes - 1));
}

}  // namespace

double peer_stretch(const CommunicationPath& path) { return path.nodes > 1 ? 1 : link_share(LinkKind::Pcie) / kPeerEfficiency; }

void add_phase(CommunicationPath& path, const CommunicationPath::Phase& phase) {
  for (CommunicationPath::Phase& known : path.phases)
    if (std::abs(known.nvlink.value * phase.others.value - known.others.value * phase.nvlink.value) <=
        1e-12 * (known.nvlink.value * phase.others.value + known.others.value * phase.nvlink.value)) {
      known.nvlink += phase.nvlink, known.others += phase.others;
      return;
    }
  path.phases.push_back(phase);
}

Cost collective_cost(const Gpu& gpu, const Collective& collective, const CommunicationPath& path, RowKernels kernels) {
  if (path.members <= 1) return {};
  const MachineConstants& machine = machine_constants(gpu);
  const auto tensor = static_cast<double>(collective.bytes.value);
  const double share = sm_share(gpu, machine, tensor);
  if (collective.algorithm == Algorithm::NvlinkSharp && path.link == LinkKind::NvLink && path.nodes == 1) {
    const Seconds busy = gpu.launch_overhead + kNvlinkSharpBase + path.step_latency * path.steps;
    return {.busy = to_nanoseconds(busy),
            .wire_factor = last_slice(machine, path, tensor) / machine.nvlink_sharp,
            .sm_share = share};
  }
  const bool tree = collective.algorithm == Algorithm::Tree || collective.algorithm == Algorithm::DoubleTree;
  const bool rows = collective.kind == CollectiveKind::AllToAll;
  const Choice choice =
      cheapest(machine, path,
               {.tensor = tensor,
                .nvlink = rows && kernels != RowKernels::HybridEp ? machine.nvlink_all_to_all : machine.nvlink_ring,
                .own = own_part(machine, collective, path),
                .sliced = !rows || kernels == RowKernels::Nccl,
                .tree = tree,
                .far = far_steps(path, tree)});
  // NCCL's all-to-all sends to the members one after the other: the link to the network waits while it sends to those of its node.
  const Seconds inside = kernels == RowKernels::Nccl ? path.inside * (1 / machine.nvlink_all_to_all) : Seconds{};
  return {.busy = to_nanoseconds(gpu.launch_overhead + choice.busy + inside), .wire_factor = choice.factor, .sm_share = share};
}

Cost exchange_cost(const Gpu& gpu, const Exchange& exchange, const CommunicationPath& path) {
  const MachineConstants& machine = machine_constants(gpu);
  // NCCL sends point to point by the Simple protocol only.
  const ProtocolLatency& latency = protocol_latency(Protocol::Simple);
  const Seconds step = max(step_time(latency, path.nodes > 1 ? LinkKind::Network : path.link), path.step_latency);
  const double factor = wire_factor(machine, path, Protocol::Simple, machine.nvlink_p2p);
  return {.busy = to_nanoseconds(gpu.launch_overhead + latency.base + step),
          .wire_factor = factor,
          .sm_share = sm_share(gpu, machine, static_cast<double>(exchange.bytes.value)) / 3.0};
}

Cost copy_cost(const Gpu& gpu, const Copy&, bool pinned) {
  return {.busy = to_nanoseconds(gpu.launch_overhead), .wire_factor = pinned ? 1.0 : kPageableFactor};
}

}  // namespace foreshard
