// Measures what collectives take between ranks, by kind, group and bytes: threads of one process or processes that a launcher started, on the
// host (HostRanks) or on GPUs (exec/cuda_checks/calibrate_nccl.h).
#pragma once

#include <memory>
#include <vector>

#include "core/profile/machine_profile.h"
#include "exec/base/stop.h"
#include "exec/calibrate/calibrate_groups.h"
#include "exec/communicator/communicator.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

// One thing to measure. `call` lacks its operands, which each rank has of its own.
struct MeasuredCall {
  CollectiveCall call = {};
  std::size_t group = 0;
  int rounds = 1;  // the first of them does not count
};

// The ranks of this process, and how they meet those of the others.
class CollectiveRanks {
 public:
  virtual ~CollectiveRanks() = default;
  virtual std::vector<RankId> here() const = 0;
  virtual MeasuredAlgorithm algorithm() const = 0;
  // Once, by one thread of every process with the same calls; then the ranks of this process can be told to stop.
  virtual void prepare(const std::vector<MeasuredCall>& calls) = 0;
  // Seconds of one collective, as this rank sees them. By a thread per rank, in the order of calls and rounds, by members only. Throws Stopped.
  virtual double run(RankId rank, std::size_t call, int round) = 0;
  Stop& stop() { return stop_; }

 protected:
  Stop stop_;
};

// mesh: this process is one rank; null: `threads` ranks are here.
std::unique_ptr<CollectiveRanks> host_ranks(ProcessMesh* mesh, int threads, Bytes largest);

struct CollectiveSizes {
  Bytes least{4096}, most{std::int64_t{16} << 20U};  // by factors of 4
  int most_rounds = 41;                              // of small ones; 5 of the largest
};

// Kinds that the algorithm knows. Called by all processes. The time is the mean of the members, the median of the rounds; process 0 has the
// answers, the others none. Throws what a rank threw first.
std::vector<CollectiveKind> kinds_of(MeasuredAlgorithm algorithm);
std::vector<CollectiveMeasure> measure_collectives(CollectiveRanks& ranks, ProcessMesh* mesh,
                                                   const std::vector<MeasuredGroup>& groups, const CollectiveSizes& sizes);

// Into the profile, in place of those of the same algorithms and classes of links; its link becomes the one that fits the all-reduces of the
// nearest class best: NVLink, PCIe, node, process, network.
void take_collectives(MachineProfile& profile, const std::vector<CollectiveMeasure>& measures);

}  // namespace foreshard
