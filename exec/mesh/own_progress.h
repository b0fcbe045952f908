// How far this process is and what one of its ranks runs now: what its signs of life tell the others.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "exec/mesh/mesh_peer.h"

namespace foreshard {

struct ProcessProgress {
  std::int64_t ended = 0;  // steps
  bool works = false;
  MeshRunning running = {};
};

// All calls may come from any thread.
class OwnProgress {
 public:
  void tell(const ProcessProgress& progress);
  // Asked before each sign of life; empty: no longer asked.
  void ask(std::function<MeshRunning()> what_runs);
  ProcessProgress now();

 private:
  std::mutex mutex_, asking_;
  ProcessProgress last_;
  std::function<MeshRunning()> what_runs_;  // under `asking_`
};

}  // namespace foreshard
