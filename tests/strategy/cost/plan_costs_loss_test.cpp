// What costs of plans depend on how a framework cuts the loss and the products around a gated activation over its tensor-parallel ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "core/cluster_file/cluster_file.h"
#include "core/network/network.h"
#include "strategy/cost/expert_issue.h"
#include "strategy/cost/plan_costs.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::plan_costs_loss_test {
namespace {

// A loss of nine kernels has nine, whether one rank has the whole vocabulary or several share it and sum between three pieces, of which
// only the second has a backward. A fused one is a kernel for each piece.
TEST(PlanCosts, PiecesOfALossHaveTheKernelsOfOne) {
  using Piece = ops::CrossEntropy::Piece;
  const auto kernels = [](double of_loss, Piece piece, Phase phase = Phase::Forward) {
    const FrameworkPreset preset = {.styles = {.cross_entropy = {.kernels = of_loss}}};
    return issued_kernels(preset, {.op = ops::CrossEntropy{.piece = piece}, .phase = phase});
  };
  for (const Phase phase : {Phase::Forward, Phase::Recompute}) {
    EXPECT_EQ(kernels(9, Piece::Whole, phase), 9);
    EXPECT_EQ(kernels(9, Piece::Max, phase) + kernels(9, Piece::Exp, phase) + kernels(9, Piece::Loss, phase), 9);
  }
  EXPECT_EQ(kernels(9, Piece::Exp, Phase::InputGrad), kernels(9, Piece::Whole, Phase::InputGrad));
  for (const Piece piece : {Piece::Whole, Piece::Max, Piece::Exp, Piece::Loss}) EXPECT_EQ(kernels(1, piece), 1);
}

// Eight tensor-parallel ranks that gather the logits each compute the loss of all eight parts: eight times the time of the kernels that make
// the exponentials. The gather comes before the sum of the maxima: as long as seven eighths of the logits take over NVLink, and four times
// the logits in copies. Llama-2 7B: 4096 tokens, 32000 columns, 262 MB; 229 MB at most at 300 GB/s, 0.76 ms, and 1.05 GB of copies at
// 2 TB/s, 0.5 ms.
TEST(PlanCosts, GatheredLogitsAreAWholeLossOnEveryRank) {
  const Cluster cluster = load_cluster("dgx-a100");
  Lowered job = lowered("llama-2-7b", "dgx-a100", {.dp = 1, .tp = 8, .batch = {.micro = 1, .global = 1}});
  const auto busy = [&](bool gathers, const char* name) {
    cost_plan(job.plan, cluster, {.messages = {.gathers_logits = gathers}});
    double seconds = 0;
    for (std::size_t s = 0; s < job.plan.segments.size(); ++s)
      for (std::size_t i = 0; i < job.plan.segments[s].instructions.size(); ++i)
        if (job.plan.segments[s].name.starts_with("forward") && job.plan.segments[s].instructions[i].name == name)
          seconds = to_seconds(job.plan.costs[0].by_segment[s][i].busy).value;
    return seconds;
  };
  const double launch = Network(cluster).gpu({0}).launch_overhead.value;
  EXPECT_NEAR((busy(true, "loss_exp") - launch) / (busy(false, "loss_exp") - launch), 8, 0.05);
  const double gather = busy(true, "loss_max_reduce") - busy(false, "loss_max_reduce");
  EXPECT_GT(gather, 0.76e-3 + 0.5e-3);
  EXPECT_LT(gather, 2 * (0.76e-3 + 0.5e-3));
  EXPECT_EQ(busy(true, "loss_sum_reduce"), busy(false, "loss_sum_reduce"));
}

// Gate and up that sum the gradient of their input one by one take twice the time of the sum in each of 32 layers, that of the attention and
// GPT's layers, whose activation is not gated, the same.
TEST(PlanCosts, ProductsBeforeAGatedActivationSumOneByOne) {
  const Cluster cluster = load_cluster("dgx-a100");
  const auto factors = [&](const char* model) {
    Lowered job = lowered(model, "dgx-a100", {.dp = 1, .tp = 8, .batch = {.micro = 1, .global = 1}});
    const auto sums = [&](bool each) {
      cost_plan(job.plan, cluster, {.messages = {.sums_each_product = each}});
      std::vector<double> wire;
      for (std::size_t s = 0; s < job.plan.segments.size(); ++s)
        for (std::size_t i = 0; i < job.plan.segments[s].instructions.size(); ++i)
          if (job.plan.segments[s].name.starts_with("backward") &&
              std::holds_alternative<Collective>(job.plan.segments[s].instructions[i].what))
            wire.push_back(job.plan.costs[0].by_segment[s][i].wire_factor);
      return wire;
    };
    const std::vector<double> one = sums(false), each = sums(true);
    std::map<double, int> times;
    for (std::size_t i = 0; i < one.size(); ++i)
      if (one[i] > 0) ++times[std::round(each[i] / one[i])];
    return times;
  };
  EXPECT_EQ(factors("llama-2-7b")[2], 32);
  EXPECT_GE(factors("llama-2-7b")[1], 32);
  EXPECT_EQ(factors("megatron-1.7b")[2], 0);
}

}  // namespace
}  // namespace foreshard::plan_costs_loss_test
