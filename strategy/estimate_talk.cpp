#include "strategy/estimate_talk.h"

#include <algorithm>

#include "strategy/estimate_speeds.h"

namespace foreshard {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

constexpr double kNever = 1e300;
constexpr int kMostCells = 4096;  // micro-batches of all chunks

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
        overlap_(overlap),
        speeds_(talk, ways, times.ranks) {
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
    double over_groups = 0;   // of the backlog, its end
    std::uint64_t doing = 0;  // of Moment
    bool working = false;     // an action of the list
  };
  int cells() const { return p_ * order_.count(); }
  std::size_t cell(int rank, int chunk, int microbatch) const {
    return at((rank * order_.chunks + chunk) * order_.microbatches + microbatch);
  }
  const TalkOfChunk& of(int rank, int chunk) const { return talk_.of[at(order_.kind(rank, chunk))]; }

  // ---- one moment to the next
  static bool busy(const Rank& r) { return r.state == State::First || r.state == State::Free || r.state == State::Rest; }
  bool step() {
    const Moment moment = now_under_way();
    if (moment != moment_) rates_ = &speeds_.at(moment), moment_ = moment;
    double least = kNever;
    std::array<double, Ways::kMost> left;
    for (int rank = 0; rank < p_; ++rank) {
      const Rank& r = ranks_[at(rank)];
      if (r.backlog > 0)
        least = std::min(least, (r.backlog > r.over_groups ? r.backlog - r.over_groups : r.backlog) / rates_->talks[at(rank)]);
      left[at(rank)] = time_left(rank);
      least = std::min(least, left[at(rank)]);
    }
    if (flowing_ > 0)
      for (int stream = 0; stream < 2 * p_; ++stream)
        if (const Flow& flow = flows_[at(stream)]; flow.left > 0)
          least = std::min(least, flow.left / rates_->flows[at(link_flow(stream))]);
    if (least >= kNever) return false;
    now_ += least;
    for (int rank = 0; rank < p_; ++rank) {
      Rank& r = ranks_[at(rank)];
      if (busy(r)) r.done += least * rates_->computes[at(rank)];
      if (r.backlog > 0) {
        r.backlog -= least * rates_->talks[at(rank)];
        if (r.backlog < kTiny) r.backlog = 0;
        if (r.backlog < r.over_groups + kTiny) r.over_groups = r.backlog;
      }
      ready_[at(rank)] = left[at(rank)] - least <= kTiny;
    }
    if (flowing_ > 0) move_on(least);
    for (int rank = 0; rank < p_; ++rank)
      if (ready_[at(rank)]) go_on(rank);
    return true;
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
  void move_on(double seconds) {
    for (int stream = 0; stream < 2 * p_; ++stream) {
      Flow& flow = flows_[at(stream)];
      if (flow.left <= 0) continue;
      flow.left -= seconds * rates_->flows[at(link_flow(stream))];
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
  double time_left(int rank) const {
    const Rank& r = ranks_[at(rank)];
    const double talks = rates_->talks[at(rank)], computes = rates_->computes[at(rank)];
    switch (r.state) {
      case State::Stands:
      case State::Waits: return r.until >= kNever ? kNever : std::max(0.0, r.until - now_);
      case State::BeginHold: return std::max(0.0, r.backlog - r.step.begin_hold) / talks;
      case State::Hold: return std::max(0.0, r.backlog - r.step.hold) / talks;
      case State::First: return std::max(0.0, r.step.said_at - r.done) / computes;
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
          if (r.step.begin_hold >= 0 && r.backlog > r.step.begin_hold + kTiny) return;
          r.state = State::First;
          break;
        case State::First:
          if (r.done < r.step.said_at - kTiny) return;
          say(r, r.step.said);
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
    const bool last = r.op.backward && r.op.microbatch + 1 == order_.microbatches;
    r.step = !r.op.backward ? chunk.forward : last ? chunk.last_backward : chunk.backward;
    const bool stands = std::any_of(r.step.still.begin(), r.step.still.end(), [](double seconds) { return seconds > 0; });
    r.doing = stands ? static_cast<std::uint64_t>(1 + 3 * kind + (last ? 2 : r.op.backward ? 1 : 0)) : 0;
    if (!r.op.backward && r.op.microbatch == 0 && chunk.early_gathers > 0) {
      r.early -= chunk.early_gathers;
      r.step.hold = std::max(0.0, r.early), r.step.free = r.step.compute * (1 - chunk.early_share);
    }
    say(r, r.step.ahead);
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
    say(r, r.step.after);
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
  static constexpr double kTiny = 1e-12, kLeastLeft = 0.02;  // of the compute units, as on the simulator
  const PipelineTimes& t_;
  const TalkTimes& talk_;
  const Ways& ways_;
  PlayOrder order_;
  int p_;
  double bytes_;
  bool overlap_;
  PlaySpeeds speeds_;
  Moment moment_ = {};
  const Rates* rates_ = &speeds_.at({});
  double now_ = 0;
  std::array<std::array<double, 2>, 2> marks_ = {};  // [forward, backward]: of micro-batch p and 2 p
  std::array<Rank, Ways::kMost> ranks_ = {};
  std::array<bool, Ways::kMost> ready_ = {};
  struct Flow {
    double left = 0;
    int made = 0, sent = 0;
  };
  std::array<Flow, 2 * Ways::kMost> flows_ = {};  // [rank][outputs, gradients]
  int flowing_ = 0;
  std::array<int, 2 * kMostCells> queue_;  // [flow]: what it sends, in turn
  std::array<double, kMostCells> input_, gradient_;
};

}  // namespace

namespace {

// Seconds of one link of all that flows of a chunk say in `m` micro-batches: over shards, to other replicas, of tensor collectives.
std::array<double, 3> said_in_all(const TalkOfChunk& of, double m) {
  std::array<double, 3> all = {of.gathers + of.early_gathers, 0, 0};
  const auto say = [&](const TalkStep& step, double times, double more) {
    const double said = times * (step.ahead + step.before + step.said + step.after) + more;
    all[0] += (1 - step.over_groups) * said + times * step.still[Links::OfShards];
    all[1] += step.over_groups * said + times * step.still[Links::OfReplicas];
    all[2] += times * step.still[Links::Tensor];
  };
  say(of.forward, m, 0), say(of.backward, m - 1, 0), say(of.last_backward, 1, of.sums + of.sums_after_tied);
  return all;
}

}  // namespace

namespace {

// Seconds that a rank takes at least from its last backward on, when it begins the end of the run.
double end_of(const TalkTimes& talk, const PlayOrder& order, int rank) {
  double all = talk.of[at(order.kind(rank, 0))].last_backward.after + std::max(0.0, talk.tied);
  for (int chunk = 0; chunk < order.chunks; ++chunk) {
    const TalkOfChunk& of = talk.of[at(order.kind(rank, chunk))];
    all += of.sums + of.one_update;
    if (chunk + 1 == order.chunks) all += std::max(of.gathers, of.update - of.one_update);
  }
  return all;
}

// Of the first rank, until its first forward is not held up any more.
double begin_of(const TalkOfChunk& first) {
  const TalkStep& step = first.forward;
  const double gathered = step.begin_hold < 0 ? 0 : step.ahead + step.before - step.begin_hold;
  return std::max({0.0, gathered, first.early_gathers - step.compute * (1 - first.early_share)});
}

}  // namespace

double least_talk(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways, double bytes,
                  bool overlap) {
  const PlayOrder order{schedule, times.ranks, times.chunks, 1};
  const int p = times.ranks;
  const double m = times.microbatches;
  double least = 0, down = 0, up = 0;  // a micro-batch's way to a rank, and from it to the end
  const double last_end = end_of(talk, order, 0);
  std::array<double, Links::kLinks> loads = {};
  const auto load = [&](const Links::Traffic& traffic, double seconds) {
    for (const Links::Crossing& crossing : traffic.crosses)
      if (crossing.own) loads[at(crossing.link)] += crossing.share * seconds;
  };
  std::array<std::array<double, 3>, 3> said;
  for (std::size_t kind = 0; kind < said.size(); ++kind) said[kind] = said_in_all(talk.of[kind], m);
  for (int rank = 0; rank < p; ++rank) {
    const bool thinner = rank > 0 && rank <= times.fewer;
    const double f_less = thinner ? times.forward_less : 0, b_less = thinner ? times.backward_less : 0;
    const Ways::Way &out = ways.output[at(rank)], &back = ways.gradient[at(rank)];
    const double outputs = times.chunks - (rank + 1 == p ? 1 : 0), gradients = times.chunks - (rank == 0 ? 1 : 0);
    const double send = out.latency + out.per_byte * bytes, send_back = back.latency + back.per_byte * bytes;
    double all = overlap ? 0 : m * (outputs * send + gradients * send_back) - (rank == 0 ? 0 : send_back), says = 0;
    for (int chunk = 0; chunk < times.chunks; ++chunk) {
      const std::size_t kind = at(order.kind(rank, chunk));
      const TalkOfChunk& of = talk.of[kind];
      all += m * (of.forward.compute - f_less) + (m - 1) * (of.backward.compute - b_less) + of.last_backward.compute - b_less;
      says += said[kind][0] + said[kind][1];
      load(talk.sums ? ways.links.sums[at(rank)] : ways.links.traffic[at(Links::flow(rank, Links::Shards))], said[kind][0]);
      load(ways.links.traffic[at(Links::flow(rank, Links::Replicas))], said[kind][1]);
      load(ways.links.tensors[at(rank)], said[kind][2]);
    }
    if (rank == 0) all += begin_of(talk.of[0]);
    if (rank > 0) up += send_back;
    least = std::max({least, says, down + all + up + last_end, down + all + end_of(talk, order, rank)});
    const TalkOfChunk& first = talk.of[at(order.kind(rank, 0))];
    down += first.forward.compute - f_less + send, up += first.last_backward.compute - b_less;
    load(ways.links.traffic[at(Links::flow(rank, Links::Output))], outputs * m * out.per_byte * bytes);
    load(ways.links.traffic[at(Links::flow(rank, Links::Gradient))], gradients * m * back.per_byte * bytes);
  }
  return std::max(least, *std::max_element(loads.begin(), loads.begin() + std::max(1, ways.links.links)));
}

std::optional<double> play_talk(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways,
                                double bytes, bool overlap) {
  constexpr int kRounds = 3;
  const int all = static_cast<int>(times.microbatches), p = times.ranks;
  if (schedule != Schedule::GPipe && schedule != Schedule::OneFOneB && schedule != Schedule::Interleaved) return {};
  const int few = std::min(all, times.chunks == 1 ? 2 * p + 2 : kRounds * p);
  if (p != ways.ranks || p * times.chunks * few > kMostCells || (times.chunks > 1 && all % p != 0)) return {};
  Talk play(schedule, times, talk, ways, bytes, overlap, few);
  const double seconds = play.run();
  return few == all ? seconds : seconds + (all - few) * play.period();
}

}  // namespace foreshard
