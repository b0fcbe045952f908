// Kernels that add gradients: closed forms, and a layer that is costed with them.
#include "strategy/cost/autograd_cost.h"

#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/plan_costs.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::autograd_cost_test {
namespace {

constexpr std::int64_t kTokens = 1024;
const FrameworkPreset kSums = {.styles = {.sums_gradients = true}}, kAdds = {.adds_gradients = true};

Compute product(Phase phase, bool accumulate, DType type = DType::BF16) {
  return {.op = ops::MatMul{},
          .phase = phase,
          .shapes = {{.dims = {1, kTokens, 5120, 4096}, .dtype = type}},
          .traffic = {1 << 30},
          .accumulate = accumulate};
}

// A fused kernel reads the gradient that is there and writes the sum; autograd writes its own and reads both: two passes more.
TEST(AutogradCost, SumsReadAndWriteOnceMore) {
  Compute norm = {.op = ops::Norm{}, .phase = Phase::Backward, .shapes = {{.dims = {kTokens, 4096}}}, .accumulate = true};
  EXPECT_EQ(summed_bytes(kSums, norm).value, 2 * 2 * kTokens * 4096);
  EXPECT_EQ(summed_bytes({}, norm).value, 0);
  norm.accumulate = false;
  EXPECT_EQ(summed_bytes(kSums, norm).value, 0);
  EXPECT_EQ(summed_bytes(kSums, product(Phase::InputGrad, true)).value, 2 * 2 * kTokens * 4096);
  EXPECT_EQ(summed_bytes(kSums, product(Phase::InputGrad, true, DType::F8)).value, 2 * 2 * kTokens * 4096);
  EXPECT_EQ(summed_bytes(kSums, product(Phase::WeightGrad, true)).value, 0);
}

// PyTorch fills the result before the operator writes it: 5120 columns forward, 4096 of the gradient of the input, none of a weight.
TEST(AutogradCost, AllocatedResultsAreFilled) {
  const FrameworkPreset fills = {.styles = {.fills_results = true}};
  const Compute norm = {.op = ops::Norm{}, .phase = Phase::Forward, .shapes = {{.dims = {kTokens, 4096}}}};
  EXPECT_EQ(filled_bytes(fills, norm).value, 2 * kTokens * 4096);
  EXPECT_EQ(filled_bytes(fills, product(Phase::Forward, false)).value, 2 * kTokens * 5120);
  EXPECT_EQ(filled_bytes(fills, product(Phase::Recompute, false, DType::F8)).value, 2 * kTokens * 5120);
  EXPECT_EQ(filled_bytes(fills, product(Phase::InputGrad, false)).value, 2 * kTokens * 4096);
  EXPECT_EQ(filled_bytes(fills, product(Phase::WeightGrad, true)).value, 0);
  EXPECT_EQ(filled_bytes({}, norm).value, 0);
}

// Python goes through the parameters behind the backward: of a product its weight, of a norm in one kernel its scale, but not its input.
TEST(AutogradCost, GradientsAreAddedOneByOne) {
  FrameworkPreset python = {.host = {.per_part = Seconds{8e-6}, .gradient_loop = {.whole = 1, .shard = 3}}};
  const Instruction weight = {.writes = {{}}}, both = {.writes = {{}, {}}};
  const Compute norm = {.op = ops::Norm{}, .phase = Phase::Backward, .shapes = {{.dims = {kTokens, 4096}}}};
  EXPECT_DOUBLE_EQ(gradient_loop(python, product(Phase::WeightGrad, true), weight, false).value, 8e-6);
  EXPECT_DOUBLE_EQ(gradient_loop(python, product(Phase::WeightGrad, true), weight, true).value, 24e-6);
  EXPECT_DOUBLE_EQ(gradient_loop(python, norm, both, true).value, 24e-6);
  EXPECT_EQ(gradient_loop(python, product(Phase::InputGrad, true), weight, true).value, 0);
  EXPECT_EQ(gradient_loop(python, product(Phase::Forward, false), weight, true).value, 0);
  EXPECT_EQ(gradient_loop({}, product(Phase::WeightGrad, true), weight, true).value, 0);
  const Model model = load_model("gpt2-124m");
  const Cluster cluster = load_cluster("dgx-a100");
  for (const int zero : {0, 1})
    EXPECT_EQ(updates_shards(lowered(model, cluster, {.dp = 4, .batch = {.global = 8}, .zero = {.stage = zero}}).plan.roles[0]),
              zero == 1);
}

// Where the host is the slower one, a backward takes longer by what it issues for the parameters: twelve of each of the twelve layers, and
// those of the ends.
TEST(AutogradCost, TheLoopOverGradientsIsIssuedByTheHost) {
  const Model model = load_model("gpt2-124m");
  const Cluster cluster = load_cluster("dgx-a100");
  Plan plan = lowered(model, cluster, {.dp = 1, .batch = {.micro = 1, .global = 1}}).plan;
  const auto computes = [&](double whole) {
    cost_plan(plan, cluster,
              {.host = {.per_kernel = Seconds{1e-3}, .per_part = Seconds{1e-4}, .gradient_loop = {.whole = whole}}});
    double sum = 0;
    for (std::size_t s = 0; s < plan.segments.size(); ++s)
      for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i)
        if (std::holds_alternative<Compute>(plan.segments[s].instructions[i].what))
          sum += to_seconds(plan.costs[0].by_segment[s][i].busy).value;
    return sum;
  };
  const double parameters = (computes(1) - computes(0)) / 1e-4;
  EXPECT_GE(parameters, 12 * 12);
  EXPECT_LE(parameters, 12 * 12 + 6);
}

// The gradient in 16 bits is read once, the sum read and written: 2 + 2 x 2 bytes, with fp32 sums 2 + 2 x 4. The product writes 2.
TEST(AutogradCost, WeightsAreAddedInTheFormatOfTheSum) {
  const std::int64_t weights = 5120LL * 4096;
  const Compute what = product(Phase::WeightGrad, true);
  const Instruction narrow = {.writes = {{.length = Bytes{2 * weights}}}}, wide = {.writes = {{.length = Bytes{4 * weights}}}};
  EXPECT_EQ(added_bytes(kAdds, what, narrow).value, 6 * weights);
  EXPECT_EQ(added_bytes(kAdds, what, wide).value, 10 * weights);
  EXPECT_EQ(added_bytes(kAdds, what, {}).value, 6 * weights);
  EXPECT_EQ(added_bytes({}, what, wide).value, 0);
  EXPECT_EQ(added_bytes(kAdds, product(Phase::WeightGrad, false), narrow).value, 0);
  EXPECT_EQ(added_bytes(kAdds, product(Phase::InputGrad, true), wide).value, 0);
  EXPECT_EQ(unadded_traffic(what, wide).value, (1 << 30) - 4 * weights);
}

// A sum that is wider than the gradient begins with zeros, to which the first gradient is added like the others. One of the same format is
// the first gradient itself.
TEST(AutogradCost, TheFirstGradientIsAddedToAWiderSum) {
  const std::int64_t weights = 5120LL * 4096;
  const Compute first = product(Phase::WeightGrad, false);
  const Instruction narrow = {.writes = {{.length = Bytes{2 * weights}}}}, wide = {.writes = {{.length = Bytes{4 * weights}}}};
  EXPECT_EQ(added_bytes(kAdds, first, wide).value, 10 * weights);
  EXPECT_EQ(added_bytes(kAdds, first, narrow).value, 0);
  EXPECT_EQ(added_bytes(kAdds, product(Phase::Forward, false), wide).value, 0);
  EXPECT_EQ(unadded_traffic(first, wide).value, 1 << 30);
}

// The gradient of a table has all its rows: 2 bytes of zeros each, and then as other gradients. Its rows of tokens are written as before.
TEST(AutogradCost, TheGradientOfATableIsDense) {
  const std::int64_t table = 4096LL * 32000;
  const auto rows = [](bool accumulate) {
    return Compute{.op = ops::TokenEmbedding{},
                   .phase = Phase::WeightGrad,
                   .shapes = {{.dims = {kTokens, 4096, 32000}, .dtype = DType::BF16}},
                   .traffic = {1 << 20},
                   .accumulate = accumulate};
  };
  const Instruction narrow = {.writes = {{.length = Bytes{2 * table}}}}, wide = {.writes = {{.length = Bytes{4 * table}}}};
  EXPECT_EQ(added_bytes(kAdds, rows(false), wide).value, 12 * table);
  EXPECT_EQ(added_bytes(kAdds, rows(true), wide).value, 12 * table);
  EXPECT_EQ(added_bytes(kAdds, rows(true), narrow).value, 8 * table);
  EXPECT_EQ(added_bytes(kAdds, rows(false), narrow).value, 2 * table);
  EXPECT_EQ(added_bytes({}, rows(false), wide).value, 0);
}

// Both norms of a layer add to the gradient of the residual stream; the final norm is the first to write it.
TEST(AutogradCost, NormsOfLayersAddToTheResidualStream) {
  const Cluster cluster = load_cluster("dgx-a100");
  Plan plan = lowered("llama-2-7b", "dgx-a100", {.dp = 8, .batch = {.micro = 1, .global = 8}}).plan;
  const auto norms = [&](const FrameworkPreset& preset) {
    cost_plan(plan, cluster, preset);
    std::vector<double> times;
    for (std::size_t s = 0; s < plan.segments.size(); ++s)
      for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i)
        if (const auto* what = std::get_if<Compute>(&plan.segments[s].instructions[i].what);
            what && is<ops::Norm>(what->op) && what->phase == Phase::Backward)
          times.push_back(to_seconds(plan.costs[0].by_segment[s][i].busy).value);
    return times;
  };
  const std::vector<double> fused = norms({}), apart = norms(kSums);
  ASSERT_EQ(fused.size(), 65u);
  std::size_t longer = 0;
  for (std::size_t i = 0; i < fused.size(); ++i) longer += apart[i] > 1.4 * fused[i] ? 1 : 0;
  EXPECT_EQ(longer, 64u);
}

}  // namespace
}  // namespace foreshard::autograd_cost_test
