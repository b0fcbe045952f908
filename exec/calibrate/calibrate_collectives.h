// Measures the time of collectives by kind, group and size. The ranks are threads of one process, or processes that a launcher started;
// they communicate through the host communicators (host_ranks) or through NCCL (exec/cuda_checks/calibrate_nccl.h).
#pragma once

#include <memory>
#include <vector>

#include "core/profile/machine_profile.h"
#include "exec/base/stop.h"
#include "exec/calibrate/calibrate_groups.h"
#include "exec/communicator/communicator.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

// A collective to measure. The operands of `call` are not set: every rank has its own.
struct MeasuredCall {
  CollectiveCall call = {};
  std::size_t group = 0;  // index in the list of MeasuredGroup
  int rounds = 1;         // repetitions; the first does not count
};

// The ranks of this process, and the communicator that connects them with all ranks.
class CollectiveRanks {
 public:
  virtual ~CollectiveRanks() = default;
  virtual std::vector<RankId> here() const = 0;     // the ranks of this process
  virtual MeasuredAlgorithm algorithm() const = 0;  // what the measurements are labelled with
  // Called once before `run`, by one thread of every process, with the same calls in all processes.
  virtual void prepare(const std::vector<MeasuredCall>& calls) = 0;
  // Runs collective `call` (an index in the calls of `prepare`) and returns its duration on this rank in seconds. Every member of the group
  // calls it, in a thread of its own, in the order of calls and rounds. Throws Stopped after `stop` was raised.
  virtual double run(RankId rank, std::size_t call, int round) = 0;
  Stop& stop() { return stop_; }  // raising it makes all ranks of this process return from `run`

 protected:
  Stop stop_;
};

// Ranks on the CPU. With a mesh, this process is one rank, connected with the others by TCP; without (null), the ranks are `threads`
// threads of this process. `largest`: bytes of the operands of each rank.
std::unique_ptr<CollectiveRanks> host_ranks(ProcessMesh* mesh, int threads, Bytes largest);

struct CollectiveSizes {
  Bytes least{4096}, most{std::int64_t{16} << 20U};  // sizes from `least` to `most`, each 4 times the one before
  int most_rounds = 41;                              // counted repetitions of small sizes; large sizes have fewer, at least 5
};

// The collectives that the algorithm can run (for NCCL: its table in src/graph/tuning.cc).
std::vector<CollectiveKind> kinds_of(MeasuredAlgorithm algorithm);

// Measures all kinds_of(ranks.algorithm()) in all groups and sizes. All processes call it together. A measured time is the median over the
// rounds of the mean over the members. Returns the measurements in process 0, an empty list in the others. If a rank throws, all ranks stop
// and the first exception is rethrown.
std::vector<CollectiveMeasure> measure_collectives(CollectiveRanks& ranks, ProcessMesh* mesh,
                                                   const std::vector<MeasuredGroup>& groups, const CollectiveSizes& sizes);

// Adds the measurements to the profile; they replace all older ones of the same algorithm and class of links. It also sets link_latency and
// link_bandwidth of the profile, fitted to the all-reduces of the first class that has been measured, in the order NVLink, PCIe, node,
// process, network.
void take_collectives(MachineProfile& profile, const std::vector<CollectiveMeasure>& measures);

}  // namespace foreshard
