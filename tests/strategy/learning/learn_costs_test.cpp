// Learning from runs: closed forms, a slow direct solution beside the fit, machines whose factors are known, and what it does to
// the costs of a plan.
#include "strategy/learning/learn_costs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "core/profile/machine_profile.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/cost/plan_parts.h"
#include "strategy/estimate/estimate.h"
#include "strategy/learning/cholesky.h"
#include "strategy/learning/part_shares.h"
#include "strategy/tune/tune.h"

namespace foreshard::learn_costs_test {
namespace {

// x with L^T x = b.
std::vector<double> solve_upper(const SquareMatrix& lower, std::vector<double> b) {
  for (std::size_t i = lower.n; i-- > 0;) {
    for (std::size_t k = i + 1; k < lower.n; ++k) b[i] -= lower.at(k, i) * b[k];
    b[i] /= lower.at(i, i);
  }
  return b;
}

PartShape layer(double rows, double tp) { return {CostPart::Layer, {"megatron"}, {rows, tp}}; }
const PartShape kUpdate{CostPart::Update, {"megatron"}, {}};
const PartShape kTransfer{CostPart::Transfer, {"megatron"}, {}};

TEST(Cholesky, FactorsAndSolves) {
  std::mt19937 dice(1);
  std::normal_distribution<double> normal;
  for (std::size_t n = 1; n <= 12; ++n) {
    SquareMatrix root(n);
    for (double& value : root.values) value = normal(dice);
    SquareMatrix a = product(root, transposed(root));
    for (std::size_t i = 0; i < n; ++i) a.at(i, i) += 1;
    const auto lower = cholesky(a);
    ASSERT_TRUE(lower);
    const SquareMatrix again = product(*lower, transposed(*lower));
    for (std::size_t i = 0; i < a.values.size(); ++i) EXPECT_NEAR(again.values[i], a.values[i], 1e-10);
    std::vector<double> b(n);
    for (double& value : b) value = normal(dice);
    const std::vector<double> back = product(a, solve_upper(*lower, solve_lower(*lower, b)));
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(back[i], b[i], 1e-9);
  }
  SquareMatrix singular(2);
  singular.values = {1, 1, 1, 1 - 1e-9};
  EXPECT_FALSE(cholesky(singular));
}

// Two doublings and one other word apart: 2 + 2 = 4; with a reach of 2 that leaves e^-2 of compute^2. Another part: the machine's share.
TEST(LearnedFactors, AlikeIsWhatIsNear) {
  const LearnedScales scales{.machine = 0.1, .compute = 0.3, .communication = 0.5, .reach = 2};
  PartShape other = layer(12, 2);
  other.words = {"nemo"};
  EXPECT_DOUBLE_EQ(distance(layer(10, 2), other), 4);
  EXPECT_DOUBLE_EQ(prior_covariance(scales, layer(10, 2), other), 0.01 + 0.09 * std::exp(-2));
  EXPECT_DOUBLE_EQ(prior_covariance(scales, layer(10, 2), kUpdate), 0.01);
  EXPECT_DOUBLE_EQ(prior_covariance(scales, kTransfer, kTransfer), 0.01 + 0.25);
}

TEST(LearnCosts, NothingToLearnFrom) {
  EXPECT_TRUE(learn_costs({}).shapes.empty());
  EXPECT_TRUE(learn_costs({{.shares = {{layer(10, 0), 1e-6}}, .ratio = 2}}).shapes.empty());
  const LearnedCosts none = learn_costs({});
  EXPECT_DOUBLE_EQ(LearnedFactors(none).factor(layer(10, 0)), 1);
}

// One run, one part that is all of it: with k = machine^2 + compute^2 and s = noise^2, ln factor = k / (k + s) ln ratio, and another run
// has the variance k - k^2 / (k + s) + s.
TEST(LearnCosts, OneRunIsTheTextbookFormula) {
  const LearnedCosts learned = learn_costs({{.shares = {{layer(10, 0), 1}}, .ratio = 1.2}});
  const LearnedScales& scales = learned.scales;
  const double k = scales.machine * scales.machine + scales.compute * scales.compute, s = scales.noise * scales.noise;
  const LearnedFactors factors(learned);
  EXPECT_NEAR(std::log(factors.factor(layer(10, 0))), k / (k + s) * std::log(1.2), 1e-7);
  EXPECT_NEAR(factors.spread({{layer(10, 0), 1}}), std::sqrt(k - k * k / (k + s) + s), 1e-7);
  EXPECT_EQ(factors.runs(layer(10, 0)), 1);
  EXPECT_EQ(factors.runs(layer(11, 0)), 0);
  EXPECT_TRUE(factors.knows("megatron"));
  EXPECT_FALSE(factors.knows("nemo"));
}

// (K + s) x = y by Gauss.
std::vector<double> solved(std::vector<std::vector<double>> a, std::vector<double> y) {
  const std::size_t n = y.size();
  for (std::size_t c = 0; c < n; ++c)
    for (std::size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double factor = a[r][c] / a[c][c];
      for (std::size_t k = c; k < n; ++k) a[r][k] -= factor * a[c][k];
      y[r] -= factor * y[c];
    }
  for (std::size_t c = 0; c < n; ++c) y[c] /= a[c][c];
  return y;
}

// Runs that are one part each are linear in ln factor: the answer for any shape, seen or not, is that of a system with an equation
// per run, solved the slow way with the scales that were found.
TEST(LearnCosts, EqualsTheSystemWithAnEquationPerRun) {
  std::mt19937 dice(2);
  std::normal_distribution<double> normal;
  std::vector<LearnedRun> runs;
  for (int i = 0; i < 20; ++i)
    runs.push_back({.shares = {{layer(10 + i % 4, i % 3), 1}}, .ratio = std::exp(0.2 * (i % 4) + 0.02 * normal(dice))});
  const LearnedCosts learned = learn_costs(runs);
  std::vector<std::vector<double>> k(runs.size(), std::vector<double>(runs.size()));
  std::vector<double> y;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < runs.size(); ++j)
      k[i][j] = prior_covariance(learned.scales, runs[i].shares[0].first, runs[j].shares[0].first) +
                (i == j ? learned.scales.noise * learned.scales.noise : 0);
    y.push_back(std::log(runs[i].ratio));
  }
  const std::vector<double> x = solved(k, y);
  for (const PartShape& shape : {layer(11, 1), layer(13, 2), layer(12.5, 0), layer(20, 5), kUpdate}) {
    std::vector<double> with;
    double mean = 0, variance = prior_covariance(learned.scales, shape, shape) + learned.scales.noise * learned.scales.noise;
    for (const LearnedRun& run : runs) with.push_back(prior_covariance(learned.scales, shape, run.shares[0].first));
    const std::vector<double> explained = solved(k, with);
    for (std::size_t i = 0; i < runs.size(); ++i) mean += with[i] * x[i], variance -= with[i] * explained[i];
    EXPECT_NEAR(std::log(LearnedFactors(learned).factor(shape)), mean, 2e-5);
    EXPECT_NEAR(LearnedFactors(learned).spread({{shape, 1}}), std::sqrt(variance), 2e-5);
  }
}

// A machine whose factors are known: 12 layers' shapes, the optimizer, transfers.
class Machine {
 public:
  Machine(int seed, double spread, double noise) : dice_(static_cast<unsigned>(seed)), noise_(noise) {
    for (double& factor : layers_) factor = std::exp(spread * normal_(dice_));
    update_ = std::exp(spread * normal_(dice_)), transfer_ = std::exp(spread * normal_(dice_));
  }
  static PartShape shape(int i) { return layer(10 + i / 3, i % 3); }
  double layer_factor(int i) const { return layers_[static_cast<std::size_t>(i)]; }
  double transfer_factor() const { return transfer_; }
  LearnedRun run() {
    const int i = static_cast<int>(dice_() % 12);
    const double update = 0.02 + 0.1 * uniform_(dice_), transfer = 0.05 + 0.2 * uniform_(dice_), rest = 1 - update - transfer;
    const double time = rest * layer_factor(i) + update * update_ + transfer * transfer_;
    return {.shares = {{shape(i), rest}, {kUpdate, update}, {kTransfer, transfer}},
            .ratio = time * std::exp(noise_ * normal_(dice_))};
  }
  std::vector<LearnedRun> runs(int count) {
    std::vector<LearnedRun> all;
    while (static_cast<int>(all.size()) < count) all.push_back(run());
    return all;
  }

 private:
  std::mt19937 dice_;
  std::normal_distribution<double> normal_ = {};
  std::uniform_real_distribution<double> uniform_ = {};
  std::array<double, 12> layers_ = {};
  double update_ = 1, transfer_ = 1, noise_ = 0;
};

struct Errors {
  double before = 0, after = 0;  // mean of |ln(measured / predicted)|
  double inside = 0;             // share of runs within 1.645 deviations
};
Errors errors_of(const LearnedCosts& learned, const std::vector<LearnedRun>& runs) {
  Errors errors;
  const LearnedFactors factors(learned);
  for (const LearnedRun& run : runs) {
    double time = 1;
    for (const auto& [shape, share] : run.shares) time += share * (factors.factor(shape) - 1);
    const double off = std::abs(std::log(run.ratio / time)), n = static_cast<double>(runs.size());
    errors.before += std::abs(std::log(run.ratio)) / n, errors.after += off / n;
    errors.inside += (off < 1.645 * factors.spread(run.shares) ? 1 : 0) / n;
  }
  return errors;
}

// 200 runs with a noise of 1 %: layers are known to some 1 % / sqrt(200 / 12) = 0.25 % but for what the transfers, 15 % of a run, take from
// them; factors are up to e^0.5 off before. Runs that were not learned from are off by their noise, of which the mean is 0.8 %.
TEST(LearnCosts, AKnownMachineIsRecovered) {
  Machine machine(3, 0.25, 0.01);
  const LearnedCosts learned = learn_costs(machine.runs(200));
  const LearnedFactors factors(learned);
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(factors.factor(Machine::shape(i)) / machine.layer_factor(i), 1, 0.03) << i;
  EXPECT_NEAR(factors.factor(kTransfer) / machine.transfer_factor(), 1, 0.1);
  EXPECT_NEAR(learned.scales.noise, 0.01, 0.003);
  const Errors others = errors_of(learned, machine.runs(300));
  EXPECT_GT(others.before, 0.1);
  EXPECT_LT(others.after, 0.011);
  EXPECT_GT(others.inside, 0.84);
  EXPECT_LT(others.inside, 0.96);
}

// Nothing but noise of 5 %: nothing is learned. Of 60 runs a mean is known to 0.6 %, so 2 % is three of that.
TEST(LearnCosts, NoiseTeachesNothing) {
  for (int seed = 10; seed < 14; ++seed) {
    Machine machine(seed, 0, 0.05);
    const LearnedCosts learned = learn_costs(machine.runs(60));
    for (int i = 0; i < 12; ++i) EXPECT_NEAR(LearnedFactors(learned).factor(Machine::shape(i)), 1, 0.04) << seed;
    const Errors others = errors_of(learned, machine.runs(300));
    EXPECT_LT(others.after, 1.04 * others.before) << seed;
  }
}

// Factors that grow with the rows: the shape between two that ran is like both, one far away only as all are alike.
TEST(LearnCosts, UnseenShapesTakeAfterTheirNeighbours) {
  std::mt19937 dice(5);
  std::normal_distribution<double> normal;
  std::vector<LearnedRun> runs;
  const auto truth = [](double rows) { return std::exp(0.1 * (rows - 8)); };
  for (int i = 0; i < 60; ++i) {
    const double rows = 8 + i % 6 + (i % 6 > 2 ? 1 : 0);  // 8 9 10, 12 13 14
    runs.push_back({.shares = {{layer(rows, 0), 0.9}}, .ratio = 0.1 + 0.9 * truth(rows) * std::exp(0.01 * normal(dice))});
  }
  const LearnedCosts learned = learn_costs(runs);
  const LearnedFactors factors(learned);
  EXPECT_NEAR(factors.factor(layer(11, 0)), truth(11), 0.06);  // 1.35; unlearned 1
  EXPECT_GT(factors.spread({{layer(11, 0), 1}}), factors.spread({{layer(10, 0), 1}}));
  EXPECT_GT(factors.spread({{layer(30, 9), 1}}), factors.spread({{layer(11, 0), 1}}));
}

Lowered lowered_with(const MachineProfile* profile) {
  const Model model = load_model("gpt2-124m");
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy s;
  s.tp = 2, s.pp = 2, s.dp = 2, s.batch.micro = 1, s.batch.global = 8, s.batch.seq = 1024;
  return std::get<Lowered>(tuned_plan(model, cluster, s, {.ignore_memory = true, .profile = profile}));
}

MachineProfile profile_of(const LearnedCosts& learned) {
  MachineProfile profile{.hash = "1234", .device = load_cluster("dgx-a100").nodes.front().shape.gpu};
  profile.learned = learned;
  return profile;
}

// Learned from nothing, or from runs that were as predicted: the very same costs.
TEST(LearnedPlan, NothingLearnedChangesNothing) {
  const Lowered plain = lowered_with(nullptr);
  LearnedCosts flat = learn_costs({{.shares = {{layer(10, 0), 1}}, .ratio = 1}});
  for (const LearnedCosts& learned : {LearnedCosts{}, flat}) {
    const MachineProfile profile = profile_of(learned);
    Lowered same = lowered_with(&profile);
    EXPECT_EQ(same.plan.costs[0].profile_hash, "1234");
    same.plan.costs[0].profile_hash = "";
    EXPECT_EQ(same.plan, plain.plan);
  }
}

// A profile that knows the layers of this plan to take 1.5 times as long, and nothing about the rest: computes of the layers do, and
// the iteration grows by their share of it.
TEST(LearnedPlan, CostsOfKnownShapesAreScaled) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Lowered plain = lowered_with(nullptr);
  const std::vector<PartShare> shares = part_shares(plain, cluster, framework_preset(plain.strategy.framework));
  PartShape shape;
  double share = 0, all = 0;
  for (const auto& [each, its] : shares) {
    all += its;
    if (each.part == CostPart::Layer) shape = each, share = its;
  }
  EXPECT_GT(share, 0.3);
  EXPECT_NEAR(all, 1, 0.05);  // all that is not in a part are a few latencies
  LearnedCosts learned{.runs = 1, .scales = {.machine = 1e-9, .compute = 1, .reach = 1e-3}};
  learned.shapes = {{shape, 1, std::log(1.5)}};
  learned.doubt = {{0}};
  const MachineProfile profile = profile_of(learned);
  const Lowered slower = lowered_with(&profile);
  int scaled = 0;
  for (std::size_t r = 0; r < plain.plan.roles.size(); ++r)
    for (const Action& action : plain.plan.roles[r].actions) {
      const auto segment = action.segment.index();
      for (std::size_t i = 0; i < plain.plan.segments[segment].instructions.size(); ++i) {
        const Cost before = plain.plan.costs[0].by_segment[segment][i], after = slower.plan.costs[0].by_segment[segment][i];
        const auto part = part_of(plain.plan, plain.plan.roles[r], plain.plan.segments[segment].instructions[i]);
        const double factor = part == CostPart::Layer ? 1.5 : 1;
        scaled += part == CostPart::Layer ? 1 : 0;
        EXPECT_NEAR(static_cast<double>(after.busy.value), factor * static_cast<double>(before.busy.value), factor - 1);
        EXPECT_EQ(after.wire_factor, factor * before.wire_factor);
      }
    }
  EXPECT_GT(scaled, 100);
  const double before = refine(plain, cluster).time.value, after = refine(slower, cluster).time.value;
  EXPECT_NEAR(after / before, 1 + 0.5 * share, 0.02);
}

}  // namespace
}  // namespace foreshard::learn_costs_test
