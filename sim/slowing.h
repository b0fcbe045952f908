// Slowing: communication kernels take a share of a rank's compute units while they run. The computes of such a rank are
// work on an engine worker whose speed is 1 - the sum of the shares under way, exact in the middle of a kernel.
#pragma once

#include <vector>

#include "sim/cast.h"
#include "sim/engine.h"

namespace foreshard::sim {

class Slowing {
 public:
  // Adds workers to the engine for the players that need them. Throws Error when a role has too many different shares.
  Slowing(const Plan& plan, const Cast& cast, Engine& engine);

  int worker(int stream) const { return worker_of_[static_cast<std::size_t>(stream)]; }  // -1: nothing disturbs it
  void begin(int player, int stream, double sm_share) { change(player, stream, sm_share, 1); }
  void end(int player, int stream, double sm_share) { change(player, stream, sm_share, -1); }

 private:
  struct Level {
    double share = 0;
    int weight = 0;
  };
  void change(int player, int stream, double sm_share, int sign);
  void add(int player, const Plan& plan, const Cast& cast);

  Engine& engine_;
  std::vector<int> worker_of_ = {};  // [stream of all players]
  std::vector<std::vector<Level>> levels_ =
      {};  // [stream of all players]: its shares; weights make a number of all streams' states
  std::vector<std::vector<int>> workers_ = {};  // [player]
  std::vector<int> speed_ = {};                 // [player]
};

}  // namespace foreshard::sim
