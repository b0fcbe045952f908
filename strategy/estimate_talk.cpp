#include "strategy/estimate_talk.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "strategy/estimate_speeds.h"

namespace foreshard {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

constexpr double kNever = 1e300;
constexpr int kMostCells = 4096;  // micro-batches of all chunks

enum class State { Stands, Waits, BeginHold, First, Middle, MiddleHold, Free, Hold, Rest, Meets, Done };

class Talk {
 public:
  Talk(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways, double bytes, bool overlap,
       int microbatches, const std::array<double, Ways::kMost>& rest, double enough)
      : t_(times),
        talk_(talk),
        ways_(ways),
        order_{schedule, times.ranks, times.chunks, microbatches},
        p_(times.ranks),
        bytes_(bytes),
        overlap_(overlap),
        rest_(rest),
        enough_(enough),
        speeds_(talk, ways, times.ranks) {
    std::fill_n(input_.begin(), cells(), kNever), std::fill_n(gradient_.begin(), cells(), kNever);
    for (int rank = 0; rank < p_; ++rank) {
      for (int chunk = 0; chunk < order_.chunks; ++chunk) ranks_[at(rank)].backlog += of(rank, chunk).early_gathers;
      ranks_[at(rank)].early = ranks_[at(rank)].backlog;
    }
  }

  // Seconds; more than enough: a lower bound.
  double run() {
    arrival_.fill(kNever);
    computes_.fill(1), talks_.fill(1);
    moment_.flows = kNothing;
    changed_ = (1U << p_) - 1;
    for (int rank = 0; rank < p_; ++rank) begin_next(rank);
    while (beyond_ <= 0 && step()) {
    }
    return std::max(now_, beyond_);
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
    double beyond = 0;        // of the backlog, what later actions have gathered: its end
    int told = 0;             // so many actions have said what they gather ahead
    double over_groups = 0;   // of the backlog, its end
    std::uint64_t doing = 0;  // of Moment
    bool working = false;     // an action of the list
  };
  int cells() const { return p_ * order_.count(); }
  std::size_t cell(int rank, int chunk, int microbatch) const {
    return at((rank * order_.chunks + chunk) * order_.microbatches + microbatch);
  }
  const TalkOfChunk& of(int rank, int chunk) const { return talk_.at(rank, order_.kind(rank, chunk)); }

  // ---- one moment to the next
  static bool busy(const Rank& r) {
    return r.state == State::First || r.state == State::Middle || r.state == State::Free || r.state == State::Rest;
  }
  // Between two moments everything goes on as fast as it was, so what ends when is known until speeds change.
  bool step() {
    if (const Moment moment = now_under_way(); moment != moment_) change_speeds(moment);
    for (; changed_ != 0; changed_ &= changed_ - 1) foresee(std::countr_zero(changed_));
    double next = kNever;
    for (int rank = 0; rank < p_; ++rank) next = std::min({next, phase_end_[at(rank)], said_end_[at(rank)]});
    if (flowing_ > 0)
      for (int stream = 0; stream < 2 * p_; ++stream) next = std::min(next, arrival_[at(stream)]);
    if (next >= kNever) return false;
    now_ = next, tiny_ = kTiny * (1 + now_);
    std::uint32_t ready = 0;
    for (int rank = 0; rank < p_; ++rank) {
      const bool ends = phase_end_[at(rank)] <= now_ + tiny_;
      if (ends || said_end_[at(rank)] <= now_ + tiny_) catch_up(rank);
      ready |= (ends ? 1U : 0U) << rank;
    }
    if (flowing_ > 0)
      for (int stream = 0; stream < 2 * p_; ++stream)
        if (arrival_[at(stream)] <= now_ + tiny_) ready |= arrive(stream);
    for (; ready != 0; ready &= ready - 1) go_on(std::countr_zero(ready));
    return true;
  }
  void change_speeds(const Moment& moment) {
    rates_ = &speeds_.at(moment), moment_ = moment;
    for (int rank = 0; rank < p_; ++rank) {
      const Rank& r = ranks_[at(rank)];
      const bool slower = busy(r) && rates_->computes[at(rank)] != computes_[at(rank)];
      if (slower || (r.backlog > 0 && rates_->talks[at(rank)] != talks_[at(rank)])) catch_up(rank);
      computes_[at(rank)] = rates_->computes[at(rank)], talks_[at(rank)] = rates_->talks[at(rank)];
    }
    if (flowing_ > 0)
      for (int stream = 0; stream < 2 * p_; ++stream) {
        Flow& flow = flows_[at(stream)];
        const double rate = rates_->flows[at(link_flow(stream))];
        if (flow.left <= 0 || rate == flow.rate) continue;
        flow.left = std::max(0.5 * kTiny, flow.left - (now_ - flow.since) * flow.rate);
        flow.rate = rate, flow.since = now_, arrival_[at(stream)] = now_ + flow.left / rate;
      }
  }
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
  void foresee(int rank) {
    const Rank& r = ranks_[at(rank)];
    phase_end_[at(rank)] = now_ + time_left(rank);
    const double said = r.backlog > r.over_groups ? r.backlog - r.over_groups : r.backlog;
    said_end_[at(rank)] = said > 0 ? now_ + said / talks_[at(rank)] : kNever;
  }
  Moment now_under_way() const {
    Moment moment;
    for (int rank = 0; rank < p_; ++rank) {
      const Rank& r = ranks_[at(rank)];
      if (r.backlog > 0) moment.flows |= Links::bit(talk_flow(rank));
      if (busy(r)) moment.doing |= r.doing << (4 * rank);
    }
    if (flowing_ > 0)
      for (int stream = 0; stream < 2 * p_; ++stream)
        if (flows_[at(stream)].left > 0) moment.flows |= Links::bit(link_flow(stream));
    return moment;
  }
  int talk_flow(int rank) const {
    return Links::flow(rank, ranks_[at(rank)].backlog > ranks_[at(rank)].over_groups ? Links::Shards : Links::Replicas);
  }
  static int link_flow(int stream) { return Links::flow(stream / 2, stream % 2 == 1 ? Links::Gradient : Links::Output); }
  const Ways::Way& way_of(int stream) const { return (stream % 2 == 1 ? ways_.gradient : ways_.output)[at(stream / 2)]; }
  int receiver(int stream) const { return (stream / 2 + (stream % 2 == 1 ? p_ - 1 : 1)) % p_; }
  void start(int stream) {
    Flow& flow = flows_[at(stream)];
    const Ways::Way& way = way_of(stream);
    flow.left = std::max(way.latency + way.per_byte * bytes_, 2 * kTiny);
    flow.rate = 0, flow.since = now_, ++flowing_;
    moment_.flows = kNothing;  // somebody else's flow may have gone at another speed
  }
  // The ranks that it lets go on, a bit each.
  std::uint32_t arrive(int stream) {
    Flow& flow = flows_[at(stream)];
    const int what = queue_[at(stream * order_.count() + flow.sent++)], rank = stream / 2, to = receiver(stream);
    const bool backward = stream % 2 == 1;
    const int chunk = what / order_.microbatches + (backward ? (rank == 0 ? -1 : 0) : (to == 0 ? 1 : 0));
    const int microbatch = what % order_.microbatches;
    flow.left = 0, arrival_[at(stream)] = kNever, --flowing_;
    (backward ? gradient_ : input_)[cell(to, chunk, microbatch)] = now_;
    std::uint32_t ready = 0;
    Rank& other = ranks_[at(to)];
    if (other.state == State::Waits && other.until >= kNever && other.op.backward == backward && other.op.chunk == chunk &&
        other.op.microbatch == microbatch)
      catch_up(to), other.until = now_, ready |= 1U << to;
    if (Rank& own = ranks_[at(rank)]; own.state == State::Stands) {
      catch_up(rank), own.until = now_, ready |= 1U << rank;
      did(rank, way_of(stream).latency + way_of(stream).per_byte * bytes_);
    }
    if (flow.sent < flow.made) start(stream);
    return ready;
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
  static void say(Rank& r, double seconds) { r.backlog += seconds, r.over_groups += r.step.over_groups * seconds; }

  // ---- what a rank does next: all that takes no time
  void go_on(int rank) {
    Rank& r = ranks_[at(rank)];
    for (;;) switch (r.state) {
        case State::Stands:
          if (r.until > now_) return;
          return begin_next(rank);
        case State::Waits:
          if (r.until > now_) return;
          say(r, r.step.before);
          r.done = 0;
          r.state = State::BeginHold;
          break;
        case State::BeginHold:
          if (r.step.begin_hold >= 0 && r.backlog > r.beyond + r.step.begin_hold + tiny_) return;
          r.state = State::First;
          break;
        case State::First:
          if (r.done < r.step.said_at - tiny_) return;
          say(r, r.step.said);
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

  double ahead_of(int rank, int position) const {
    const PlayOrder::Op op = order_.at(rank, position);
    return op.backward ? of(rank, op.chunk).backward.ahead : of(rank, op.chunk).forward.ahead;
  }
  // A forward has said all: what the next actions gather first follows if they are of other chunks, which have places of their own, or, `within`,
  // of this one.
  void gather_ahead(int rank, bool within) {
    Rank& r = ranks_[at(rank)];
    if (!r.working || r.op.backward || r.step.ahead <= 0 || r.told > r.position + 1) return;
    for (int chunk = r.op.chunk; r.told < 2 * order_.count(); ++r.told) {
      const PlayOrder::Op op = order_.at(rank, r.told);
      if ((op.chunk == chunk) != within) return;
      const double ahead = ahead_of(rank, r.told);
      r.beyond += ahead, r.backlog += ahead, chunk = op.chunk;
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
    const bool last = r.op.backward && r.op.microbatch + 1 == order_.microbatches;
    r.step = !r.op.backward ? chunk.forward : last ? chunk.last_backward : chunk.backward;
    const bool stands = std::any_of(r.step.still.begin(), r.step.still.end(), [](double seconds) { return seconds > 0; });
    r.doing = stands ? static_cast<std::uint64_t>(1 + 3 * kind + (last ? 2 : r.op.backward ? 1 : 0)) : 0;
    if (!r.op.backward && r.op.microbatch == 0 && chunk.early_gathers > 0) {
      r.early -= chunk.early_gathers;
      r.step.hold = std::max(0.0, r.early), r.step.free = r.step.compute * (1 - chunk.early_share);
    }
    if (r.position < r.told)
      r.beyond -= r.step.ahead;
    else
      say(r, r.step.ahead), r.told = r.position + 1, r.beyond = 0;
    if (r.step.said_at <= 0) gather_ahead(rank, false);
    const double less = rank > 0 && rank <= t_.fewer ? (r.op.backward ? t_.backward_less : t_.forward_less) : 0;
    if (r.step.again && r.op.microbatch % p_ == 0) r.step.hold = TalkStep::kNoHold;
    r.step.compute -= less, r.step.free = std::min(r.step.free, r.step.compute);
    r.step.said_at = std::min(r.step.said_at, r.step.compute);
    r.state = State::Waits;
    const bool outer = r.op.backward ? kind == 2 : kind == 0;
    r.until = outer ? now_ : (r.op.backward ? gradient_ : input_)[cell(rank, r.op.chunk, r.op.microbatch)];
    go_on(rank);
  }

  void end(int rank) {
    Rank& r = ranks_[at(rank)];
    say(r, r.step.after);
    if (!r.working) {
      ++r.finish;
      return finish(rank);
    }
    note(rank);
    ++r.position;
    did(rank, r.step.compute);
    const bool sends = send(rank, r.op);
    r.working = false;
    if (sends && !overlap_) {
      if (r.told == r.position && r.told < 2 * order_.count()) {  // it gathers beside that
        const double ahead = ahead_of(rank, r.told++);
        r.beyond += ahead, r.backlog += ahead;
      }
      r.state = State::Stands, r.until = kNever;
      return;
    }
    begin_next(rank);
  }
  void did(int rank, double seconds) {
    rest_[at(rank)] -= seconds;
    if (now_ + rest_[at(rank)] > enough_) beyond_ = now_ + rest_[at(rank)];
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
      catch_up(rank == 0 ? p_ - 1 : 0);
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
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};  // as a moment's flows: none that there is
  const PipelineTimes& t_;
  const TalkTimes& talk_;
  const Ways& ways_;
  PlayOrder order_;
  int p_;
  double bytes_;
  bool overlap_;
  std::array<double, Ways::kMost> rest_;  // [rank] what it has still before it, at least
  double enough_, beyond_ = 0;            // beyond: a lower bound that is more than enough
  PlaySpeeds speeds_;
  Moment moment_ = {};
  const Rates* rates_ = &speeds_.at({});
  double now_ = 0;
  std::array<std::array<double, 2>, 2> marks_ = {};  // [forward, backward]: of micro-batch p and 2 p
  std::array<Rank, Ways::kMost> ranks_ = {};
  // [rank] how fast, since when it has been so; when the phase of its step and what it says end.
  std::array<double, Ways::kMost> computes_, talks_, since_ = {}, phase_end_, said_end_;
  std::uint32_t changed_ = 0;  // ranks, a bit each
  double tiny_ = kTiny;
  struct Flow {
    double left = 0, rate = 0, since = 0;
    int made = 0, sent = 0;
  };
  std::array<Flow, 2 * Ways::kMost> flows_ = {};  // [rank][outputs, gradients]
  std::array<double, 2 * Ways::kMost> arrival_;   // [flow]
  int flowing_ = 0;
  std::array<int, 2 * kMostCells> queue_;  // [flow]: what it sends, in turn
  std::array<double, kMostCells> input_, gradient_;
};

// A micro-batch takes no less in the middle of a run.
double least_period(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk) {
  const TalkOfChunk &last = talk.at(times.ranks - 1, 2), &between = talk.at(times.ranks - 1, 1);
  if (schedule == Schedule::GPipe) return last.forward.compute + talk.at(0, 0).backward.compute;
  double all = last.forward.compute + last.backward.compute;
  if (times.chunks > 1) all += (times.chunks - 1) * (between.forward.compute + between.backward.compute);
  const bool thinner = times.ranks - 1 <= times.fewer;
  return all - (thinner ? times.chunks * (times.forward_less + times.backward_less) : 0);
}

}  // namespace

std::optional<double> play_talk(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways,
                                double bytes, bool overlap, double enough) {
  constexpr int kRounds = 3;
  const int all = static_cast<int>(times.microbatches), p = times.ranks;
  if (schedule != Schedule::GPipe && schedule != Schedule::OneFOneB && schedule != Schedule::Interleaved) return {};
  const int few = std::min(all, times.chunks == 1 ? 2 * p + 2 : kRounds * p);
  if (p != ways.ranks || p * times.chunks * few > kMostCells || (times.chunks > 1 && all % p != 0)) return {};
  PipelineTimes played = times;
  played.microbatches = few;
  const LeastTalk least = least_talk(schedule, played, talk, ways, bytes, overlap);
  const double rest = (all - few) * least_period(schedule, times, talk);
  Talk play(schedule, times, talk, ways, bytes, overlap, few, least.rest, enough - rest);
  const double seconds = play.run();
  return seconds > enough - rest ? seconds + rest : few == all ? seconds : seconds + (all - few) * play.period();
}

}  // namespace foreshard
