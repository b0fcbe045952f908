#include "strategy/estimate_talk.h"

#include <algorithm>

namespace foreshard {

namespace {

constexpr double kNever = 1e300;
constexpr int kMostCells = 256;  // micro-batches of all chunks

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
  double period() const { return (marks_[0][1] - marks_[0][0] + marks_[1][1] - marks_[1][0]) / p_; }

 private:
  struct Rank {
    State state = State::Waits;
    TalkStep step = {};
    PlayOrder::Op op = {};
    int position = 0, finish = 0;  // in its list; in what comes after it
    double until = 0;              // Waits: for its input; Stands: for its own transfer
    double done = 0;               // seconds of compute of the step
    double backlog = 0, early = 0;
    double compute_speed = 1, talk_speed = 1;  // beside each other
    double computes = 1, talks = 1;            // now
    bool working = false;                      // an action of the list
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int cells() const { return p_ * order_.count(); }
  std::size_t cell(int rank, int chunk, int microbatch) const {
    return at((rank * order_.chunks + chunk) * order_.microbatches + microbatch);
  }
  const TalkOfChunk& of(int rank, int chunk) const { return talk_.of[at(order_.kind(rank, chunk))]; }

  // ---- one moment to the next
  bool step() {
    double least = kNever;
    std::fill_n(left_over_.begin(), p_, 1.0);
    if (flowing_ > 0) least = share_lanes();
    std::array<double, Ways::kMost> left;
    for (int first = 0; first < p_; first += talk_.together) {  // the ranks of a node
      const int end = std::min(p_, first + talk_.together);
      int talkers = 0;
      for (int rank = first; rank < end; ++rank) talkers += ranks_[at(rank)].backlog > 0;
      const double part = talkers > 1 ? 1.0 / talkers : 1;
      for (int rank = first; rank < end; ++rank) {
        Rank& r = ranks_[at(rank)];
        const bool busy = r.state == State::First || r.state == State::Free || r.state == State::Rest;
        r.computes = left_over_[at(rank)], r.talks = part;
        if (busy && r.backlog > 0) r.computes *= r.compute_speed, r.talks *= r.talk_speed;
        if (r.backlog > 0) least = std::min(least, r.backlog / r.talks);
        left[at(rank)] = time_left(r);
        least = std::min(least, left[at(rank)]);
      }
    }
    if (least >= kNever) return false;
    now_ += least;
    for (int rank = 0; rank < p_; ++rank) {
      Rank& r = ranks_[at(rank)];
      if (r.state == State::First || r.state == State::Free || r.state == State::Rest) r.done += least * r.computes;
      if (r.backlog > 0) {
        r.backlog -= least * r.talks;
        if (r.backlog < kTiny) r.backlog = 0;
      }
      ready_[at(rank)] = left[at(rank)] - least <= kTiny;
    }
    if (flowing_ > 0) move_on(least);
    for (int rank = 0; rank < p_; ++rank)
      if (ready_[at(rank)]) go_on(rank);
    return true;
  }
  // Transfers in one lane have equal parts of it; what is left of the compute units of the ranks at their ends. The next to be through.
  double share_lanes() {
    std::array<int, 4 * Ways::kMost> users = {};
    double least = kNever;
    for (int stream = 0; stream < 2 * p_; ++stream)
      if (flows_[at(stream)].left > 0) {
        ++users[at(way_of(stream).lane)];
        if (way_of(stream).other >= 0) ++users[at(way_of(stream).other)];
      }
    for (int stream = 0; stream < 2 * p_; ++stream) {
      Flow& flow = flows_[at(stream)];
      if (flow.left <= 0) continue;
      const Ways::Way& way = way_of(stream);
      flow.rate = 1.0 / std::max(users[at(way.lane)], way.other < 0 ? 1 : users[at(way.other)]);
      least = std::min(least, flow.left / flow.rate);
      left_over_[at(stream / 2)] *= 1 - way.share, left_over_[at(receiver(stream))] *= 1 - way.share;
    }
    return least;
  }
  void move_on(double seconds) {
    for (int stream = 0; stream < 2 * p_; ++stream) {
      Flow& flow = flows_[at(stream)];
      if (flow.left <= 0) continue;
      flow.left -= seconds * flow.rate;
      if (flow.left <= kTiny) arrive(stream);
    }
  }
  const Ways::Way& way_of(int stream) const { return (stream % 2 == 1 ? ways_.gradient : ways_.output)[at(stream / 2)]; }
  int receiver(int stream) const { return (stream / 2 + (stream % 2 == 1 ? p_ - 1 : 1)) % p_; }
  void start(int stream) {
    Flow& flow = flows_[at(stream)];
    const Ways::Way& way = way_of(stream);
    flow.left = std::max(way.latency + way.per_byte * bytes_, 2 * kTiny);
    ++flowing_;
  }
  void arrive(int stream) {
    Flow& flow = flows_[at(stream)];
    const int what = queue_[at(stream * order_.count() + flow.sent++)], rank = stream / 2, to = receiver(stream);
    const bool backward = stream % 2 == 1;
    const int chunk = what / order_.microbatches + (backward ? (rank == 0 ? -1 : 0) : (to == 0 ? 1 : 0));
    const int microbatch = what % order_.microbatches;
    flow.left = 0, --flowing_;
    (backward ? gradient_ : input_)[cell(to, chunk, microbatch)] = now_;
    Rank& other = ranks_[at(to)];
    if (other.state == State::Waits && other.until >= kNever && other.op.backward == backward && other.op.chunk == chunk &&
        other.op.microbatch == microbatch)
      other.until = now_, ready_[at(to)] = true;
    if (Rank& own = ranks_[at(rank)]; own.state == State::Stands) own.until = now_, ready_[at(rank)] = true;
    if (flow.sent < flow.made) start(stream);
  }
  double time_left(const Rank& r) const {
    switch (r.state) {
      case State::Stands:
      case State::Waits: return r.until >= kNever ? kNever : std::max(0.0, r.until - now_);
      case State::BeginHold: return std::max(0.0, r.backlog - r.step.begin_hold) / r.talks;
      case State::Hold: return std::max(0.0, r.backlog - r.step.hold) / r.talks;
      case State::First: return std::max(0.0, r.step.said_at - r.done) / r.computes;
      case State::Free: return std::max(0.0, r.step.free - r.done) / r.computes;
      case State::Rest: return std::max(0.0, r.step.compute - r.done) / r.computes;
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
    const bool sends = send(rank, r.op);
    r.working = false;
    if (sends && !overlap_) {
      r.state = State::Stands, r.until = kNever;
      return;
    }
    begin_next(rank);
  }
  bool send(int rank, const PlayOrder::Op& op) {
    if (order_.kind(rank, op.chunk) == (op.backward ? 0 : 2)) return false;
    const int stream = 2 * rank + (op.backward ? 1 : 0);
    Flow& flow = flows_[at(stream)];
    queue_[at(stream * order_.count() + flow.made++)] = op.chunk * order_.microbatches + op.microbatch;
    if (flow.left <= 0) start(stream);
    return true;
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
  std::array<double, Ways::kMost> left_over_ = {};  // of the compute units, beside transfers
  struct Flow {
    double left = 0, rate = 0;
    int made = 0, sent = 0;
  };
  std::array<Flow, 2 * Ways::kMost> flows_ = {};  // [rank][outputs, gradients]
  int flowing_ = 0;
  std::array<int, 2 * kMostCells> queue_;  // [flow]: what it sends, in turn
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
