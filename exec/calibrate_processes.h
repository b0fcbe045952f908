// What collectives take between the processes that a launcher started, by kind, size of the group and bytes.
#pragma once

#include <vector>

#include "core/machine_profile.h"
#include "exec/process_mesh.h"

namespace foreshard {

struct CollectiveMeasure {
  CollectiveKind kind = {};
  int ranks = 2;  // the first of all, one per process
  Bytes bytes = {};
  Seconds time = {};  // median of the rounds, as process 0 sees them
  BytesPerSecond algorithm_bandwidth() const { return {static_cast<double>(bytes.value) / time.value}; }
  // What a link carries: times 2 (n - 1) / n of an all-reduce, (n - 1) / n of gathers, scatters and all-to-alls (nccl-tests, PERFORMANCE.md).
  BytesPerSecond bus_bandwidth() const;
  bool operator==(const CollectiveMeasure&) const = default;
};

// Called by all processes, each being one rank. Groups of 2, 4, 8, ... and all; up to `largest` bytes.
std::vector<CollectiveMeasure> measure_collectives(ProcessMesh& mesh, Bytes largest);

// All-reduces into the profile, in place of those it had, and the link that fits them best: a ring of 2 (n - 1) steps of latency + bytes / n /
// bandwidth, each weighted by its own time.
void take_collectives(MachineProfile& profile, const std::vector<CollectiveMeasure>& measures);

}  // namespace foreshard
