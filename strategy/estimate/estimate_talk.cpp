#include "strategy/estimate/estimate_talk.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "strategy/estimate/estimate_speeds.h"
#include "strategy/estimate/estimate_talk_alone.h"

namespace foreshard {

namespace {

// All ranks together, from one moment at which something ends to the next.
class Talk : TalkRanks<Talk> {
 public:
  // More than `enough` is not asked for; `alone` has run.
  Talk(const TalkOf& of, const AloneTalk& alone, double enough, PlaySpeeds& speeds)
      : TalkRanks(of), alone_(alone), enough_(enough), speeds_(speeds) {}

  // Seconds; more than enough: a lower bound.
  double run() {
    moment_.flows = kNothing;
    changed_ = (1U << p_) - 1;
    for (int rank = 0; rank < p_; ++rank) begin_next(rank);
    while (beyond_ <= 0 && step()) {
    }
    return std::max(now_, beyond_);
  }
  double period() const { return (marks_[0][1] - marks_[0][0] + marks_[1][1] - marks_[1][0]) / p_; }

 private:
  friend TalkRanks<Talk>;

  // Between two moments everything goes on as fast as it was, so what ends when is known until speeds change.
  bool step() {
    each_bit(changed_, [&](int rank) { look_at(rank); });
    if (now_under_way_ != moment_) change_speeds();
    for (; changed_ != 0; changed_ &= changed_ - 1) foresee(std::countr_zero(changed_));
    double next = kNever;
    for (int rank = 0; rank < p_; ++rank) next = std::min(next, end_[at(rank)]);
    each_bit(sending_, [&](int stream) { next = std::min(next, arrival_[at(stream)]); });
    if (next >= kNever) return false;
    now_ = next, tiny_ = kTiny * (1 + now_);
    std::uint32_t ready = 0;
    for (int rank = 0; rank < p_; ++rank)
      if (end_[at(rank)] <= now_ + tiny_) {
        catch_up(rank);
        if (phase_end_[at(rank)] <= now_ + tiny_) ready |= 1U << rank;
      }
    each_bit(sending_, [&](int stream) {
      if (arrival_[at(stream)] <= now_ + tiny_) ready |= arrive(stream);
    });
    each_bit(ready, [&](int rank) { go_on(rank); });
    return true;
  }
  void look_at(int rank) {
    const Rank& r = ranks_[at(rank)];
    const std::uint64_t says = Links::bit(Links::flow(rank, Links::Shards)) | Links::bit(Links::flow(rank, Links::Replicas));
    now_under_way_.flows &= ~says, now_under_way_.doing &= ~(std::uint64_t{15} << (4 * rank));
    if (r.backlog > 0) now_under_way_.flows |= Links::bit(talk_flow(rank));
    if (busy(r)) now_under_way_.doing |= r.doing << (4 * rank);
  }
  void change_speeds() {
    moment_ = now_under_way_, rates_ = &speeds_.at(moment_);
    for (int rank = 0; rank < p_; ++rank) {
      const Rank& r = ranks_[at(rank)];
      const double computes = rates_->computes[at(rank)], talks = rates_->talks[at(rank)];
      if ((computes != computes_[at(rank)] && busy(r)) || (talks != talks_[at(rank)] && r.backlog > 0)) catch_up(rank);
      computes_[at(rank)] = computes, talks_[at(rank)] = talks;
    }
    each_bit(sending_, [&](int stream) {
      Flow& flow = flows_[at(stream)];
      const double rate = rates_->flows[at(link_flow(stream))];
      if (rate == flow.rate) return;
      flow.left = std::max(0.5 * kTiny, flow.left - (now_ - flow.since) * flow.rate);
      flow.rate = rate, flow.since = now_, arrival_[at(stream)] = now_ + flow.left / rate;
    });
  }
  void foresee(int rank) {
    const Rank& r = ranks_[at(rank)];
    phase_end_[at(rank)] = now_ + time_left(rank);
    const double said = r.backlog > r.over_groups ? r.backlog - r.over_groups : r.backlog;
    end_[at(rank)] = said > 0 ? std::min(phase_end_[at(rank)], now_ + said / talks_[at(rank)]) : phase_end_[at(rank)];
  }
  int talk_flow(int rank) const {
    return Links::flow(rank, ranks_[at(rank)].backlog > ranks_[at(rank)].over_groups ? Links::Shards : Links::Replicas);
  }
  static int link_flow(int stream) { return Links::flow(stream / 2, stream % 2 == 1 ? Links::Gradient : Links::Output); }
  void start(int stream) {
    Flow& flow = flows_[at(stream)];
    flow.left = std::max(send_time(stream), 2 * kTiny);
    flow.rate = 0, flow.since = now_, arrival_[at(stream)] = kNever, sending_ |= 1U << stream;
    now_under_way_.flows |= Links::bit(link_flow(stream));
    moment_.flows = kNothing;  // somebody else's flow may have gone at another speed
  }
  // The ranks that it lets go on, a bit each.
  std::uint32_t arrive(int stream) {
    Flow& flow = flows_[at(stream)];
    const int what = queue_[at(stream * order_.count() + flow.sent++)], rank = stream / 2;
    flow.left = 0, sending_ &= ~(1U << stream), now_under_way_.flows &= ~Links::bit(link_flow(stream));
    const int to = deliver(stream, {stream % 2 == 1, what / order_.microbatches, what % order_.microbatches}, now_);
    std::uint32_t ready = 0;
    if (to >= 0) catch_up(to), ready |= 1U << to;
    if (Rank& own = ranks_[at(rank)]; own.state == State::Stands) catch_up(rank), own.until = now_, ready |= 1U << rank;
    if (flow.sent < flow.made) start(stream);
    return ready;
  }
  void send(int rank, const PlayOrder::Op& op) {
    const int stream = stream_of(rank, op.backward);
    Flow& flow = flows_[at(stream)];
    queue_[at(stream * order_.count() + flow.made++)] = op.chunk * order_.microbatches + op.microbatch;
    if (flow.left <= 0) start(stream);
  }
  void says(int, double, double) {}
  void begins(int) {}
  void ended(int rank) {
    note(rank);
    if (const double least = now_ + alone_.after(rank, ranks_[at(rank)].position); least > enough_) beyond_ = least;
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

  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};  // as a moment's flows: none that there is
  const AloneTalk& alone_;
  double enough_, beyond_ = 0;  // beyond: a lower bound that is more than enough
  PlaySpeeds& speeds_;
  Moment moment_ = {}, now_under_way_ = {};  // of these speeds; perhaps of others
  const Rates* rates_ = nullptr;
  std::array<std::array<double, 2>, 2> marks_ = {};  // [forward, backward]: of micro-batch p and 2 p
  std::array<double, Ways::kMost> phase_end_;        // [rank] of its step
  std::array<double, Ways::kMost> end_;              // or of what it says, if that is before
  struct Flow {
    double left = 0, rate = 0, since = 0;
    int made = 0, sent = 0;
  };
  std::array<Flow, 2 * Ways::kMost> flows_ = {};  // [rank][outputs, gradients]
  std::array<double, 2 * Ways::kMost> arrival_;   // [flow]
  std::uint32_t sending_ = 0;                     // streams, a bit each
  std::array<int, 2 * kMostCells> queue_;         // [flow]: what it sends, in turn
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

// So many micro-batches are played; 0: too many chunks, or a schedule that is not known.
int played_of(Schedule schedule, const PipelineTimes& times, const Ways& ways) {
  constexpr int kRounds = 3;
  const int all = static_cast<int>(times.microbatches), p = times.ranks;
  if (schedule != Schedule::GPipe && schedule != Schedule::OneFOneB && schedule != Schedule::Interleaved) return 0;
  const int few = std::min(all, times.chunks == 1 ? 2 * p + 2 : kRounds * p);
  const bool known = p == ways.ranks && p * times.chunks * few <= AloneTalk::kMostCells;
  return known && (times.chunks == 1 || all % p == 0) ? few : 0;
}

}  // namespace

std::optional<double> play_talk_alone(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways,
                                      double bytes, bool overlap) {
  const int few = played_of(schedule, times, ways);
  if (few == 0) return {};
  AloneTalk alone({schedule, times, talk, ways, bytes, overlap, few});
  alone.run();
  return alone.least() + (static_cast<int>(times.microbatches) - few) * least_period(schedule, times, talk);
}

std::optional<double> play_talk(Schedule schedule, const PipelineTimes& times, const TalkTimes& talk, const Ways& ways,
                                double bytes, bool overlap, double enough, PlayMemory* memory) {
  const int few = played_of(schedule, times, ways);
  if (few == 0) return {};
  const int left = static_cast<int>(times.microbatches) - few;
  const TalkOf played{schedule, times, talk, ways, bytes, overlap, few};
  const double rest = left * least_period(schedule, times, talk);
  AloneTalk alone(played);
  alone.run();
  if (const double least = alone.least(); least > enough - rest) return least + rest;
  alone.look_back();
  PlayMemory own;
  Talk play(played, alone, enough - rest, (memory ? *memory : own).of(talk, ways, times.ranks));
  const double seconds = play.run();
  return seconds > enough - rest ? seconds + rest : left == 0 ? seconds : seconds + left * play.period();
}

}  // namespace foreshard
