// DualPipe and DualPipeV (DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.1): a forward and a backward of different micro-batches run as
// one cell, so that each hides the other's communication. Both are made of "arms" of H ranks; q is the distance of a rank from the arm's
// outer end, and every rank of an arm has two chunks with n micro-batches each:
//   dualpipe     H = p/2  n = m/2  two arms; the chunks are stages of two pipelines, one down and one up: every stage on two ranks
//   dualpipe-v   H = p    n = m    one arm; the chunks are those of zb-v
// The rule is that of docs/schedules.md, "Forward and backward in one cell".
#include <algorithm>
#include <deque>

#include "strategy/schedule/schedule_rules.h"

namespace foreshard {

namespace {

struct Arm {
  int ranks = 1, microbatches = 1;  // H, n
};

class ArmList {
 public:
  ArmList(int chunk0, int chunk1) : stages_{chunk0, chunk1} {}

  void forward(int chunk) { emit(Work::F, chunk, forwards_[chunk]++); }
  void backward(int chunk) { emit(Work::B, chunk, backwards_[chunk]++); }
  void inputs(int chunk) {
    owed_.push_back({Work::W, stages_[chunk], backwards_[chunk]});
    emit(Work::I, chunk, backwards_[chunk]++);
  }
  void weights() { list_.push_back(owed_.front()), owed_.pop_front(); }
  void cell(int forward_chunk, int backward_chunk, bool overlaps = true) {
    forward(forward_chunk);
    list_.back().with_next = overlaps;
    backward(backward_chunk);
  }
  std::vector<ScheduleOp> take() { return std::move(list_); }

 private:
  void emit(Work work, int chunk, int microbatch) { list_.push_back({work, stages_[chunk], microbatch}); }

  int stages_[2];
  int forwards_[2] = {}, backwards_[2] = {};
  std::deque<ScheduleOp> owed_ = {};  // deferred weight gradients, oldest first
  std::vector<ScheduleOp> list_ = {};
};

std::vector<ScheduleOp> arm_list(const Arm& arm, int q, int chunk0, int chunk1) {
  const int H = arm.ranks, n = arm.microbatches;
  ArmList list(chunk0, chunk1);
  for (int i = 0; i < 2 * (H - 1 - q); ++i) list.forward(0);
  for (int i = 0; i < q + 1; ++i) list.forward(0), list.forward(1);
  for (int i = 0; i < H - 1 - q; ++i) list.inputs(1), list.weights(), list.forward(1);
  for (int i = 0; i < n - 2 * H + q + 1; ++i) {
    list.cell(0, 1, i > 0 || q + 1 < H);  // on the innermost rank the gradient of its first forward is ready at once
    list.cell(1, 0);
  }
  for (int i = 0; i < H - 1 - q; ++i) list.backward(1), list.cell(1, 0);
  for (int i = 0; i < 2 * (q + 1); ++i) i < q + 1 ? list.backward(1 - i % 2) : list.inputs(1 - i % 2);
  for (int i = 0; i < H - 1 - q; ++i) list.weights(), list.inputs(0);
  for (int i = 0; i < q + 1; ++i) list.weights();
  return list.take();
}

ScheduleLists dualpipe_lists(const ScheduleShape& shape) {
  const int p = shape.p;
  ScheduleLists result;
  for (int r = 0; r < p; ++r)
    result.push_back(arm_list({p / 2, shape.m / 2}, std::min(r, p - 1 - r), mirrored_stage(r, 0, p), mirrored_stage(r, 1, p)));
  return result;
}
ScheduleLists dualpipe_v_lists(const ScheduleShape& shape) {
  ScheduleLists result;
  for (int r = 0; r < shape.p; ++r)
    result.push_back(arm_list({shape.p, shape.m}, r, v_stage(r, 0, shape.p), v_stage(r, 1, shape.p)));
  return result;
}

std::optional<Infeasible> refuse_few(const ScheduleShape& shape, const std::string& schedule) {
  if (shape.m >= 2 * shape.p) return {};
  return Infeasible{"schedule " + schedule + " needs twice as many micro-batches as pipeline ranks, " +
                        std::to_string(2 * shape.p) + ", found " + std::to_string(shape.m),
                    {"a larger --global-batch", "--schedule zb-v"}};
}
std::optional<Infeasible> refuse_dualpipe(const ScheduleShape& shape) {
  if (auto refused = refuse_chunks(shape, "dualpipe")) return refused;
  if (auto refused = refuse_few(shape, "dualpipe")) return refused;
  if (shape.p % 2 == 0 && shape.m % 2 == 0) return {};
  return Infeasible{"schedule dualpipe needs even numbers of pipeline ranks and of micro-batches, found " +
                        std::to_string(shape.p) + " and " + std::to_string(shape.m),
                    {"another --pp", "another --global-batch", "--schedule dualpipe-v"}};
}
std::optional<Infeasible> refuse_dualpipe_v(const ScheduleShape& shape) {
  if (auto refused = refuse_all_but_two(shape, "dualpipe-v")) return refused;
  return refuse_few(shape, "dualpipe-v");
}

// Idle seconds of an arm of H ranks: (H-1)(F&B + B - 3W) with the times of a chunk. If overlap saves no time, F&B is F + I + W, and the
// second factor is F + 2I - W.
double idle_of_arm(double ranks, double chunks, const FillTimes& t) {
  return (ranks - 1) * std::max(0.0, t.forward + 2 * t.input_grad - t.weight_grad) / chunks;
}

}  // namespace

ScheduleEntry dualpipe_schedule() {
  return {.id = Schedule::DualPipe,
          .name = name_of(Schedule::DualPipe),
          .summary =
              "two pipelines over the same ranks, forward and backward in one cell: idle (p/2-1)(F&B+B-3W), every stage on two "
              "ranks",
          .refuse = refuse_dualpipe,
          .lists = dualpipe_lists,
          .rank_of_stage = v_placement,
          .stage_of = mirrored_stage,
          .splits = true,
          .routes = 2,
          .in_flight = [](const FlightShape& s) { return s.p + 1; },
          .idle = [](const FillTimes& t) { return idle_of_arm(t.ranks / 2, 1, t) / (t.ranks - 1) + 4 * t.hop; }};
}

ScheduleEntry dualpipe_v_schedule() {
  return {.id = Schedule::DualPipeV,
          .name = name_of(Schedule::DualPipeV),
          .summary =
              "the placement of zb-v, forward and backward in one cell: idle (p-1)(F&B+B-3W) of a chunk, p + 1/2 micro-batches "
              "in flight",
          .chunks = Chunks::Two,
          .refuse = refuse_dualpipe_v,
          .lists = dualpipe_v_lists,
          .rank_of_stage = v_placement,
          .stage_of = v_stage,
          .splits = true,
          .in_flight = [](const FlightShape& s) { return 2 * s.p + 1; },
          .idle = [](const FillTimes& t) { return idle_of_arm(t.ranks, 2, t) / (t.ranks - 1); },
          .idle_hops = [](int p) { return p > 1 ? 5 * p - 7 : 0; }};
}

}  // namespace foreshard
