// Adam, AdamW and SGD against the formulas of PyTorch's documentation; slices, master copies, clipping.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/host_arrays.h"

namespace foreshard::host_optimizer_test {
namespace {

constexpr std::int64_t kSize = 2500;  // two and a half pieces

struct State {
  double m = 0, v = 0, p = 0;
};

// One step of torch.optim.AdamW (decoupled) or Adam, as its documentation writes it.
State adam(State s, double g, const OptimizerSettings& o, std::int64_t step) {
  if (o.decoupled_decay)
    s.p *= 1 - o.learning_rate * o.weight_decay;
  else
    g += o.weight_decay * s.p;
  s.m = o.beta1 * s.m + (1 - o.beta1) * g;
  s.v = o.beta2 * s.v + (1 - o.beta2) * g * g;
  const double m = s.m / (1 - std::pow(o.beta1, step)), v = s.v / (1 - std::pow(o.beta2, step));
  s.p -= o.learning_rate * m / (std::sqrt(v) + o.eps);
  return s;
}

Array squares(std::uint64_t seed) {
  Array v = random_array(kSize, seed);
  for (std::int64_t i = 0; i < v.size(); ++i) v.set(i, v.at(i) * v.at(i));
  return v;
}

Compute update(const Operation& op, std::int64_t elements, GroupId slice = {}) {
  return {.op = op, .phase = Phase::Update, .shapes = {{{elements}, DType::F64}}, .slice = slice};
}

// The states are read and written in place, as in a plan.
void run_in_place(const Compute& what, Array gradient, std::vector<Array*> states, bool with_master, const OpArguments& a) {
  std::vector<Operand> reads = {gradient.operand()}, writes;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!with_master || i + 1 < states.size()) reads.push_back(states[i]->operand());
    writes.push_back(states[i]->operand());
  }
  run_compute(what, reads, writes, a);
}

// However many threads share it: the same bits, of every element. 300,000 are four and a half times what one thread has to have.
TEST(HostAdam, ThreadsDoNotChangeTheResult) {
  constexpr std::int64_t kMany = 300'000;
  for (const DType type : {DType::F64, DType::F32, DType::BF16}) {
    std::vector<std::vector<double>> known;
    for (const int threads : {1, 2, 3, 64}) {
      Array g = random_array(kMany, 4, type), m = random_array(kMany, 5, type), v(kMany, type),
            p = random_array(kMany, 6, type);
      const Array before = p;
      run_compute(update(ops::Adam{}, kMany), std::vector{g.operand(), m.operand(), v.operand(), p.operand()},
                  std::vector{m.operand(), v.operand(), p.operand()}, {.step = 2, .threads = threads});
      std::vector<std::vector<double>> made = {m.values(), v.values(), p.values()};
      if (known.empty()) {
        known = std::move(made);
        int untouched = 0;  // but where the gradient is nothing
        for (std::int64_t i = 0; i < kMany; ++i) untouched += v.at(i) == 0;
        EXPECT_LT(untouched, 10);
        EXPECT_NE(p.values(), before.values());
      } else {
        EXPECT_EQ(made, known) << threads;
      }
    }
  }
}

TEST(HostAdam, ThreeStepsOfEachForm) {
  for (const bool decoupled : {true, false})
    for (const bool master : {false, true}) {
      OptimizerSettings settings{
          .learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1, .decoupled_decay = decoupled};
      Array p = random_array(kSize, 1), m = random_array(kSize, 2), v = squares(3), exact = p;
      std::vector<State> expected;
      for (std::int64_t i = 0; i < kSize; ++i) expected.push_back({m.at(i), v.at(i), p.at(i)});
      for (std::int64_t step = 1; step <= 3; ++step) {
        const Array g = random_array(kSize, 10 + static_cast<std::uint64_t>(step));
        std::vector<Array*> states = {&m, &v, &p};
        if (master) states.insert(states.begin(), &exact);
        run_in_place(update(ops::Adam{}, kSize), g, states, master, {.loss_scale = 4, .step = step, .optimizer = settings});
        for (std::int64_t i = 0; i < kSize; ++i) {
          State& s = expected[static_cast<std::size_t>(i)];
          s = adam(s, g.at(i) / 4, settings, step);
          ASSERT_NEAR(m.at(i), s.m, 1e-14);
          ASSERT_NEAR(v.at(i), s.v, 1e-14);
          ASSERT_NEAR(p.at(i), s.p, 1e-13);
          ASSERT_EQ(p.at(i), master ? exact.at(i) : p.at(i));
        }
      }
    }
}

// bf16 weights, float master and states: the weight is the rounded master, and small steps are not lost.
TEST(HostAdam, MasterCopyKeepsWhatBFloat16Loses) {
  Array p(std::vector<double>(kSize, 1.0), DType::BF16), exact(std::vector<double>(kSize, 1.0), DType::F32);
  Array m(kSize, DType::F32), v(kSize, DType::F32);
  for (std::int64_t step = 1; step <= 10; ++step)  // each step moves by 1e-4; half a unit of bf16 below 1 is 2e-3
    run_in_place(update(ops::Adam{}, kSize), Array(std::vector<double>(kSize, 1.0), DType::BF16), {&exact, &m, &v, &p}, true,
                 {.step = step, .optimizer = {.learning_rate = 1e-4}});
  EXPECT_NEAR(exact.at(kSize - 1), 0.999, 1e-6);
  EXPECT_EQ(p.at(kSize - 1), 1.0);
  for (std::int64_t step = 11; step <= 40; ++step)
    run_in_place(update(ops::Adam{}, kSize), Array(std::vector<double>(kSize, 1.0), DType::BF16), {&exact, &m, &v, &p}, true,
                 {.step = step, .optimizer = {.learning_rate = 1e-4}});
  EXPECT_NEAR(exact.at(0), 0.996, 1e-5);
  EXPECT_EQ(p.at(0), 0.99609375);  // 255/256
}

// The value and, under ZeRO 1, the gradient are whole; states are the slice of rank 2 of 5.
TEST(HostAdam, OnlyTheOwnSliceChanges) {
  const std::int64_t own = 500, rank = 2;
  const Array g = random_array(kSize, 1), before = random_array(kSize, 2);
  Array p = before, m(own, DType::F64), v(own, DType::F64);
  run_in_place(update(ops::Adam{}, own, {0}), g, {&m, &v, &p}, false, {.slice = rank, .optimizer = {.learning_rate = 0.1}});
  Array all = before, all_m(kSize, DType::F64), all_v(kSize, DType::F64);
  run_in_place(update(ops::Adam{}, kSize), g, {&all_m, &all_v, &all}, false, {.optimizer = {.learning_rate = 0.1}});
  for (std::int64_t i = 0; i < kSize; ++i) {
    const bool mine = i / own == rank;
    EXPECT_EQ(p.at(i), mine ? all.at(i) : before.at(i));
    if (mine) {
      EXPECT_EQ(m.at(i - rank * own), all_m.at(i));
    }
  }
}

// Delay 4, annealed over 10 steps: step 1 divides the rate by 4^1, step 6 by 4^(1/2) = 2, step 11 and later not at all. The decay of AdamW
// goes with the rate.
TEST(HostOptimizer, ADelayedStageTakesSmallerSteps) {
  const ops::DelayedRate rate{.delay = 4, .annealed_over = 10};
  for (const auto& [step, divisor] : {std::pair{1, 4.0}, {6, 2.0}, {11, 1.0}, {500, 1.0}}) {
    EXPECT_DOUBLE_EQ(rate.factor(step), 1 / divisor);
    EXPECT_EQ((ops::DelayedRate{.delay = 1, .annealed_over = 10}.factor(step)), 1);
    EXPECT_EQ((ops::DelayedRate{.delay = 4}.factor(step)), 1);
    OpArguments delayed{.step = step, .optimizer = {.learning_rate = 0.1, .weight_decay = 0.3}}, plain = delayed;
    plain.optimizer.learning_rate = 0.1 / divisor;
    const Array g = random_array(kSize, 1), before = random_array(kSize, 2);
    Array p = before, m = random_array(kSize, 3), v = squares(4), same = p, same_m = m, same_v = v;
    run_in_place(update(ops::Adam{.rate = rate}, kSize), g, {&m, &v, &p}, false, delayed);
    run_in_place(update(ops::Adam{}, kSize), g, {&same_m, &same_v, &same}, false, plain);
    Array q = before, same_q = before;
    run_in_place(update(ops::Sgd{.rate = rate}, kSize), g, {&q}, false, delayed);
    run_in_place(update(ops::Sgd{}, kSize), g, {&same_q}, false, plain);
    for (std::int64_t i = 0; i < kSize; ++i) {
      ASSERT_NEAR(p.at(i), same.at(i), 1e-14);
      ASSERT_NEAR(q.at(i), same_q.at(i), 1e-14);
    }
    EXPECT_NE(p.values(), before.values());
  }
}

TEST(HostSgd, EveryFormOfOperands) {
  const double rate = 0.1, momentum = 0.9, decay = 0.01;
  const Array g = random_array(kSize, 1), before = random_array(kSize, 2), speed = random_array(kSize, 3);
  for (const bool master : {false, true})
    for (const bool moves : {false, true}) {
      Array p = before, exact = before, v = speed;
      std::vector<Array*> states = {&p};
      if (moves) states.insert(states.begin(), &v);
      if (master) states.insert(states.begin(), &exact);
      run_in_place(update(ops::Sgd{}, kSize), g, states, master,
                   {.loss_scale = 2, .optimizer = {.learning_rate = rate, .weight_decay = decay, .momentum = momentum}});
      for (std::int64_t i = 0; i < kSize; ++i) {
        const double gradient = g.at(i) / 2 + decay * before.at(i);
        const double velocity = moves ? momentum * speed.at(i) + gradient : gradient;
        ASSERT_NEAR(p.at(i), before.at(i) - rate * velocity, 1e-15) << master << moves;
        ASSERT_EQ(v.at(i), moves ? v.at(i) : speed.at(i));
        if (moves) {
          ASSERT_NEAR(v.at(i), velocity, 1e-15);
        }
      }
    }
}

TEST(HostClip, NormAndScale) {
  const Array a = random_array(kSize, 1), b = random_array(10, 2);
  double square = 0;
  for (const Array& array : {a, b})
    for (const double x : array.values()) square += x * x;
  std::vector<Array> reads = {a, b}, norm = {Array({7}, DType::F64)};
  Compute what{.op = ops::GradNorm{}};
  run_on(what, reads, norm);
  EXPECT_NEAR(norm[0].at(0), square, 1e-9);
  what.accumulate = true;
  run_on(what, reads, norm);
  EXPECT_NEAR(norm[0].at(0), 2 * square, 1e-9);
  // Twice the squares, so the norm is sqrt(2 square); with loss scale 8 the true norm is an eighth.
  const double true_norm = std::sqrt(2 * square) / 8;
  for (const double limit : {true_norm / 4, true_norm * 1.01}) {
    std::vector<Array> gradients = {a, b};
    run_on({.op = ops::ClipScale{.max_norm = limit}}, norm, gradients, {.loss_scale = 8});
    const double factor = limit < true_norm ? 0.25 : 1;
    for (std::int64_t i = 0; i < kSize; ++i) ASSERT_NEAR(gradients[0].at(i), factor * a.at(i), 1e-5);
    ASSERT_NEAR(gradients[1].at(9), factor * b.at(9), 1e-5);
  }
}

// Slice 1 of {0..7} in slices of four is {4, 5, 6, 7}: squares 16 + 25 + 36 + 49 = 126, 63 when two ranks hold the same. With
// limit sqrt(63) / 2 the slice, and nothing else, is halved.
TEST(HostClip, OwnSliceAndSharedGradients) {
  std::vector<Array> gradients = {Array({0, 1, 2, 3, 4, 5, 6, 7}, DType::F64)}, norm = {Array(1, DType::F64)};
  run_on(update(ops::GradNorm{.divide = 2}, 4, {0}), gradients, norm, {.slice = 1});
  EXPECT_DOUBLE_EQ(norm[0].at(0), 63);
  run_on(update(ops::ClipScale{.max_norm = std::sqrt(63.0) / 2}, 4, {0}), norm, gradients, {.slice = 1});
  EXPECT_DOUBLE_EQ(gradients[0].at(3), 3);
  EXPECT_NEAR(gradients[0].at(4), 2, 1e-6);
  EXPECT_NEAR(gradients[0].at(7), 3.5, 1e-6);
}

// The second of two shards of four, of which seven elements count: 25 + 36 + 49 = 110; what lies behind is no number.
TEST(HostClip, PaddingDoesNotCount) {
  std::vector<Array> gradients = {Array({5, 6, 7, std::nan("")}, DType::F64)}, norm = {Array(1, DType::F64)};
  run_on(update(ops::GradNorm{.used = 7}, 4, {0}), gradients, norm, {.slice = 1});
  EXPECT_DOUBLE_EQ(norm[0].at(0), 110);
}

}  // namespace
}  // namespace foreshard::host_optimizer_test
