#include "strategy/estimate/estimate_play.h"

#include <algorithm>

namespace foreshard {

namespace {

constexpr double kNever = 1e300;
constexpr int kMostCells = 4096;  // micro-batches of all chunks

struct Beside {  // a transfer at one of its ends
  double begin = 0, end = 0, share = 0;
};

// Ranks run their lists in order; of all that can run, the action that ends first is next, so that transfers take their turns in
// the order in which they begin.
class Play {
  using Op = PlayOrder::Op;

 public:
  Play(Schedule schedule, const PipelineTimes& times, const Ways& ways, double bytes, bool overlap, int microbatches,
       const std::array<double, Ways::kMost>& faster)
      : t_(times),
        ways_(ways),
        order_{schedule, times.ranks, times.chunks, microbatches},
        p_(times.ranks),
        v_(times.chunks),
        m_(microbatches),
        overlap_(overlap),
        faster_(faster) {
    for (int rank = 0; rank < p_; ++rank) {
      const Ways::Way &out = ways.output[at(rank)], &back = ways.gradient[at(rank)];
      wire_[0][at(rank)] = out.per_byte * bytes, wire_[1][at(rank)] = back.per_byte * bytes;
    }
    std::fill_n(input_.begin(), cells(), kNever), std::fill_n(gradient_.begin(), cells(), kNever);
  }

  // Seconds; `mark` micro-batches later the same again takes `period`.
  double run() {
    for (int rank = 0; rank < p_; ++rank) look(rank);
    for (;;) {
      const auto* first = std::min_element(ends_.begin(), ends_.begin() + p_);
      if (*first >= kNever) break;
      act(static_cast<int>(first - ends_.begin()));
    }
    return free_[0];
  }
  // Per micro-batch, in the middle of a run: of the last rank.
  double period() const {
    return order_.schedule == Schedule::GPipe ? gpipe_period_[0] + gpipe_period_[1] : (late_ - early_) / p_;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int cells() const { return p_ * v_ * m_; }
  std::size_t cell(int rank, int chunk, int microbatch) const { return at((rank * v_ + chunk) * m_ + microbatch); }
  double duration(int rank, const Op& op) const {
    const auto of = static_cast<std::size_t>(order_.kind(rank, op.chunk));
    const bool fewer = rank > 0 && rank <= t_.fewer;
    return op.backward ? t_.backward[of] - (fewer ? t_.backward_less : 0) - faster_[at(rank)]
                       : t_.forward[of] - (fewer ? t_.forward_less : 0);
  }
  double ready(int rank, const Op& op) const {
    const auto of = static_cast<std::size_t>(order_.kind(rank, op.chunk));
    if (op.backward) return of == 2 ? 0 : gradient_[cell(rank, op.chunk, op.microbatch)];
    return of == 0 ? 0 : input_[cell(rank, op.chunk, op.microbatch)];
  }
  void look(int rank) {
    const auto r = at(rank);
    ends_[r] = kNever;
    if (done_[r] == 2 * order_.count()) return;
    op_[r] = order_.at(rank, done_[r]);
    const double inputs = ready(rank, op_[r]);
    if (inputs >= kNever) return;
    begins_[r] = std::max(free_[r], inputs);
    ends_[r] = begins_[r] + duration(rank, op_[r]);
    for (const Beside& each : beside_[r]) slow_down(rank, each);
  }
  // A transfer beside an action takes its share of the compute units.
  void slow_down(int rank, const Beside& transfer) {
    const auto r = at(rank);
    const double from = std::max(transfer.begin, begins_[r]);
    if (transfer.share <= 0 || from >= std::min(transfer.end, ends_[r])) return;
    const double to_the_end = (ends_[r] - from) / (1 - transfer.share);
    ends_[r] += std::min(to_the_end, transfer.end - from) * transfer.share;
  }

  void act(int rank) {
    const auto r = at(rank);
    const Op op = op_[r];
    const double end = ends_[r];
    free_[r] = end;
    ++done_[r];
    note(rank, op, end);
    const auto of = static_cast<std::size_t>(order_.kind(rank, op.chunk));
    const bool leaves = op.backward ? of != 0 : of != 2;
    int to = -1;
    if (leaves) {
      const bool wraps = op.backward ? rank == 0 : rank + 1 == p_;
      to = op.backward ? (wraps ? p_ - 1 : rank - 1) : (wraps ? 0 : rank + 1);
      const Ways::Way& way = op.backward ? ways_.gradient[r] : ways_.output[r];
      double& lane = lanes_[at(way.lane)];
      double& other = lanes_[at(way.other < 0 ? way.lane : way.other)];
      double& stream = streams_[op.backward ? 1 : 0][r];
      const double begin = std::max({end + way.latency, stream + way.latency, lane, other});
      const double there = begin + wire_[op.backward ? 1 : 0][r];
      lane = other = stream = there;
      const int chunk = op.chunk + (wraps ? (op.backward ? -1 : 1) : 0);
      (op.backward ? gradient_ : input_)[cell(to, chunk, op.microbatch)] = there;
      if (!overlap_) free_[r] = there;
      const Beside transfer{begin - way.latency, there, way.share};
      beside_[r][op.backward ? 1 : 0] = transfer;
      beside_[at(to)][op.backward ? 3 : 2] = transfer;
      if (ends_[at(to)] < kNever) slow_down(to, transfer);
    }
    look(rank);
    if (to >= 0 && to != rank && ends_[at(to)] >= kNever) look(to);
  }

  void note(int rank, const Op& op, double end) {
    if (order_.schedule == Schedule::GPipe) {
      if (rank != (op.backward ? 0 : p_ - 1)) return;
      double& last = op.backward ? late_ : early_;
      gpipe_period_[op.backward ? 1 : 0] = end - last;
      last = end;
    } else if (rank + 1 == p_ && op.backward && op.chunk + 1 == v_) {
      if (op.microbatch == p_) early_ = end;
      if (op.microbatch == 2 * p_) late_ = end;
    }
  }

  const PipelineTimes& t_;
  const Ways& ways_;
  PlayOrder order_;
  int p_, v_, m_;
  bool overlap_;
  const std::array<double, Ways::kMost>& faster_;
  double early_ = 0, late_ = 0;
  std::array<double, 2> gpipe_period_ = {};
  std::array<std::array<double, Ways::kMost>, 2> wire_ = {}, streams_ = {};
  std::array<double, 4 * Ways::kMost> lanes_ = {};
  std::array<double, Ways::kMost> free_ = {}, begins_ = {}, ends_ = {};
  std::array<std::array<Beside, 4>, Ways::kMost> beside_ = {};  // [rank]: the last ones: sent either way, received either way
  std::array<int, Ways::kMost> done_ = {};
  std::array<Op, Ways::kMost> op_ = {};
  std::array<double, kMostCells> input_, gradient_;
};

}  // namespace

std::optional<double> play_pipeline(Schedule schedule, const PipelineTimes& times, const Ways& ways, double bytes, bool overlap,
                                    const std::array<double, Ways::kMost>& faster) {
  constexpr int kRounds = 3;  // of as many micro-batches as ranks: filling, the middle, draining
  const int all = static_cast<int>(times.microbatches), p = times.ranks;
  if (schedule != Schedule::GPipe && schedule != Schedule::OneFOneB && schedule != Schedule::Interleaved) return {};
  const int few = std::min(all, kRounds * p + (times.chunks == 1 ? 1 : 0));
  if (p != ways.ranks || p * times.chunks * few > kMostCells || (times.chunks > 1 && all % p != 0)) return {};
  Play play(schedule, times, ways, bytes, overlap, few, faster);
  const double seconds = play.run();
  return few == all ? seconds : seconds + (all - few) * play.period();
}

}  // namespace foreshard
