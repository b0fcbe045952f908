// A play of a pipeline with its talk (estimate_talk.h) in which nothing meets anything: every rank says, sends and computes as fast as alone. No
// play takes less, and this one needs no moments: each rank goes on by itself until it waits for another one. Internal to strategy/.
#pragma once

#include "strategy/estimate/estimate_talk_ranks.h"

namespace foreshard {

class AloneTalk : TalkRanks<AloneTalk> {
 public:
  using TalkRanks::kMostCells;
  explicit AloneTalk(const TalkOf& of);
  double run();  // seconds
  // Seconds that no play takes less than, once it has run: those, and of every link, from any moment on, all that cannot cross it before.
  double least() const;
  void look_back();  // for `after`, once it has run
  // Seconds from the end of an action of a rank, the one at this position of its list, until all is done, at least: the longest way through
  // computes and transfers.
  double after(int rank, int position) const { return after_[action(rank, position)]; }

 private:
  friend TalkRanks<AloneTalk>;
  std::size_t action(int rank, int position) const { return at(2 * order_.count() * rank + position); }
  void go(int rank);
  void send(int rank, const PlayOrder::Op& op);
  void ended(int rank);
  void says(int rank, double over_shards, double over_groups);
  void begins(int rank);
  void load(const Links::Traffic& traffic, double seconds);

  std::array<double, 2 * Ways::kMost> free_ = {};  // [stream] since when
  std::array<double, 2 * kMostCells> after_;       // [action]; before the end of the run: its computes
  std::array<int, 2 * kMostCells> done_;           // actions in the order of their ends: each behind those it needs
  int count_ = 0;                                  // of these
  // Of every link, what can cross it from a slice of time on, in seconds. About as many slices make a play.
  static constexpr int kSlices = 64, kMostSlices = 96;
  double slices_per_second_ = 0;
  std::array<std::array<double, kMostSlices>, Links::kLinks> loads_;
};

// Of a rank, from its last backward on.
double least_end(const TalkTimes& talk, const PlayOrder& order, int rank);

}  // namespace foreshard
