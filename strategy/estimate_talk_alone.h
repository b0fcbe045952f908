// A play of a pipeline with its talk (estimate_talk.h) in which nothing meets anything: every rank says, sends and computes as fast as alone. No
// play takes less, and this one needs no moments: each rank goes on by itself until it waits for another one. Internal to strategy/.
#pragma once

#include "strategy/estimate_talk_ranks.h"

namespace foreshard {

class AloneTalk : TalkRanks<AloneTalk> {
 public:
  using TalkRanks::kMostCells;
  explicit AloneTalk(const TalkOf& of) : TalkRanks(of) {}
  double run();  // seconds
  // Seconds from the end of an action of a rank, the one at this position of its list, until all is done, at least: the longest way through
  // computes and transfers.
  double after(int rank, int position) const { return after_[action(rank, position)]; }

 private:
  friend TalkRanks<AloneTalk>;
  std::size_t action(int rank, int position) const { return at(2 * order_.count() * rank + position); }
  void go(int rank);
  void send(int rank, const PlayOrder::Op& op);
  void ended(int rank);
  void find_after();

  std::array<double, 2 * Ways::kMost> free_ = {};  // [stream] since when
  std::array<double, 2 * kMostCells> after_;       // [action]; before the end of the run: its computes
  std::array<int, 2 * kMostCells> done_;           // actions in the order of their ends: each behind those it needs
  int count_ = 0;                                  // of these
};

// Of a rank, from its last backward on.
double least_end(const TalkTimes& talk, const PlayOrder& order, int rank);

}  // namespace foreshard
