// What a process knows about its run before it connects to the other processes: its own number, how ranks are assigned to processes, and
// how long it waits for the others.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/base/ids.h"
#include "exec/mesh/process_place.h"

namespace foreshard {

struct MeshOptions {
  ProcessPlace place = {};
  int ranks = 1;  // number of ranks of the plan, at least the number of processes
  // What is run: lines "name=value" that must be equal in all processes. The rendezvous fails if they differ.
  std::string run = {};
  // Identifies the run: letters and digits, equal in all processes. Process 0 rejects a process with another one and keeps waiting.
  std::string job = {};
  std::chrono::milliseconds rendezvous{30000};  // how long the processes try to find each other
  std::chrono::milliseconds patience{3000};     // the run fails if nothing is heard of a process for this long
  bool lends = true;  // other processes of this machine may read large messages directly from this process's memory
  std::function<void(const std::string& event)> log = {};  // called from any thread, but by one thread at a time

  int first_rank(int process) const;  // ranks [first_rank(p), first_rank(p + 1)) are threads of process p: p ranks / processes
  int process_of(RankId rank) const;  // the process of which the rank is a thread
  std::string name_of(int process) const;  // "process 1 (rank 2 to 3)"
};

}  // namespace foreshard
