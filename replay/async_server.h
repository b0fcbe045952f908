// An asynchronous parameter server (Downpour SGD: Dean et al. 2012, section 4.1, with n_fetch = n_push = 1): every worker has a clock of
// its own and never waits for another.
//
//   worker 0   pull|---- compute ----|push|pull|---- compute ----|push|
//   worker 1        pull|---- compute -----|push|pull|---- compute ---|push
//   server              ^ version 5            ^ + 1: version 8        an update of staleness 2: two others came between
//
// The server's network card carries one pull and one push at a time, first come first served; then the server updates, in the order in
// which gradients have arrived. A model beside the Plan: ranks of a plan meet in an order that is known before it runs, these do not.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.h"

namespace foreshard {

struct AsyncServer {
  int workers = 1;
  Seconds compute = {};             // of a worker, on average
  double jitter = 0;                // below 1: a step takes compute * (1 +- jitter), evenly spread
  Seconds pull = {};                // parameters through the server's card
  Seconds push = {};                // gradients
  Seconds update = {};              // on the server
  std::vector<double> speeds = {};  // of each worker; empty: 1
  std::uint64_t seed = 0;
};

struct AsyncRun {
  std::int64_t updates = 0;                     // that were looked at, of all workers
  Seconds time = {};                            // they took
  double staleness = 0;                         // mean: updates of others between an update's pull and itself
  std::vector<std::int64_t> by_staleness = {};  // how many updates of each
  std::vector<double> of_worker = {};           // mean, of each worker's updates
};

// `updates` after as many as every worker needs to be in step with the others, 20 each.
AsyncRun run_async(const AsyncServer& server, std::int64_t updates);

}  // namespace foreshard
