// Device memory outside the arena: CUDA context, library workspaces, NCCL buffers. An estimate to be replaced by calibration.
#pragma once

#include <optional>

#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/memory_traits.h"

namespace foreshard {

struct Cluster;
struct MachineProfile;

// Context and loaded kernels 0.5 GiB, cuBLAS workspace 32 MiB, and per communicator of more than one rank the buffers of two
// ring neighbours over NCCL's default channels: 9,633,792 B per connection (memory.md section 6; NVIDIA/nccl src/init.cc).
// Only the connections that a ring uses are allocated: one protocol set in each direction and channel.
Bytes framework_memory(const Strategy& strategy);
// As `calibrate` found it on this cluster's GPUs, and a workspace; nothing when it did not measure it there.
std::optional<Bytes> measured_outside(const MachineProfile* profile, const Cluster& cluster);

// The same with what the framework's traits say about the context.
Bytes framework_memory(const Strategy& strategy, const MemoryTraits& traits);

}  // namespace foreshard
