// The progress of this process, which its heartbeats (MeshKind::Beat) report to the other processes.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "exec/mesh/mesh_peer.h"

namespace foreshard {

struct ProcessProgress {
  std::int64_t ended = 0;    // steps (runs of an instruction) that have ended on the ranks of this process
  bool works = false;        // a stream computes (uses the processor or the GPU), rather than waiting for other ranks
  MeshRunning running = {};  // the instruction that runs; may be empty
};

// All functions may be called from any thread.
class OwnProgress {
 public:
  // Sets the progress. An empty `running` leaves the last known instruction.
  void tell(const ProcessProgress& progress);
  // Sets a function that `now` calls to find out what runs; an empty function: none.
  void ask(std::function<MeshRunning()> what_runs);
  // The progress last told, with the instruction that runs now, or else the one that ran last.
  ProcessProgress now();

 private:
  std::mutex mutex_, asking_;
  ProcessProgress last_;
  std::function<MeshRunning()> what_runs_;  // guarded by `asking_`
};

}  // namespace foreshard
