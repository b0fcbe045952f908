#include "strategy/estimate_talk.h"

#include <algorithm>

namespace foreshard {

namespace {

constexpr double kNever = 1e300;
constexpr int kMostCells = 1024;  // micro-batches of all chunks

enum class State { Stands, Waits, BeginHold, First, Free, Hold, Rest, Meets, Done };

class Talk {
 public:
  Talk(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways, double bytes, bool overlap,
       int microbatches)
      : t_(times),
        talk_(talk),
        ways_(ways),
        order_{schedule, times.ranks, times.chunks, microbatches},
        p_(times.ranks),
        bytes_(bytes),
        overlap_(overlap) {
    std::fill_n(input_.begin(), cells(), kNever), std::fill_n(gradient_.begin(), cells(), kNever);
    for (int rank = 0; rank < p_; ++rank) {
      for (int chunk = 0; chunk < order_.chunks; ++chunk) ranks_[at(rank)].backlog += of(rank, chunk).early_gathers;
      ranks_[at(rank)].early = ranks_[at(rank)].backlog;
    }
  }

  double run() {
    for (int rank = 0; rank < p_; ++rank) begin_next(rank);
    while (step()) {
    }
    return now_;
  }
  double period() const {
    return (marks_[0][1] - marks_[0][0] + marks_[1][1] - marks_[1][0]) / p_;
  }

 private:
  struct Rank {
    State state = State::Waits;
    TalkStep step = {};
    PlayOrder::Op op = {};
    int position = 0, finish = 0;       // in its list; in what comes after it
    double until = 0;                   // Waits: for its input; Stands: for its own transfer
    double done = 0;                    // seconds of compute of the step
    double backlog = 0, early = 0;
    double compute_speed = 1, talk_speed = 1;
    bool working = false;               // an action of the list
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int cells() const { return p_ * order_.count(); }
  std::size_t cell(int rank, int chunk, int microbatch) const {
    return at((rank * order_.chunks + chunk) * order_.microbatches + microbatch);
  }
  const TalkOfChunk& of(int rank, int chunk) const { return talk_.of[at(order_.kind(rank, chunk))]; }

  // ---- one moment to the next
  bool step() {
    std::array<int, Ways::kMost> talkers = {};
    for (int rank = 0; rank < p_; ++rank) talkers[at(rank / talk_.together)] += ranks_[at(rank)].backlog > 0;
    double least = kNever;
    std::array<double, Ways::kMost> computes, talks;
    for (int rank = 0; rank < p_; ++rank) {
      Rank& r = ranks_[at(rank)];
      const bool busy = r.state == State::First || r.state == State::Free || r.state == State::Rest;
      const bool both = busy && r.backlog > 0;
      computes[at(rank)] = both ? r.compute_speed : 1;
      talks[at(rank)] = (both ? r.talk_speed : 1) / std::max(1, talkers[at(rank / talk_.together)]);
      if (r.backlog > 0) least = std::min(least, r.backlog / talks[at(rank)]);
      least = std::min(least, time_left(r, computes[at(rank)], talks[at(rank)]));
    }
    if (least >= kNever) return false;
    now_ += least;
    for (int rank = 0; rank < p_; ++rank) {
      Rank& r = ranks_[at(rank)];
      const double left = time_left(r, computes[at(rank)], talks[at(rank)]) - least;
      if (r.state == State::First || r.state == State::Free || r.state == State::Rest) r.done += least * computes[at(rank)];
      if (r.backlog > 0) {
        r.backlog -= least * talks[at(rank)];
        if (r.backlog < kTiny) r.backlog = 0;
      }
      ready_[at(rank)] = left <= kTiny;
    }
    for (int rank = 0; rank < p_; ++rank)
      if (ready_[at(rank)]) go_on(rank);
    return true;
  }
  double time_left(const Rank& r, double compute, double talk) const {
    switch (r.state) {
      case State::Stands:
      case State::Waits: return r.until >= kNever ? kNever : std::max(0.0, r.until - now_);
      case State::BeginHold: return std::max(0.0, r.backlog - r.step.begin_hold) / talk;
      case State::Hold: return std::max(0.0, r.backlog - r.step.hold) / talk;
      case State::First: return std::max(0.0, r.step.said_at - r.done) / compute;
      case State::Free: return std::max(0.0, r.step.free - r.done) / compute;
      case State::Rest: return std::max(0.0, r.step.compute - r.done) / compute;
      case State::Meets:
      case State::Done: return kNever;
    }
    return kNever;
  }

  // ---- what a rank does next: all that takes no time
  void go_on(int rank) {
    Rank& r = ranks_[at(rank)];
    for (;;) switch (r.state) {
        case State::Stands:
          if (r.until > now_) return;
          return begin_next(rank);
        case State::Waits:
          if (r.until > now_) return;
          r.backlog += r.step.before;
          r.done = 0;
          r.state = State::BeginHold;
          break;
        case State::BeginHold:
          if (r.step.begin_hold >= 0 && r.backlog > r.step.begin_hold + kTiny) return;
          r.state = State::First;
          break;
        case State::First:
          if (r.done < r.step.said_at - kTiny) return;
          r.backlog += r.step.said;
          r.state = r.step.hold >= 0 ? State::Free : State::Rest;
          break;
        case State::Free:
          if (r.done < r.step.free - kTiny) return;
          r.state = State::Hold;
          break;
        case State::Hold:
          if (r.backlog > r.step.hold + kTiny) return;
          r.state = State::Rest;
          break;
        case State::Rest:
          if (r.done < r.step.compute - kTiny) return;
          return end(rank);
        case State::Meets:
        case State::Done: return;
      }
  }

  void begin_next(int rank) {
    Rank& r = ranks_[at(rank)];
    r.working = r.position < 2 * order_.count();
    if (!r.working) return finish(rank);
    r.op = order_.at(rank, r.position);
    const TalkOfChunk& chunk = of(rank, r.op.chunk);
    const int kind = order_.kind(rank, r.op.chunk);
    const auto way = static_cast<std::size_t>(r.op.backward ? 1 : 0);
    r.compute_speed = chunk.compute_speed[way], r.talk_speed = chunk.talk_speed[way];
    if (!r.op.backward)
      r.step = chunk.forward;
    else
      r.step = r.op.microbatch + 1 == order_.microbatches ? chunk.last_backward : chunk.backward;
    if (!r.op.backward && r.op.microbatch == 0 && chunk.early_gathers > 0) {
      r.early -= chunk.early_gathers;
      r.step.hold = std::max(0.0, r.early), r.step.free = r.step.compute * (1 - chunk.early_share);
    }
    const double less = rank > 0 && rank <= t_.fewer ? (r.op.backward ? t_.backward_less : t_.forward_less) : 0;
    r.step.compute -= less, r.step.free = std::min(r.step.free, r.step.compute);
    r.step.said_at = std::min(r.step.said_at, r.step.compute);
    r.state = State::Waits;
    const bool outer = r.op.backward ? kind == 2 : kind == 0;
    r.until = outer ? now_ : (r.op.backward ? gradient_ : input_)[cell(rank, r.op.chunk, r.op.microbatch)];
    go_on(rank);
  }

  void end(int rank) {
    Rank& r = ranks_[at(rank)];
    r.backlog += r.step.after;
    if (!r.working) {
      ++r.finish;
      return finish(rank);
    }
    note(rank);
    ++r.position;
    const double there = send(rank, r.op);
    r.working = false;
    if (there > now_ && !overlap_) {
      r.state = State::Stands, r.until = there;
      return;
    }
    begin_next(rank);
  }
  // When the neighbour has it.
  double send(int rank, const PlayOrder::Op& op) {
    const int kind = order_.kind(rank, op.chunk);
    if (op.backward ? kind == 0 : kind == 2) return now_;
    const bool wraps = op.backward ? rank == 0 : rank + 1 == p_;
    const int to = op.backward ? (wraps ? p_ - 1 : rank - 1) : (wraps ? 0 : rank + 1);
    const Ways::Way& way = (op.backward ? ways_.gradient : ways_.output)[at(rank)];
    double& lane = lanes_[at(way.lane)];
    lane = std::max(now_ + way.latency, lane) + way.per_byte * bytes_;
    const int chunk = op.chunk + (wraps ? (op.backward ? -1 : 1) : 0);
    (op.backward ? gradient_ : input_)[cell(to, chunk, op.microbatch)] = lane;
    Rank& other = ranks_[at(to)];
    if (other.working && other.state == State::Waits && other.until >= kNever && other.op.backward == op.backward &&
        other.op.chunk == chunk && other.op.microbatch == op.microbatch)
      other.until = lane;
    return lane;
  }

  // ---- the end of the run: sums that are left, the tied embedding, updates, gathers
  void finish(int rank) {
    Rank& r = ranks_[at(rank)];
    const int v = order_.chunks, chunk = r.finish / kParts, part = r.finish % kParts;
    r.working = false;
    r.compute_speed = r.talk_speed = 1;
    if (chunk == v) {
      r.state = State::Done;
      return;
    }
    const TalkOfChunk& what = of(rank, chunk);
    r.step = {};
    r.state = State::Waits, r.until = now_;
    const bool tied = talk_.tied >= 0 && p_ > 1 && (rank == 0 ? chunk == 0 : rank + 1 == p_ && chunk + 1 == v);
    if (part == 0) {
      r.step.before = what.sums, r.step.begin_hold = 0;
    } else if (part == 1 && tied) {
      r.state = State::Meets;
      Rank& other = ranks_[at(rank == 0 ? p_ - 1 : 0)];
      if (other.state != State::Meets) return;
      for (Rank* both : {&r, &other}) both->state = State::Rest, both->step = {.compute = talk_.tied}, both->done = 0;
      return;
    } else if (part == 2 && what.sums_after_tied > 0) {
      r.step.before = what.sums_after_tied, r.step.begin_hold = 0;
    } else if (part == 3) {
      r.step.compute = what.one_update, r.step.after = what.gathers;
    } else if (part == 4 && (chunk + 1 == v || what.sums > 0)) {
      r.step.compute = what.update - what.one_update;
    } else if (part == 5 && chunk + 1 == v) {
      r.step.begin_hold = 0;
    }
    go_on(rank);
  }

  // How far apart micro-batches end in the middle of the run: on the last rank, and of GPipe's backwards on the first one.
  void note(int rank) {
    const PlayOrder::Op& op = ranks_[at(rank)].op;
    const bool gpipe = order_.schedule == Schedule::GPipe;
    if (rank != (gpipe && op.backward ? 0 : p_ - 1) || (!gpipe && (!op.backward || op.chunk + 1 != order_.chunks))) return;
    std::array<double, 2>& marks = marks_[op.backward ? 1 : 0];
    if (op.microbatch == p_) marks[0] = now_;
    if (op.microbatch == 2 * p_) marks[1] = now_;
  }

  static constexpr int kParts = 6;
  static constexpr double kTiny = 1e-12;
  const PipelineTimes& t_;
  const TalkTimes& talk_;
  const Ways& ways_;
  PlayOrder order_;
  int p_;
  double bytes_;
  bool overlap_;
  double now_ = 0;
  std::array<std::array<double, 2>, 2> marks_ = {};  // [forward, backward]: of micro-batch p and 2 p
  std::array<Rank, Ways::kMost> ranks_ = {};
  std::array<bool, Ways::kMost> ready_ = {};
  std::array<double, 2 * Ways::kMost> lanes_ = {};
  std::array<double, kMostCells> input_, gradient_;
};

}  // namespace

std::optional<double> play_talk(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways,
                                double bytes, bool overlap) {
  constexpr int kRounds = 3;
  const int all = static_cast<int>(times.microbatches), p = times.ranks;
  if (schedule != Schedule::GPipe && schedule != Schedule::OneFOneB && schedule != Schedule::Interleaved) return {};
  const int few = std::min(all, kRounds * p + (times.chunks == 1 ? 1 : 0));
  if (p != ways.ranks || p * times.chunks * few > kMostCells || (times.chunks > 1 && all % p != 0)) return {};
  Talk play(schedule, times, talk, ways, bytes, overlap, few);
  const double seconds = play.run();
  return few == all ? seconds : seconds + (all - few) * play.period();
}

}  // namespace foreshard
