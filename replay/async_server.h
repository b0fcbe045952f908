// An asynchronous parameter server (Downpour SGD: Dean et al. 2012, section 4.1, with n_fetch = n_push = 1): every worker has a clock of
// its own and never waits for another.
//
//   worker 0   pull|---- compute ----|push|pull|---- compute ----|push|
//   worker 1        pull|---- compute -----|push|pull|---- compute ---|push
//   server              ^ version 5            ^ + 1: version 8        an update of staleness 2: two others came between
//
// The server's NIC carries one pull and one push at a time, first come first served. The server applies gradients in the order in which
// they arrive. This simulation uses no Plan: ranks of a plan communicate in an order that is known before it runs, these workers do not.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.h"

namespace foreshard {

struct AsyncServer {
  int workers = 1;
  Seconds compute = {};             // mean duration of one step on a worker of speed 1
  double jitter = 0;                // below 1: a step takes compute * (1 + x), x uniform in [-jitter, jitter]
  Seconds pull = {};                // duration of sending the parameters through the server's NIC
  Seconds push = {};                // duration of sending the gradients through it
  Seconds update = {};              // duration of one update on the server
  std::vector<double> speeds = {};  // [worker]: compute takes 1 / speed as long; empty: all 1
  std::uint64_t seed = 0;
};

struct AsyncRun {
  std::int64_t updates = 0;                     // measured updates of all workers
  Seconds time = {};                            // that they took together
  double staleness = 0;                         // mean over updates: number of updates by others between its pull and itself
  std::vector<std::int64_t> by_staleness = {};  // [staleness]: number of updates
  std::vector<double> of_worker = {};           // [worker]: mean staleness of its updates
};

// Simulates a warm-up of 20 updates per worker, then measures `updates` updates.
AsyncRun run_async(const AsyncServer& server, std::int64_t updates);

}  // namespace foreshard
