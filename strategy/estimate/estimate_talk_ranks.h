// What the ranks of a play of a pipeline with its talk do (estimate_talk.h): their steps, and what takes no time between these. How time passes
// is what a play adds, by inheriting from this with itself as `Play`: it says when a transfer arrives and what an action that ends means.
// Internal to strategy/.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "strategy/estimate/estimate_talk.h"

namespace foreshard {

struct TalkOf {  // a play
  Schedule schedule = Schedule::OneFOneB;
  const PipelineTimes& times;
  const TalkTimes& talk;
  const Ways& ways;
  double bytes = 0;  // of a transfer
  bool overlap = true;
  int microbatches = 1;  // of `times` those that are played
};

template <class Play>
class TalkRanks {
 public:
  static constexpr int kMostCells = 4096;  // micro-batches of all chunks

 protected:
  enum class State { Stands, Waits, BeginHold, First, Middle, MiddleHold, Free, Hold, Rest, Meets, Done };

  struct Rank {
    State state = State::Waits;
    TalkStep step = {};
    PlayOrder::Op op = {};
    int position = 0, finish = 0;  // in its list; in what comes after it
    double until = 0;              // Waits: for its input; Stands: for its own transfer
    double done = 0;               // seconds of compute of the step
    double backlog = 0, early = 0;
    double beyond = 0;        // of the backlog, what later actions have gathered: its end
    int told = 0;             // so many actions have said what they gather ahead
    double over_groups = 0;   // of the backlog, its end
    std::uint64_t doing = 0;  // of Moment
    bool working = false;     // an action of the list
  };

  explicit TalkRanks(const TalkOf& of)
      : t_(of.times),
        talk_(of.talk),
        ways_(of.ways),
        order_{of.schedule, of.times.ranks, of.times.chunks, of.microbatches},
        p_(of.times.ranks),
        bytes_(of.bytes),
        overlap_(of.overlap) {
    std::fill_n(input_.begin(), cells(), kNever), std::fill_n(gradient_.begin(), cells(), kNever);
    computes_.fill(1), talks_.fill(1);
    for (int rank = 0; rank < p_; ++rank) {
      for (int chunk = 0; chunk < order_.chunks; ++chunk) ranks_[at(rank)].backlog += this->of(rank, chunk).early_gathers;
      ranks_[at(rank)].early = ranks_[at(rank)].backlog;
    }
  }

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int cells() const { return p_ * order_.count(); }
  std::size_t cell(int rank, int chunk, int microbatch) const {
    return at((rank * order_.chunks + chunk) * order_.microbatches + microbatch);
  }
  const TalkOfChunk& of(int rank, int chunk) const { return talk_.at(rank, order_.kind(rank, chunk)); }
  static bool busy(const Rank& r) {
    return r.state == State::First || r.state == State::Middle || r.state == State::Free || r.state == State::Rest;
  }
  // Streams: of each rank its outputs and its gradients.
  static int stream_of(int rank, bool backward) { return 2 * rank + (backward ? 1 : 0); }
  const Ways::Way& way_of(int stream) const { return (stream % 2 == 1 ? ways_.gradient : ways_.output)[at(stream / 2)]; }
  int receiver(int stream) const { return (stream / 2 + (stream % 2 == 1 ? p_ - 1 : 1)) % p_; }
  double send_time(int stream) const { return way_of(stream).latency + way_of(stream).per_byte * bytes_; }

  // What a rank has done since the last time.
  void catch_up(int rank) {
    changed_ |= 1U << rank;
    const double passed = now_ - std::exchange(since_[at(rank)], now_);
    if (passed <= 0) return;
    Rank& r = ranks_[at(rank)];
    if (busy(r)) r.done += passed * computes_[at(rank)];
    if (r.backlog <= 0) return;
    r.backlog -= passed * talks_[at(rank)];
    if (r.backlog < tiny_) r.backlog = 0;
    if (r.backlog < r.over_groups + tiny_) r.over_groups = r.backlog;
  }
  double time_left(int rank) const {
    const Rank& r = ranks_[at(rank)];
    const double talks = talks_[at(rank)], computes = computes_[at(rank)];
    switch (r.state) {
      case State::Stands:
      case State::Waits: return r.until >= kNever ? kNever : std::max(0.0, r.until - now_);
      case State::BeginHold: return std::max(0.0, r.backlog - r.beyond - r.step.begin_hold) / talks;
      case State::Hold: return std::max(0.0, r.backlog - r.beyond - r.step.hold) / talks;
      case State::First: return std::max(0.0, r.step.said_at - r.done) / computes;
      case State::Middle: return std::max(0.0, r.step.middle - r.done) / computes;
      case State::MiddleHold: return std::max(0.0, r.backlog - r.beyond - r.step.middle_hold) / talks;
      case State::Free: return std::max(0.0, r.step.free - r.done) / computes;
      case State::Rest: return std::max(0.0, r.step.compute - r.done) / computes;
      case State::Meets:
      case State::Done: return kNever;
    }
    return kNever;
  }
  void say(int rank, double seconds) {
    Rank& r = ranks_[at(rank)];
    const double over_groups = r.step.over_groups * seconds;
    r.backlog += seconds, r.over_groups += over_groups;
    play().says(rank, seconds - over_groups, over_groups);
  }
  void say_ahead(int rank, double seconds) {
    Rank& r = ranks_[at(rank)];
    r.beyond += seconds, r.backlog += seconds;
    play().says(rank, seconds, 0);
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
          play().begins(rank);
          say(rank, r.step.before);
          r.done = 0;
          r.state = State::BeginHold;
          break;
        case State::BeginHold:
          if (r.step.begin_hold >= 0 && r.backlog > r.beyond + r.step.begin_hold + tiny_) return;
          r.state = State::First;
          break;
        case State::First:
          if (r.done < r.step.said_at - tiny_) return;
          say(rank, r.step.said);
          gather_ahead(rank, false);
          r.state = r.step.middle_hold >= 0 ? State::Middle : r.step.hold >= 0 ? State::Free : State::Rest;
          break;
        case State::Middle:
          if (r.done < r.step.middle - tiny_) return;
          r.state = State::MiddleHold;
          break;
        case State::MiddleHold:
          if (r.backlog > r.beyond + r.step.middle_hold + tiny_) return;
          r.state = r.step.hold >= 0 ? State::Free : State::Rest;
          break;
        case State::Free:
          if (r.done < r.step.free - tiny_) return;
          r.state = State::Hold;
          break;
        case State::Hold:
          if (r.backlog > r.beyond + r.step.hold + tiny_) return;
          if (r.step.said > 0 && order_.kind(rank, r.op.chunk) != 2) gather_ahead(rank, true);
          r.state = State::Rest;
          break;
        case State::Rest:
          if (r.done < r.step.compute - tiny_) return;
          return end(rank);
        case State::Meets:
        case State::Done: return;
      }
  }

  bool is_last(const PlayOrder::Op& op) const { return op.backward && op.microbatch + 1 == order_.microbatches; }
  const TalkStep& step_of(int rank, const PlayOrder::Op& op) const {
    const TalkOfChunk& chunk = of(rank, op.chunk);
    return !op.backward ? chunk.forward : is_last(op) ? chunk.last_backward : chunk.backward;
  }
  double ahead_of(int rank, int position) const { return step_of(rank, order_.at(rank, position)).ahead; }
  // A forward has said all: what the next actions gather first follows if they are of other chunks, which have places of their own, or, `within`,
  // of this one.
  void gather_ahead(int rank, bool within) {
    Rank& r = ranks_[at(rank)];
    if (!r.working || r.op.backward || r.step.ahead <= 0 || r.told > r.position + 1) return;
    for (int chunk = r.op.chunk; r.told < 2 * order_.count(); ++r.told) {
      const PlayOrder::Op op = order_.at(rank, r.told);
      if ((op.chunk == chunk) != within) return;
      say_ahead(rank, ahead_of(rank, r.told)), chunk = op.chunk;
      if (within || op.backward || of(rank, chunk).forward.said_at > 0) {
        ++r.told;
        return;
      }
    }
  }

  void begin_next(int rank) {
    Rank& r = ranks_[at(rank)];
    r.working = r.position < 2 * order_.count();
    if (!r.working) return finish(rank);
    r.op = order_.at(rank, r.position);
    const TalkOfChunk& chunk = of(rank, r.op.chunk);
    const int kind = order_.kind(rank, r.op.chunk);
    r.step = step_of(rank, r.op);
    const bool stands = std::any_of(r.step.still.begin(), r.step.still.end(), [](double seconds) { return seconds > 0; });
    r.doing = stands ? static_cast<std::uint64_t>(1 + 3 * kind + (is_last(r.op) ? 2 : r.op.backward ? 1 : 0)) : 0;
    if (!r.op.backward && r.op.microbatch == 0 && chunk.early_gathers > 0) {
      r.early -= chunk.early_gathers;
      r.step.hold = std::max(0.0, r.early), r.step.free = r.step.compute * (1 - chunk.early_share);
    }
    if (r.position < r.told)
      r.beyond -= r.step.ahead;
    else
      say(rank, r.step.ahead), r.told = r.position + 1, r.beyond = 0;
    if (r.step.said_at <= 0) gather_ahead(rank, false);
    const double less = rank > 0 && rank <= t_.fewer ? (r.op.backward ? t_.backward_less : t_.forward_less) : 0;
    if (r.step.again && r.op.microbatch % p_ == 0) r.step.hold = TalkStep::kNoHold;
    r.step.compute -= less, r.step.free = std::min(r.step.free, r.step.compute);
    r.step.said_at = std::min(r.step.said_at, r.step.compute);
    r.state = State::Waits;
    const bool outer = r.op.backward ? kind == 2 : kind == 0;
    r.until = outer ? now_ : slot(rank, r.op);
    go_on(rank);
  }

  void end(int rank) {
    Rank& r = ranks_[at(rank)];
    say(rank, r.step.after);
    if (!r.working) {
      ++r.finish;
      return finish(rank);
    }
    play().ended(rank);
    ++r.position;
    r.working = false;
    const bool sends = order_.kind(rank, r.op.chunk) != (r.op.backward ? 0 : 2);
    if (sends && !overlap_) {
      if (r.told == r.position && r.told < 2 * order_.count())
        say_ahead(rank, ahead_of(rank, r.told++));  // it gathers beside that
      r.state = State::Stands, r.until = kNever;
    }
    if (sends) play().send(rank, r.op);
    if (!sends || overlap_) begin_next(rank);
  }
  // What comes over a stream, as its receiver counts chunks.
  PlayOrder::Op received(int stream, PlayOrder::Op op) const {
    op.chunk += op.backward ? (stream / 2 == 0 ? -1 : 0) : (receiver(stream) == 0 ? 1 : 0);
    return op;
  }
  double& slot(int rank, const PlayOrder::Op& op) {
    return (op.backward ? gradient_ : input_)[cell(rank, op.chunk, op.microbatch)];
  }
  // The receiver, if it waits for that; negative: it does not.
  int deliver(int stream, const PlayOrder::Op& sent, double when) {
    const int to = receiver(stream);
    const PlayOrder::Op op = received(stream, sent);
    slot(to, op) = when;
    Rank& other = ranks_[at(to)];
    const bool waits = other.state == State::Waits && other.until >= kNever && other.op.backward == op.backward &&
                       other.op.chunk == op.chunk && other.op.microbatch == op.microbatch;
    if (!waits) return -1;
    other.until = when;
    return to;
  }

  // ---- the end of the run: sums that are left, the tied embedding, updates, gathers
  void finish(int rank) {
    Rank& r = ranks_[at(rank)];
    const int v = order_.chunks, chunk = r.finish / kParts, part = r.finish % kParts;
    r.working = false, r.doing = 0;
    if (chunk == v) {
      r.state = State::Done;
      return;
    }
    const TalkOfChunk& what = of(rank, chunk);
    r.step = {};
    r.state = State::Waits, r.until = now_;
    const bool tied = talk_.tied >= 0 && p_ > 1 && (rank == 0 ? chunk == 0 : rank + 1 == p_ && chunk + 1 == v);
    if (part == 0) {
      r.step.before = what.sums, r.step.begin_hold = 0, r.step.over_groups = what.last_backward.over_groups;
    } else if (part == 1 && tied) {
      r.state = State::Meets;
      Rank& other = ranks_[at(rank == 0 ? p_ - 1 : 0)];
      if (other.state != State::Meets) return;
      now_ = std::max(now_, since_[at(rank == 0 ? p_ - 1 : 0)]);
      catch_up(0), catch_up(p_ - 1);
      for (Rank* both : {&r, &other}) both->state = State::Rest, both->step = {.compute = talk_.tied}, both->done = 0;
      return;
    } else if (part == 2 && what.sums_after_tied > 0) {
      r.step.before = what.sums_after_tied, r.step.begin_hold = 0, r.step.over_groups = what.last_backward.over_groups;
    } else if (part == 3) {
      r.step.compute = what.one_update, r.step.after = what.gathers;
    } else if (part == 4 && (chunk + 1 == v || what.sums > 0)) {
      r.step.compute = what.update - what.one_update;
    } else if (part == 5 && chunk + 1 == v) {
      r.step.begin_hold = 0;
    }
    go_on(rank);
  }

  static constexpr int kParts = 6;
  static constexpr double kNever = 1e300, kTiny = 1e-12;
  const PipelineTimes& t_;
  const TalkTimes& talk_;
  const Ways& ways_;
  PlayOrder order_;
  int p_;
  double bytes_;
  bool overlap_;
  double now_ = 0;  // of all ranks, or of the one that goes on
  double tiny_ = kTiny;
  std::array<Rank, Ways::kMost> ranks_ = {};
  std::array<double, Ways::kMost> computes_, talks_, since_ = {};  // [rank] how fast, since when it has been so
  std::uint32_t changed_ = 0;                                      // ranks, a bit each
  std::array<double, kMostCells> input_, gradient_;                // [cell] when it arrived

 private:
  Play& play() { return static_cast<Play&>(*this); }
};

}  // namespace foreshard
