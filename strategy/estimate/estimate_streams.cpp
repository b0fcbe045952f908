#include "strategy/estimate/estimate_streams.h"

#include <algorithm>
#include <utility>

namespace foreshard {

namespace {

constexpr double kNever = 1e300;
constexpr int kMostCells = 1024;  // micro-batches of all chunks
constexpr int kMostSteps = 6000;  // units of all actions
constexpr int kMostChunks = 128;  // of all ranks

// A rank's list, one action after the other (PlayOrder).
class Actions {
 public:
  Actions() = default;
  Actions(const PlayOrder& order, int rank) : order_(&order) {
    const int ahead =
        order.chunks == 1 ? order.ranks - 1 - rank : 2 * (order.ranks - 1 - rank) + (order.chunks - 1) * order.ranks;
    warm_up_ = order.schedule == Schedule::GPipe ? order.count() : std::min(ahead, order.count());
  }
  bool done() const { return next_ == 2 * order_->count(); }
  int number() const { return next_; }
  bool backward() const {
    const int rest = next_ - warm_up_, pairs = order_->count() - warm_up_;
    return rest >= 0 && (rest >= 2 * pairs || rest % 2 == 1);
  }
  int chunk() const { return backward() ? order_->chunks - 1 - walk_[1].chunk : walk_[0].chunk; }
  int microbatch() const {
    const Walk& walk = walk_[backward() ? 1 : 0];
    return walk.group + walk.in_group;
  }
  void advance() {
    Walk& walk = walk_[backward() ? 1 : 0];
    ++next_;
    const int size = order_->chunks == 1 ? 1 : order_->ranks;
    if (++walk.in_group < size) return;
    walk.in_group = 0;
    if (++walk.chunk < order_->chunks) return;
    walk.chunk = 0, walk.group += size;
  }

 private:
  struct Walk {
    int in_group = 0, chunk = 0, group = 0;
  };
  const PlayOrder* order_ = nullptr;
  int warm_up_ = 0, next_ = 0;
  std::array<Walk, 2> walk_ = {};  // forwards, backwards
};

class Streams {
 public:
  Streams(Schedule schedule, const PipelineTimes& times, const StreamTimes& streams, bool overlap, int microbatches)
      : t_(times),
        s_(streams),
        order_{schedule, times.ranks, times.chunks, microbatches},
        p_(times.ranks),
        v_(times.chunks),
        overlap_(overlap),
        gathers_(streams.of[1].gather > 0),
        reduces_(streams.of[1].scatter > 0) {
    for (const ChunkStreams& of : streams.of) units_ = std::max(units_, of.units());
    std::fill_n(input_.begin(), cells(), kNever), std::fill_n(gradient_.begin(), cells(), kNever);
    for (int rank = 0; rank < p_; ++rank) {
      ranks_[at(rank)].computes = Actions(order_, rank);
      ranks_[at(rank)].talks = Actions(order_, rank);
    }
    for (int chunk = 0; chunk < p_ * v_; ++chunk) said_[at(chunk)] = {-1, -1}, last_[at(chunk)] = {};
  }

  double run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < p_; ++rank)
        while (act(rank)) moved = true;
    }
    return ranks_[0].now;
  }
  double period() const {
    return order_.schedule == Schedule::GPipe ? gpipe_period_[0] + gpipe_period_[1] : (late_ - early_) / p_;
  }

 private:
  struct Rank {
    double now = 0;  // of both streams
    Actions computes = {}, talks = {};
    int progress = 0;  // units_ + 1 for each action that is done, and one for each unit of the one under way
    int done = 0;      // pieces of talk that are through
    int item = 0;      // next piece of the action that talks
    bool talking = false;
    double left = 0, behind = 0;  // of the piece under way, and of what comes behind it
    bool is_behind = false;       // that is under way
    double since = 0;             // it began
    double lane = 0;              // sends take turns
    std::array<double, 2> sent = {};
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int cells() const { return p_ * v_ * order_.microbatches; }
  std::size_t cell(int rank, int chunk, int microbatch) const {
    return at((rank * v_ + chunk) * order_.microbatches + microbatch);
  }
  const ChunkStreams& of(int rank, int chunk) const {
    const int kind = order_.kind(rank, chunk);
    return s_.by_rank.empty() ? s_.of[at(kind)] : s_.by_rank[at(3 * rank + kind)];
  }

  // ---- what a rank says, in turn
  int gathers(const ChunkStreams& what, bool backward) const {
    return gathers_ ? what.units() - (backward && what.end < 0 ? 1 : 0) : 0;
  }
  int items(const ChunkStreams& what, bool backward) const {
    return gathers(what, backward) + (backward && reduces_ ? what.units() : 0);
  }
  // The gather of the unit before goes ahead of a reduction where there is a place for it.
  struct Item {
    bool gathers = false;
    int turn = 0;  // units of the action before this one
  };
  Item item(const ChunkStreams& what, bool backward, int number) const {
    const int all = gathers(what, backward), apart = s_.gather_places < 2 ? 2 * all : 2 * all - 1;
    if (!backward) return {true, number};
    if (all == 0 || number >= apart) return {false, number - all};
    if (s_.gather_places < 2) return {number % 2 == 0, number / 2};
    if (number == 0) return {true, 0};
    return {number % 2 == 1, number % 2 == 1 ? (number + 1) / 2 : number / 2 - 1};
  }
  // Where a piece of a backward stands in that order.
  int gather_at(int turn) const { return s_.gather_places < 2 ? 2 * turn : std::max(0, 2 * turn - 1); }
  int reduction_at(const ChunkStreams& what, int turn) const {
    const int all = gathers(what, true), number = s_.gather_places < 2 ? 2 * turn + 1 : 2 * turn + 2;
    return all == 0 || number >= (s_.gather_places < 2 ? 2 * all : 2 * all - 1) ? turn + all : number;
  }
  // Whether that unit is the embedding or the head.
  static bool at_end(const ChunkStreams& what, bool backward, int turn) {
    return what.end != 0 && turn == ((what.end < 0) == backward ? what.units() - 1 : 0);
  }
  double work(const ChunkStreams& what, bool backward, const Item& piece) const {
    const bool end = at_end(what, backward, piece.turn);
    return piece.gathers ? (end ? what.end_gather : what.gather) : (end ? what.end_scatter : what.scatter);
  }
  // The progress after which nobody needs the place of a gather any more. With two, layers take turns, and embedding and head have places of
  // their own; nothing is gathered before the unit but one before it is done.
  struct Last {
    int forward = -1, backward = -1;  // the progress before the last actions of a chunk
  };
  int free_after(const ChunkStreams& what, const Last& last, bool backward, int turn, int before) const {
    const int places = s_.gather_places, units = what.units(), first = what.end < 0 ? 1 : 0;
    if (turn >= places) return before + turn - places + 1;
    if (last.forward < 0) return 0;
    const bool again = last.backward > last.forward;  // the last one was a backward
    if (places < 2) return again ? last.backward + units - first : last.forward + units;
    if (at_end(what, backward, turn)) return again && !first ? last.backward + 1 : last.forward + (first ? 1 : units);
    const int place = ((backward ? units - 1 - turn : turn) - first) % places;
    const int layer = again ? place : what.layers - 1 - (what.layers - 1 - place) % places;  // that had it last
    return again ? last.backward + units - layer - first : last.forward + layer + first + 1;
  }
  // Begins the next piece if what it waits for is done.
  bool begin_talk(int r, Rank& rank) {
    while (!rank.talks.done()) {
      const bool backward = rank.talks.backward();
      const int chunk = rank.talks.chunk(), own = r * v_ + chunk, number = rank.talks.number() * (units_ + 1);
      const ChunkStreams& what = of(r, chunk);
      if (rank.item == items(what, backward)) {
        (backward ? last_[at(own)].backward : last_[at(own)].forward) = number;
        rank.talks.advance(), rank.item = 0;
        continue;
      }
      const Item piece = item(what, backward, rank.item);
      const int needs =
          piece.gathers ? free_after(what, last_[at(own)], backward, piece.turn, number) : number + piece.turn + 1;
      if (rank.progress < needs) return false;
      ++rank.item;
      rank.talking = true, rank.since = rank.now, rank.left = work(what, backward, piece);
      const bool end = at_end(what, backward, piece.turn), last = rank.talks.microbatch() + 1 == order_.microbatches;
      if (!piece.gathers) rank.behind = (end ? what.tied_scatter : 0) + (!last ? 0 : end ? what.end_groups : what.groups);
      return true;
    }
    return false;
  }

  // ---- both streams of a rank, side by side
  // Sums over groups come behind what they belong to; its place is free before.
  void finish_piece(Rank& rank) {
    if (!std::exchange(rank.is_behind, false)) ++rank.done;
    rank.left = std::exchange(rank.behind, 0.0);
    rank.talking = rank.is_behind = rank.left > 0;
  }
  void compute(int r, Rank& rank, double seconds, const ChunkStreams& what, bool backward) {
    const double fast = what.compute_speed[backward ? 1 : 0], talk = what.talk_speed[backward ? 1 : 0];
    while (seconds > 0) {
      if (!rank.talking && !begin_talk(r, rank)) {
        rank.now += seconds;
        return;
      }
      const double takes = rank.left / talk;
      if (takes * fast >= seconds) {
        rank.now += seconds / fast, rank.left -= seconds / fast * talk;
        return;
      }
      rank.now += takes, seconds -= takes * fast;
      finish_piece(rank);
    }
  }
  void wait_until(int r, Rank& rank, double when) {
    while (rank.now < when) {
      if (!rank.talking && !begin_talk(r, rank)) break;
      if (rank.now + rank.left > when) {
        rank.left -= when - rank.now;
        break;
      }
      rank.now += rank.left;
      finish_piece(rank);
    }
    rank.now = std::max(rank.now, when);
  }
  void wait_for(int r, Rank& rank, int piece) {  // until so many are through
    while (rank.done < piece) {
      if (!rank.talking && !begin_talk(r, rank)) return;  // it belongs to what is still to come
      rank.now += rank.left;
      finish_piece(rank);
    }
  }

  // ---- the actions of a rank
  bool act(int r) {
    Rank& rank = ranks_[at(r)];
    if (rank.computes.done()) return false;
    const bool backward = rank.computes.backward();
    const int chunk = rank.computes.chunk(), microbatch = rank.computes.microbatch(), kind = order_.kind(r, chunk);
    const bool outer = backward ? kind == 2 : kind == 0;
    const double ready = outer ? 0 : (backward ? gradient_ : input_)[cell(r, chunk, microbatch)];
    if (ready >= kNever) return false;
    wait_until(r, rank, ready);
    if (!outer && rank.since < ready - s_.hop_on_link) beside_hop(rank);
    const ChunkStreams& what = of(r, chunk);
    if (backward)
      run_backward(r, rank, what, chunk);
    else
      run_forward(r, rank, what);
    rank.progress = (rank.computes.number() + 1) * (units_ + 1);
    first_item_[at(r)] += items(what, backward);
    note(r, backward, chunk, microbatch, rank.now);
    if (kind != (backward ? 0 : 2)) send(r, rank, backward, chunk, microbatch);
    rank.computes.advance();
    return true;
  }
  void run_forward(int r, Rank& rank, const ChunkStreams& what) {
    if (!gathers_) return compute(r, rank, what.forward - less(r, false), what, false);
    const double layer = (what.forward - what.forward_end) / what.layers;
    const double rest = s_.gather_places < 2 ? std::min(what.rest, layer) : 0;
    for (int turn = 0; turn < what.units(); ++turn) {
      const bool end = at_end(what, false, turn);
      wait_for(r, rank, first_item_[at(r)] + turn + 1);
      compute(r, rank, end ? what.forward_end : layer - rest, what, false);
      ++rank.progress;
      if (!end) compute(r, rank, rest, what, false);
    }
  }
  void run_backward(int r, Rank& rank, const ChunkStreams& what, int chunk) {
    const double redone = what.redone - s_.fewer[at(r)], seconds = what.backward - less(r, true);
    if (!gathers_ && !reduces_) return compute(r, rank, seconds - s_.fewer[at(r)] * what.redo, what, true);
    const double layer = (seconds - what.backward_end - what.redone * what.redo) / what.layers;
    for (int turn = 0, first = first_item_[at(r)]; turn < what.units(); ++turn) {
      const bool end = at_end(what, true, turn), again = what.layers - 1 - turn + std::max(0, what.end) < redone;
      const double whole = end ? what.backward_end : layer + (again ? what.redo : 0);
      const double head = end ? (what.end > 0 ? whole / 2 : 0) : std::min(again ? what.redone_head : what.head, whole);
      if (turn < gathers(what, true)) wait_for(r, rank, first + gather_at(turn) + 1);
      compute(r, rank, head, what, true);
      int& place = said_[at(r * v_ + chunk)][at((what.units() - 1 - turn) % s_.reduce_places)];
      wait_for(r, rank, place);
      compute(r, rank, whole - head, what, true);
      place = first + reduction_at(what, turn) + 1;
      ++rank.progress;
    }
  }
  double less(int rank, bool backward) const {
    return rank > 0 && rank <= t_.fewer ? (backward ? t_.backward_less : t_.forward_less) : 0;
  }
  void send(int r, Rank& rank, bool backward, int chunk, int microbatch) {
    const bool wraps = backward ? r == 0 : r + 1 == p_;
    const int to = backward ? (wraps ? p_ - 1 : r - 1) : (wraps ? 0 : r + 1);
    if (!rank.talking) begin_talk(r, rank);
    const double begin = std::max(rank.now, rank.lane), there = begin + t_.hop + beside_hop(rank) * (1 - s_.hop_speed);
    rank.lane = there;
    (backward ? gradient_ : input_)[cell(to, chunk + (wraps ? (backward ? -1 : 1) : 0), microbatch)] = there;
    if (!overlap_) wait_until(r, rank, there);
  }
  // What a rank says is held up by a transfer of its own, and by one that comes, as if it were there now. For how many seconds.
  double beside_hop(Rank& rank) const {
    if (!rank.talking) return 0;
    const double seconds = std::min(s_.hop_on_link / s_.hop_speed, rank.left / s_.talk_beside_hop);
    rank.left += seconds * (1 - s_.talk_beside_hop);
    return seconds;
  }
  void note(int rank, bool backward, int chunk, int microbatch, double end) {
    if (order_.schedule == Schedule::GPipe) {
      if (rank != (backward ? 0 : p_ - 1) || microbatch + 1 == order_.microbatches) return;  // the last one says more
      double& last = backward ? late_ : early_;
      gpipe_period_[backward ? 1 : 0] = end - last;
      last = end;
    } else if (rank + 1 == p_ && backward && chunk + 1 == v_) {
      if (microbatch == p_) early_ = end;
      if (microbatch == 2 * p_) late_ = end;
    }
  }

  const PipelineTimes& t_;
  const StreamTimes& s_;
  PlayOrder order_;
  int p_, v_, units_ = 1;
  bool overlap_, gathers_, reduces_;
  double early_ = 0, late_ = 0;
  std::array<double, 2> gpipe_period_ = {};
  std::array<Rank, Ways::kMost> ranks_ = {};
  std::array<int, Ways::kMost> first_item_ = {};      // [rank]: of the action under way
  std::array<std::array<int, 2>, kMostChunks> said_;  // [chunk][place]: pieces until its last reduction is through
  std::array<Last, kMostChunks> last_;                // [chunk]: before the action that talks
  std::array<double, kMostCells> input_, gradient_;
};

}  // namespace

std::optional<double> play_streams(Schedule schedule, const PipelineTimes& times, const StreamTimes& streams, bool overlap) {
  constexpr int kRounds = 3;  // of as many micro-batches as ranks: filling, the middle, draining
  const int all = static_cast<int>(times.microbatches), p = times.ranks;
  if (schedule != Schedule::GPipe && schedule != Schedule::OneFOneB && schedule != Schedule::Interleaved) return {};
  const int few = std::min(all, kRounds * p + (times.chunks == 1 ? 1 : 0)), cells = p * times.chunks * few;
  int units = 1;
  for (const ChunkStreams& of : streams.of) units = std::max(units, of.units());
  if (p > Ways::kMost || p * times.chunks > kMostChunks || cells > kMostCells || cells * units > kMostSteps) return {};
  if (times.chunks > 1 && all % p != 0) return {};
  Streams play(schedule, times, streams, overlap, few);
  const double seconds = play.run();
  return few == all ? seconds : seconds + (all - few) * play.period();
}

}  // namespace foreshard
