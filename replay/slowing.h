// Slowing: communication kernels take a share of a rank's compute units while they run. The computes of such a rank are
// work for a worker of the clock whose speed is 1 - the sum of the shares under way. Of a merged step only its computes are
// slowed: it ends as if its parts had been played one by one.
#pragma once

#include <vector>

#include "replay/cast.h"
#include "replay/clock.h"

namespace foreshard::player {

class Slowing {
 public:
  // Adds workers to the clock for the players that need them.
  Slowing(const Cast& cast, Clock& clock);

  int worker(int stream) const { return worker_of_[static_cast<std::size_t>(stream)]; }  // -1: nothing disturbs it
  void compute(int player, int stream, const SegmentSteps& steps, const Step& step, Token done);
  void begin(int player, int stream, double sm_share) { change(player, stream, sm_share); }
  void end(int player, int stream) { change(player, stream, 0); }

 private:
  // A compute under way, in seconds of its isolated time.
  struct Going {
    const Stretch *stretch = nullptr, *end = nullptr;
    double gone = 0;                         // of that stretch
    double computes = 0, communication = 0;  // what is left, of either kind
    double work = 0, speed = 1;              // what the clock's worker has left, and how fast it goes
    double since = 0, left = 1;              // when that was, and of the compute units since then
  };
  void go_on(Going& going) const;
  void pace(int worker, Going& going, double left);
  void add(const Cast::Player& who);
  void change(int player, int stream, double sm_share);
  double left(int player) const;  // of the compute units

  const Cast& cast_;
  Clock& clock_;
  std::vector<int> worker_of_ = {};  // [stream of all players]
  std::vector<char> disturbs_ = {};  // [stream of all players]: what it communicates runs beside a compute stream
  std::vector<double> taken_ = {};   // [stream of all players]: share under way
  std::vector<Going> going_ = {};    // [stream of all players]: the newest compute
};

}  // namespace foreshard::player
