// ZB-V (Qi et al. 2024, arXiv:2401.10241, section 6): two chunks per rank, down the ranks with the first and back up with the
// second, so that rank 0 holds the first stage and the last one and a micro-batch ends where it began:
//   r0  stage 0   stage 2p-1
//   r1  stage 1   stage 2p-2
//   ..                        rank p-1 holds stages p-1 and p, so nothing is sent between these
// Weight gradients fill the idle times. Every rank has the memory of 1F1B's first rank (2p chunks of half the size).
#include <algorithm>

#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

namespace {

// The list of one rank, by the rule of docs/schedules.md, "Zero bubble". The rule takes the next micro-batch of each kind of work;
// micro-batches from m on do not exist and are skipped.
class RankList {
 public:
  RankList(const ScheduleShape& shape, int rank) : m_(shape.m), stages_{rank, 2 * shape.p - 1 - rank} {}

  void emit(Work work, int chunk) {
    int& next = next_[static_cast<std::size_t>(work == Work::F ? 0 : work == Work::I ? 1 : 2)][static_cast<std::size_t>(chunk)];
    if (next < m_) list_.push_back({work, stages_[static_cast<std::size_t>(chunk)], next});
    ++next;
  }
  void forward(int chunk) { emit(Work::F, chunk); }
  void backward(int chunk) { emit(Work::I, chunk), emit(Work::W, chunk); }
  int emitted(int kind, int chunk) const { return next_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(chunk)]; }
  std::vector<ScheduleOp> take() { return std::move(list_); }

 private:
  int m_;
  int stages_[2];
  int next_[3][2] = {};
  std::vector<ScheduleOp> list_ = {};
};

}  // namespace

static std::vector<ScheduleOp> rank_list(const ScheduleShape& shape, int rank) {
  const int p = shape.p, n = std::max(shape.m, 2 * p - 1);
  RankList list(shape, rank);
  for (int i = 0; i < 2 * (p - rank) - 1; ++i) list.forward(0);
  for (int i = 0; i < rank; ++i) list.forward(1), list.forward(0);
  for (int i = 0; i < p - rank; ++i) list.forward(1), list.backward(1);
  while (list.emitted(0, 1) < n) {
    if (list.emitted(0, 0) < n) list.forward(0);
    list.backward(0);
    list.forward(1), list.backward(1);
  }
  for (int i = 0; i < rank; ++i) list.emit(Work::I, 0), list.emit(Work::I, 1);
  for (int i = 0; i < p - rank; ++i) list.backward(0);
  while (list.emitted(2, 1) < n) list.emit(Work::W, 1);
  while (list.emitted(2, 0) < n) list.emit(Work::W, 0);
  return list.take();
}

static ScheduleLists zb_v_lists(const ScheduleShape& shape) {
  ScheduleLists result;
  for (int rank = 0; rank < shape.p; ++rank) result.push_back(rank_list(shape, rank));
  return result;
}

ScheduleEntry zb_v_schedule() {
  return {.id = Schedule::ZeroBubbleV,
          .name = name_of(Schedule::ZeroBubbleV),
          .summary =
              "two chunks per rank, down and back up, weight gradients put off: idle (p-1)F/2 with equal times, p "
              "micro-batches in flight",
          .chunks = Chunks::Two,
          .refuse = [](const ScheduleShape& shape) { return refuse_all_but_two(shape, "zb-v"); },
          .lists = zb_v_lists,
          .rank_of_stage = v_placement,
          .stage_of = v_stage,
          .splits = true,
          .in_flight = [](const FlightShape& s) { return std::min(s.m * s.v, 2 * s.p); },
          .idle = [](const FillTimes& t) { return std::max(t.input_grad / 2, t.input_grad - t.weight_grad); },
          .idle_hops = [](int p) { return p > 1 ? 5 * p - 7 : 0; }};
}

}  // namespace foreshard
