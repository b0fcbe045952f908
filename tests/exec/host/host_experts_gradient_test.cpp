// Gradients of the operators of experts against finite differences of their forward kernels, in double precision:
//   (L(x + h d) - L(x - h d)) / 2h = <gradient, d> + O(h^2)   for random directions d, with L = sum(r y) for random r.
// The choice of experts does not change within h, and has no gradient.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/exec/expert_arrays.h"

namespace foreshard::host_experts_gradient_test {
namespace {

using Score = ops::Route::Score;

double dot(const Array& a, const Array& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

Array moved(const Array& x, const Array& direction, double h) {
  Array y = x;
  for (std::int64_t i = 0; i < x.size(); ++i) y.set(i, x.at(i) + h * direction.at(i));
  return y;
}

// Largest |difference quotient - <gradient, d>| of four directions over the length of the gradient; infinity when one is no number.
double gradient_error(const Array& x, const Array& gradient, const std::function<double(const Array&)>& objective) {
  constexpr double h = 1e-5;
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Array d = random_array(x.size(), 70 + seed);
    const double quotient = (objective(moved(x, d, h)) - objective(moved(x, d, -h))) / (2 * h);
    const double error = std::abs(quotient - dot(gradient, d)) / (std::sqrt(dot(gradient, gradient)) + 1e-8);
    if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, error);
  }
  return largest;
}

// What `what` writes; with `accumulate` it adds the same to its first output, or to the gradients of all weights.
std::vector<Array> gradients_of(Compute what, const std::vector<Array>& reads, const std::vector<std::int64_t>& sizes) {
  const std::vector<Array> gradients = outputs_of(what, reads, sizes);
  std::vector<Array> from = reads, added = gradients;
  for (Array& array : added)
    for (std::int64_t i = 0; i < array.size(); ++i) array.set(i, 1);
  what.accumulate = true;
  run_on(what, from, added);
  for (std::size_t w = 0; w < added.size(); ++w) {
    const double before = w == 0 || what.phase == Phase::WeightGrad ? 1 : 0;
    for (std::int64_t i = 0; i < added[w].size(); ++i)
      EXPECT_NEAR(added[w].at(i), before + gradients[w].at(i), 1e-12) << "added to output " << w;
  }
  return gradients;
}

constexpr double kTolerance = 1e-8;

// ---- the choice --------------------------------------------------------------------------------------------------------------------------

// Fedus et al. 2021, section 2.2, over all tokens that the loads count: E / (k T) sum_i loads_i mean_t p_i, of which this is the share of
// these tokens; p are the scores over their sum, of SoftmaxOfChosen the softmax over all experts.
double auxiliary_loss(Score score, const Array& logits, std::int64_t experts, std::int64_t chosen, const Array& loads,
                      double tokens) {
  double loss = 0;
  for (std::int64_t t = 0; t < logits.size() / experts; ++t) {
    double sum = 0;
    const auto of = [&](std::int64_t i) {
      const double x = logits.at(t * experts + i);
      return score == Score::Sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x);
    };
    for (std::int64_t i = 0; i < experts; ++i) sum += of(i);
    for (std::int64_t i = 0; i < experts; ++i) loss += loads.at(i) * of(i) / sum / tokens;
  }
  return static_cast<double>(experts) / (static_cast<double>(chosen) * tokens) * loss;
}

// Equal scores: 1. All tokens choose the same k and score nothing else: E / k.
TEST(HostExpertGradients, TheAuxiliaryLossIsOneWhenUniform) {
  const std::int64_t tokens = 12, experts = 6, chosen = 2;
  std::vector<double> same, collapsed;
  for (std::int64_t i = 0; i < tokens * experts; ++i) same.push_back(0.3), collapsed.push_back(i % experts < chosen ? 30 : -30);
  const Array even(std::vector<double>(6, 4.0), DType::F64);  // 12 tokens x 2 choices on 6 experts
  for (const Score score : {Score::Softmax, Score::SoftmaxOfChosen, Score::Sigmoid}) {
    EXPECT_NEAR(auxiliary_loss(score, Array(same, DType::F64), experts, chosen, even, tokens), 1, 1e-12);
    const Array logits(collapsed, DType::F64);
    const Routed routed =
        route({.score = score, .chosen = chosen}, {.tokens = tokens, .experts = experts, .chosen = chosen}, logits);
    EXPECT_EQ(routed.loads.values(), (std::vector<double>{12, 12, 0, 0, 0, 0}));
    EXPECT_NEAR(auxiliary_loss(score, logits, experts, chosen, routed.loads, tokens), 3, 1e-9);
  }
}

// With loads of the collapsed choice, the loss of equal scores is 1 and that of the collapsed ones E / k = 3: the gradients on the way from the
// ones to the others add up to twice the coefficient.
TEST(HostExpertGradients, TheAuxiliaryLossGrowsToItsValueWhenAllChooseTheSame) {
  const Routing sizes{.tokens = 12, .experts = 6, .chosen = 2};
  const Array loads({12, 12, 0, 0, 0, 0}, DType::F64), none(std::vector<double>(24, 0.0), DType::F64);
  constexpr int kSteps = 4000;
  for (const Score score : {Score::Softmax, Score::SoftmaxOfChosen, Score::Sigmoid}) {
    const ops::Route op{.score = score, .chosen = 2, .auxiliary = 0.7};
    double sum = 0;
    for (int step = 0; step < kSteps; ++step) {
      Array logits(72, DType::F64);
      for (std::int64_t i = 0; i < 72; ++i) logits.set(i, (i % 6 < 2 ? 30 : -30) * (step + 0.5) / kSteps);
      const Array experts = route(op, sizes, logits).experts;
      const Array gradient = outputs_of(route_op(op, sizes, Phase::InputGrad), {none, logits, experts, loads}, {72})[0];
      for (std::int64_t i = 0; i < 72; ++i) sum += gradient.at(i) * (i % 6 < 2 ? 30.0 : -30.0) / kSteps;
    }
    EXPECT_NEAR(sum, 0.7 * (3 - 1), 1e-4);
  }
}

// Zoph et al. 2022, arXiv:2202.08906, equation 5: the share of these tokens in the mean of the squared log of the sum of exponentials.
double z_loss(const Array& logits, std::int64_t experts, double tokens) {
  double loss = 0;
  for (std::int64_t t = 0; t < logits.size() / experts; ++t) {
    double sum = 0;
    for (std::int64_t i = 0; i < experts; ++i) sum += std::exp(logits.at(t * experts + i));
    loss += std::log(sum) * std::log(sum) / tokens;
  }
  return loss;
}

struct RouterCase {
  ops::Route op = {};
  Routing sizes = {.tokens = 10, .experts = 8, .chosen = 3};
  OpArguments arguments = {};

  std::string name() const {
    return "score " + std::to_string(static_cast<int>(op.score)) + (op.renormalised ? ", renormalised" : "") + ", auxiliary " +
           std::to_string(op.auxiliary) + ", z " + std::to_string(op.z_loss) + ", groups " + std::to_string(op.groups) +
           ", ranks " + std::to_string(op.ranks);
  }
};

std::vector<RouterCase> router_cases() {
  std::vector<RouterCase> all;
  for (const Score score : {Score::Softmax, Score::SoftmaxOfChosen, Score::Sigmoid})
    for (const bool renormalised : {false, true})
      for (const double auxiliary : {0.0, 0.7})
        for (const std::int64_t groups : {1, 4})
          for (const std::int64_t ranks : {1, 3})
            all.push_back({.op = {.score = score,
                                  .chosen = 3,
                                  .renormalised = renormalised,
                                  .scale = 2.5,
                                  .groups = groups,
                                  .chosen_groups = groups / 2 + groups % 2,
                                  .best_of_group = 2,
                                  .auxiliary = auxiliary,
                                  .ranks = ranks,
                                  .z_loss = ranks == 3 ? 0.2 : 0},
                           .arguments = {.samples = 2, .samples_of_step = 6, .loss_scale = 8}});
  return all;
}

// The auxiliary loss of a micro-batch counts as its samples do among those of the step; its gradient is scaled as that of the loss is.
TEST(HostExpertGradients, Route) {
  for (const RouterCase& test : router_cases()) {
    const Routing& sizes = test.sizes;
    const Array logits = random_array(sizes.tokens * sizes.experts, 3), r = random_array(sizes.choices(), 4);
    const Routed routed = route(test.op, sizes, logits);
    Array loads = routed.loads;  // of all ranks
    for (std::int64_t i = 0; test.op.ranks > 1 && i < loads.size(); ++i) loads.set(i, loads.at(i) + static_cast<double>(i % 4));
    Compute what = route_op(test.op, sizes, Phase::InputGrad);
    const std::vector<Array> reads = {r, logits, routed.experts, loads};
    std::vector<Array> from = reads, gradient = {Array(logits.size(), DType::F64)}, added = {Array(logits.size(), DType::F64)};
    run_on(what, from, gradient, test.arguments);
    for (std::int64_t i = 0; i < logits.size(); ++i) added[0].set(i, 1);
    what.accumulate = true;
    run_on(what, from, added, test.arguments);
    for (std::int64_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(added[0].at(i), 1 + gradient[0].at(i), 1e-12) << test.name();
    const auto all = static_cast<double>(sizes.tokens * test.op.ranks);
    const auto objective = [&](const Array& x) {
      return dot(r, route(test.op, sizes, x).weights) +
             2.0 / 6.0 * 8.0 *
                 (test.op.auxiliary * auxiliary_loss(test.op.score, x, sizes.experts, sizes.chosen, loads, all) +
                  test.op.z_loss * z_loss(x, sizes.experts, all));
    };
    EXPECT_LT(gradient_error(logits, gradient[0], objective), kTolerance) << test.name();
  }
}

// A softmax over one chosen expert is always 1.
TEST(HostExpertGradients, OneExpertOfASoftmaxOfChosenTeachesNothing) {
  const Routing sizes{.tokens = 5, .experts = 4, .chosen = 1};
  const ops::Route op{.score = Score::SoftmaxOfChosen};
  const Array logits = random_array(20, 1);
  const Routed routed = route(op, sizes, logits);
  const Array gradient =
      outputs_of(route_op(op, sizes, Phase::InputGrad), {random_array(5, 2), logits, routed.experts, routed.loads}, {20})[0];
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(gradient.at(i), 0);
}

// ---- rows to the experts and back --------------------------------------------------------------------------------------------------

std::vector<std::pair<ops::Dispatch, Routing>> row_cases() {
  std::vector<std::pair<ops::Dispatch, Routing>> all;
  for (const std::int64_t room : {4, 40})
    for (const std::int64_t capacity : {0, 2})
      for (const bool dealt : {false, true})
        all.push_back({{.capacity = capacity, .dealt = dealt},
                       {.tokens = 9, .experts = 6, .chosen = 2, .hidden = 4, .ranks = 3, .room = room}});
  return all;
}

TEST(HostExpertGradients, Dispatch) {
  for (auto [op, sizes] : row_cases())
    for (const bool scaled : {false, true}) {
      op.scaled = scaled;
      const std::vector<Array> reads = random_dispatch(op, sizes, 5);
      const Sent sent = dispatch(op, sizes, reads);
      const Array r = random_array(sizes.rows(), 6);
      std::vector<Array> from = {r};
      if (scaled) from.insert(from.end(), {reads[0], reads[1]});
      from.push_back(sent.places);
      std::vector<std::int64_t> writes = {sizes.tokens * sizes.hidden};
      if (scaled) writes.push_back(sizes.choices());
      const std::vector<Array> gradients = gradients_of(rows_op(op, sizes, Phase::InputGrad), from, writes);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const auto objective = [&, op = op, sizes = sizes](const Array& x) {
          std::vector<Array> there = reads;
          there[i] = x;
          return dot(r, dispatch(op, sizes, there).rows);
        };
        EXPECT_LT(gradient_error(reads[i], gradients[i], objective), kTolerance)
            << "input " << i << ", room " << sizes.room << ", capacity " << op.capacity;
      }
    }
}

TEST(HostExpertGradients, DispatchOfGatheredTokens) {
  for (const bool scaled : {false, true}) {
    const Routing sizes{.tokens = 5, .experts = 6, .chosen = 2, .hidden = 4, .ranks = 3, .room = 4};
    const std::int64_t sources = 3;
    Routing all = sizes;
    all.tokens *= sources;
    const ops::Dispatch op{.scaled = scaled, .sources = sources};
    const std::vector<Array> reads = random_dispatch(op, all, 5);
    const Sent sent = dispatch_gathered(op, sizes, sources, 1, reads);
    const Array r = random_array(sources * sizes.room * sizes.hidden, 6);
    std::vector<Array> from = {r};
    if (scaled) from.insert(from.end(), {reads[0], reads[1]});
    from.push_back(sent.places);
    std::vector<std::int64_t> writes = {all.tokens * all.hidden};
    if (scaled) writes.push_back(all.choices());
    const std::vector<Array> gradients = gradients_of(rows_op(op, sizes, Phase::InputGrad), from, writes);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto objective = [&](const Array& x) {
        std::vector<Array> there = reads;
        there[i] = x;
        return dot(r, dispatch_gathered(op, sizes, sources, 1, there).rows);
      };
      EXPECT_LT(gradient_error(reads[i], gradients[i], objective), kTolerance) << "input " << i;
    }
  }
}

TEST(HostExpertGradients, SendOnce) {
  for (const std::int64_t capacity : {0, 2})
    for (const bool dealt : {false, true})
      for (const std::int64_t room : {2, 9}) {
        const Routing sizes{.tokens = 9, .experts = 8, .chosen = 3, .hidden = 4, .ranks = 4, .room = room};
        const ops::SendOnce op{.capacity = capacity, .ranks = 4, .dealt = dealt};
        const std::vector<Array> reads = random_dispatch({.scaled = true}, sizes, 5);
        const SentOnce sent = send_once(op, sizes, 2, reads);
        const Array r = random_array(2 * room * sizes.hidden, 6);
        Array s = random_array(2 * room * sizes.chosen, 7);  // gradients of weights of choices that are not in a row are 0
        for (std::int64_t i = 0; i < s.size(); ++i)
          if (sent.experts.at(i) < 0) s.set(i, 0);
        const std::vector<Array> gradients = gradients_of(once_op(op, sizes, 2, Phase::InputGrad), {r, s, sent.places},
                                                          {sizes.tokens * sizes.hidden, sizes.choices()});
        for (std::size_t i = 0; i < 2; ++i) {
          const auto objective = [&](const Array& x) {
            std::vector<Array> there = reads;
            there[i] = x;
            const SentOnce moved = send_once(op, sizes, 2, there);
            return dot(r, moved.rows) + dot(s, moved.weights);
          };
          EXPECT_LT(gradient_error(reads[i], gradients[i], objective), kTolerance) << "input " << i << ", room " << room;
        }
      }
}

TEST(HostExpertGradients, Combine) {
  for (const auto& [from, sizes] : row_cases())
    for (const bool plain : {false, true}) {
      const ops::Combine op{.plain = plain};
      const Array places = dispatch(from, sizes, random_dispatch(from, sizes, 5)).places;
      const Array rows = random_array(sizes.rows(), 7), weights = random_array(sizes.choices(), 8),
                  r = random_array(sizes.tokens * sizes.hidden, 9);
      const std::vector<Array> reads = plain ? std::vector<Array>{rows, places} : std::vector<Array>{rows, places, weights};
      const std::vector<Array> backward = plain ? std::vector<Array>{r, places} : std::vector<Array>{r, rows, places, weights};
      std::vector<std::int64_t> writes = {sizes.rows()};
      if (!plain) writes.push_back(sizes.choices());
      const std::vector<Array> gradients = gradients_of(rows_op(op, sizes, Phase::InputGrad), backward, writes);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const std::size_t input = 2 * i;  // rows, weights
        const auto objective = [&, sizes = sizes](const Array& x) {
          std::vector<Array> there = reads;
          there[input] = x;
          return dot(r, combine(op, sizes, there));
        };
        EXPECT_LT(gradient_error(reads[input], gradients[i], objective), kTolerance)
            << "input " << input << ", room " << sizes.room;
      }
    }
}

// Rows, weights of tokens and of rows that were dropped get no gradient.
TEST(HostExpertGradients, WhatIsDroppedGetsNone) {
  const Routing sizes{.tokens = 2, .experts = 2, .chosen = 1, .hidden = 1, .ranks = 1, .room = 2};
  const Array x({3, 5}, DType::F64), weights({0.5, 0.25}, DType::F64), places({0, -1}, DType::I64), r({7, 11}, DType::F64);
  std::vector<Array> of = outputs_of(rows_op(ops::Dispatch{.capacity = 1, .scaled = true}, sizes, Phase::InputGrad),
                                     {r, x, weights, places}, {2, 2});
  EXPECT_EQ(of[0].values(), (std::vector<double>{3.5, 0}));
  EXPECT_EQ(of[1].values(), (std::vector<double>{21, 0}));
  of = outputs_of(rows_op(ops::Combine{}, sizes, Phase::InputGrad), {r, x, places, weights}, {2, 2});
  EXPECT_EQ(of[0].values(), (std::vector<double>{3.5, 0}));
  EXPECT_EQ(of[1].values(), (std::vector<double>{21, 0}));
}

// ---- a product for each expert -----------------------------------------------------------------------------------------------------

TEST(HostExpertGradients, GroupedProducts) {
  for (const Products& p : all_products()) {
    const std::vector<Array> reads = random_products(p, 3);
    const std::int64_t size = p.rows() * p.parts * p.n;
    Array r = random_array(size, 4);
    for_each_unused(p, reads[1], [&](std::int64_t row) {
      for (std::int64_t n = 0; n < p.parts * p.n; ++n) r.set(row * p.parts * p.n + n, std::nan(""));
    });
    std::vector<Array> backward = {r, reads[0], reads[1]};
    backward.insert(backward.end(), reads.begin() + 2, reads.end());
    std::vector<std::int64_t> sizes;
    for (std::size_t w = 2; w < reads.size(); ++w) sizes.push_back(reads[w].size());
    const Array of_x = gradients_of(p.compute(Phase::InputGrad), backward, {reads[0].size()})[0];
    const std::vector<Array> of_weights = gradients_of(p.compute(Phase::WeightGrad), {r, reads[0], reads[1]}, sizes);

    Array used = r;
    for (std::int64_t i = 0; i < size; ++i)
      if (std::isnan(r.at(i))) used.set(i, 0);
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (i == 1) continue;  // counts
      const auto objective = [&](const Array& x) {
        std::vector<Array> there = reads;
        there[i] = x;
        return dot(used, outputs_of(p.compute(Phase::Forward), there, {size})[0]);
      };
      EXPECT_LT(gradient_error(reads[i], i == 0 ? of_x : of_weights[i - 2], objective), kTolerance) << p.name() << ", " << i;
    }
    for_each_unused(p, reads[1], [&](std::int64_t row) {
      for (std::int64_t k = 0; k < p.k; ++k) EXPECT_EQ(of_x.at(row * p.k + k), 0) << p.name();
    });
  }
}

}  // namespace
}  // namespace foreshard::host_experts_gradient_test
