// ZB-2p: the automatic zero-bubble schedule (Qi et al. 2024, arXiv:2401.10241, section 3.1) with memory for 2p forwards on every rank. It is
// made for given times of F, I, W and a transfer:
//   warm-up  as many forwards as the memory allows before the first input gradient arrives; each rank at least one more than the next
//   then     a forward and an input gradient in turn; weight gradients run while a rank waits for either, and when memory is short
//   end      the weight gradients that are left
// Three choices have no rule: whether a forward may delay the first input gradient, whether a rank that is ahead of the next one may skip a
// forward, and whether a wait shorter than W is filled. All eight combinations are tried. The one is taken whose longest rank is shortest,
// from its first action to its last: ranks that need not wait for each other after an update repeat in that time.
//
// Memory is counted in halves of a forward: I frees one half, W the other (as in the authors' code of the paper, commit ed85b11c of
// sail-sg/zero-bubble-pipeline-parallelism). zb-h2 counts micro-batches instead, so it runs weight gradients earlier than it would have to.
#include <algorithm>
#include <utility>

#include "core/base/at.h"
#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

namespace {

constexpr int kForward = 2, kHalf = 1;  // halves of a forward's memory

struct Choices {
  bool delays_first = false;  // a forward of the warm-up may end after the first input gradient could begin
  bool skips = false;         // a rank that is two forwards ahead of the next one may leave one out
  bool fills = false;  // a weight gradient also fills a wait that is shorter than it, if no rank would become the most idle
};

class AutomaticOrder {
 public:
  AutomaticOrder(const ScheduleShape& shape, Choices choices) : shape_(shape), choices_(choices), ranks_(at(shape.p)) {
    warm_up();
    for (int i = 1; i < shape_.m; ++i) {
      const std::vector<char> forward = ranks_with_forward();
      for (int r = 0; r < shape_.p; ++r)
        if (forward[at(r)]) run_forward(r);
      for (int r = shape_.p - 1; r >= 0; --r) run_input_gradient(r);
    }
    for (int r = 0; r < shape_.p; ++r)
      while (has_weight_gradient(r)) run(r, Work::W);
  }

  double longest() const {  // time of a rank from its first action to its last, the most of all ranks
    double most = 0;
    for (const Rank& rank : ranks_) most = std::max(most, rank.free - rank.begin);
    return most;
  }
  ScheduleLists take() {
    ScheduleLists lists;
    for (Rank& rank : ranks_) lists.push_back(std::move(rank.list));
    return lists;
  }

 private:
  struct Rank {
    double free = 0, begin = 0, idle = 0;  // idle: since the first action
    int forwards = 0, inputs = 0, weights = 0, halves = 0;
    std::vector<double> forward_end = {}, input_end = {};  // [micro-batch]
    std::vector<ScheduleOp> list = {};
  };
  Rank& rank(int r) { return ranks_[at(r)]; }
  double lasts(Work work) const {
    return work == Work::F ? shape_.times.forward : work == Work::I ? shape_.times.input_grad : shape_.times.weight_grad;
  }
  int limit() const { return 2 * shape_.p * kForward; }
  bool has_forward(int r) { return rank(r).forwards < shape_.m; }
  bool has_weight_gradient(int r) { return rank(r).weights < rank(r).inputs; }
  bool has_room(int r) { return rank(r).halves + kForward <= limit(); }

  // When the inputs of the rank's next forward or input gradient have arrived.
  double ready(int r, Work work) {
    if (work == Work::F && r > 0) return ranks_[at(r - 1)].forward_end[at(rank(r).forwards)] + shape_.times.transfer;
    if (work == Work::I && r + 1 < shape_.p) return ranks_[at(r + 1)].input_end[at(rank(r).inputs)] + shape_.times.transfer;
    return 0;
  }

  void run(int r, Work work) {
    Rank& on = rank(r);
    const double begin = work == Work::W ? on.free : std::max(on.free, ready(r, work));
    if (on.list.empty())
      on.begin = begin;
    else
      on.idle += begin - on.free;
    most_idle_ = std::max(most_idle_, on.idle);
    on.free = begin + lasts(work);
    int& number = work == Work::F ? on.forwards : work == Work::I ? on.inputs : on.weights;
    on.list.push_back({work, r, number++});
    on.halves += work == Work::F ? kForward : -kHalf;
    if (work == Work::F) on.forward_end.push_back(on.free);
    if (work == Work::I) on.input_end.push_back(on.free);
  }

  void warm_up() {
    for (int r = 0; r < shape_.p; ++r) run(r, Work::F);
    const std::vector<int> more = forwards_before_gradient();
    for (int r = 0; r < shape_.p; ++r)
      for (int k = 0; k < more[at(r)]; ++k) run(r, Work::F);
    for (int r = shape_.p - 1; r >= 0; --r) run(r, Work::I);
  }

  // [rank]: forwards that it runs after its first one and before its first input gradient.
  std::vector<int> forwards_before_gradient() {
    std::vector<int> more(at(shape_.p), 0);
    double gradient = 0;  // when the first input gradient of the next rank ends
    for (int r = shape_.p - 1; r >= 0; --r) {
      const double arrives = r + 1 < shape_.p ? gradient + shape_.times.transfer : 0;
      double now = rank(r).free;
      const auto in_time = [&] { return choices_.delays_first ? now < arrives : now + shape_.times.forward <= arrives; };
      for (int& n = more[at(r)]; 1 + n < shape_.m && (1 + n) * kForward + kForward <= limit() && in_time(); ++n)
        now += shape_.times.forward;
      gradient = std::max(now, arrives) + shape_.times.input_grad;
    }
    for (int r = 1; r < shape_.p; ++r)
      while (more[at(r)] > 0 && more[at(r)] >= more[at(r - 1)] && 1 + more[at(r)] < shape_.m) --more[at(r)];
    return more;
  }

  // [rank]: whether it runs a forward before its next input gradient. A rank does not if the next one does not.
  std::vector<char> ranks_with_forward() {
    std::vector<char> forward(at(shape_.p), 0);
    for (int r = 0; r < shape_.p; ++r) forward[at(r)] = has_forward(r) && !(choices_.skips && may_skip(r));
    for (int r = shape_.p - 2; r >= 0; --r) forward[at(r)] = forward[at(r)] && forward[at(r + 1)];
    return forward;
  }

  bool may_skip(int r) {
    if (r + 1 == shape_.p || rank(r).forwards < rank(r + 1).forwards + 2) return false;
    // The next rank's gradient arrives then, if the next rank runs a forward first.
    const double arrives = rank(r + 1).free + shape_.times.forward + shape_.times.input_grad + shape_.times.transfer;
    if (rank(r).free >= arrives) return true;
    double now = rank(r).free + shape_.times.forward;
    int halves = rank(r).halves + kForward, weights = rank(r).inputs - rank(r).weights;
    for (; halves > limit() && weights > 0; --weights) halves -= kHalf, now += shape_.times.weight_grad;
    if (now <= arrives) return false;  // the forward fits
    return arrives - rank(r).free <= most_idle_ - rank(r).idle;
  }

  void run_forward(int r) {
    while (!has_room(r)) {
      FS_ASSERT(has_weight_gradient(r));  // fewer than 2p forwards have no input gradient yet
      run(r, Work::W);
    }
    if (r > 0) fill(r, ready(r, Work::F));
    run(r, Work::F);
  }

  void run_input_gradient(int r) {
    if (r + 1 < shape_.p) fill(r, ready(r, Work::I));
    if (r == 0 && !has_forward(r))
      while (has_weight_gradient(r)) run(r, Work::W);
    run(r, Work::I);
  }

  // Runs weight gradients while the rank waits.
  void fill(int r, double until) {
    while (has_weight_gradient(r) && rank(r).free + shape_.times.weight_grad <= until) run(r, Work::W);
    const double wait = until - rank(r).free;
    if (!has_weight_gradient(r) || wait <= 0) return;
    if (choices_.fills || wait > most_idle_ - rank(r).idle) run(r, Work::W);
  }

  const ScheduleShape& shape_;
  Choices choices_;
  std::vector<Rank> ranks_;
  double most_idle_ = 0;  // of the ranks
};

ScheduleLists zb_2p_lists(const ScheduleShape& shape) {
  std::optional<AutomaticOrder> best;
  for (const bool delays_first : {false, true})
    for (const bool skips : {true, false})
      for (const bool fills : {true, false}) {
        AutomaticOrder next(shape, {.delays_first = delays_first, .skips = skips, .fills = fills});
        if (!best || next.longest() < best->longest()) best.emplace(std::move(next));
      }
  return best->take();
}

}  // namespace

ScheduleEntry zb_2p_schedule() {
  return {.id = Schedule::ZeroBubble2p,
          .name = name_of(Schedule::ZeroBubble2p),
          .summary = "zero bubble, made for given times, with memory for 2p forwards, of which an input gradient frees half",
          .refuse = [](const ScheduleShape& shape) { return refuse_chunks(shape, "zb-2p"); },
          .lists = zb_2p_lists,
          .rank_of_stage = straight_placement,
          .stage_of = loop_stage,
          .by_times = true,
          .splits = true,
          // For equal times; between I and W a micro-batch counts half of the memory.
          .in_flight = [](const FlightShape& s) { return std::min(s.m, 3 * s.p + s.rank); },
          .idle =
              [](const FillTimes& t) {
                return std::max({t.forward, t.input_grad - t.forward, t.forward + t.input_grad - 2 * t.weight_grad}) + t.hop;
              }};
}

}  // namespace foreshard
