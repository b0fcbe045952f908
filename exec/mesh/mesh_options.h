// What a process is told of the run that it belongs to: its place, the ranks that are dealt to the processes, how long to wait for others.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/base/ids.h"
#include "exec/mesh/process_place.h"

namespace foreshard {

struct MeshOptions {
  ProcessPlace place = {};
  int ranks = 1;  // of the plan; at least as many as processes
  // Lines "name=value" that have to be the same everywhere: what is run.
  std::string run = {};
  std::string job = {};  // letters and digits; who has another one belongs to another run and is sent away
  std::chrono::milliseconds rendezvous{30000};  // to find each other
  std::chrono::milliseconds patience{3000};     // without a sign of life from a process
  bool lends = true;                            // processes of one machine read large messages from each other's memory
  std::function<void(const std::string& event)> log = {};  // from any thread, one at a time

  int first_rank(int process) const;  // ranks [first_rank(p), first_rank(p + 1)) are threads of process p
  int process_of(RankId rank) const;
  std::string name_of(int process) const;  // "process 1 (rank 2 to 3)"
};

}  // namespace foreshard
