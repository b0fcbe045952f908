// ComputeSlowdown: communication kernels take a share of a rank's compute units while they run, and so slow the computes of other streams. Such
// computes run on a worker of the clock, whose speed is 1 - the sum of the shares that are taken (at least 0.02). Of a merged step only the
// computes are slowed: it ends as if its parts had run one by one.
#pragma once

#include <vector>

#include "replay/clock.h"
#include "replay/player_input.h"

namespace foreshard::player {

class ComputeSlowdown {
 public:
  // Adds workers to the clock for streams whose computes can be slowed.
  ComputeSlowdown(const PlayerInput& input, Clock& clock);

  // Streams are numbered over all players.
  int worker(int stream) const { return worker_of_[static_cast<std::size_t>(stream)]; }  // -1: nothing can slow its computes
  // Starts it on the stream's worker.
  void compute(int player, int stream, const SegmentSteps& steps, const Step& step, Token done);
  // A communication of the stream begins to take this share of the player's compute units; it ends and takes none.
  void begin(int player, int stream, double sm_share) { change(player, stream, sm_share); }
  void end(int player, int stream) { change(player, stream, 0); }

 private:
  // A compute step in progress. Amounts are seconds of isolated time.
  struct Going {
    // The current stretch, and the end of the stretches; equal: all of it computes.
    const Stretch *stretch = nullptr, *end = nullptr;
    double gone = 0;                         // of the current stretch
    double computes = 0, communication = 0;  // left of the stretches of either kind
    double work = 0, speed = 1;              // left for the clock's worker, and its speed
    double since = 0, left = 1;              // time of the last change, and the share of compute units left since then
  };
  void go_on(Going& going) const;
  void pace(int worker, Going& going, double left);
  void add(const PlayerInput::Player& who);
  void change(int player, int stream, double sm_share);
  double left(int player) const;  // the share of the compute units that no communication takes

  const PlayerInput& input_;
  Clock& clock_;
  std::vector<int> worker_of_ = {};  // [stream of all players]
  std::vector<char> disturbs_ = {};  // [stream of all players]: its communication can overlap computes of another stream
  std::vector<double> taken_ = {};   // [stream of all players]: share of the compute units that it takes at present
  std::vector<Going> going_ = {};    // [stream of all players]: its last compute
};

}  // namespace foreshard::player
