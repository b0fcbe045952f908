// Framework memory: device memory outside the arena, which is the CUDA context, library workspaces and NCCL buffers. An estimate, which
// calibration replaces by a measurement.
#pragma once

#include <optional>
#include <string>

#include "core/graph/op_graph.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/memory_traits.h"

namespace foreshard {

struct Cluster;
struct MachineProfile;

// What DeviceMemory::framework of the strategy states; else the sum of 0.5 GiB for context and loaded kernels, 32 MiB for the cuBLAS
// workspace, and 9,633,792 bytes for each of NCCL's connections (NVIDIA/nccl src/init.cc): 8 channels for every data, context or tensor
// communicator of more than one rank, and 2 channels to each of two neighbours in a pipeline.
// A run of ours needs attention_workspace beside it, unless the strategy states its memory.
Bytes framework_memory(const Strategy& strategy);
// What our executor may need on the cluster's GPUs for the attention (attention_memory, core/plan/attention_memory.h): the most of any
// instruction of the plan, or of any operator of the graph, which is that of a plan whose micro-batches are not cut into parts. Nothing for a
// plan of another framework, whose preset has its memory, and for a strategy that states DeviceMemory::framework, which is everything.
Bytes attention_workspace(const Plan& plan, const Cluster& cluster, const Strategy& strategy);
Bytes attention_workspace(const OpGraph& graph, const Cluster& cluster, const Strategy& strategy);
// The memory that `calibrate` measured on this cluster's GPUs, plus a workspace; empty: not measured on them.
std::optional<Bytes> measured_outside(const MachineProfile* profile, const Cluster& cluster);

// The same as the first for a framework: MemoryTraits::context, where it is set, in place of context and workspace, and the communicators of
// MemoryTraits::communicators, where there are any, in place of a ring per axis. `architecture`: the GPU's ("hopper").
Bytes framework_memory(const Strategy& strategy, const MemoryTraits& traits, const std::string& architecture);

}  // namespace foreshard
