// States the memory outside the arena that a machine profile has for these GPUs.
#pragma once

#include "core/model/model.h"
#include "core/strategy/strategy.h"

namespace foreshard {

struct Cluster;
struct MachineProfile;

// The resolved strategy with DeviceMemory::framework as measured_outside has it, plus attention_workspace, which is not part of a measurement.
// Unchanged where the strategy states it or nothing was measured on the cluster's GPUs.
Strategy with_measured_memory(const Model& model, const Cluster& cluster, Strategy resolved, const MachineProfile* profile);

}  // namespace foreshard
