// Every operator of the op graph against finite differences: the gradient kernels in double against the forward kernels.
//
// For random directions d of an operand x, with L = sum(r y) for random r (or the loss itself):
//   (L(x + h d) - L(x - h d)) / 2h = <gradient, d> + O(h^2).   h = 1e-5: the error is near 1e-10 of the larger terms.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/exec/host_graph.h"

namespace foreshard::host_gradient_test {
namespace {

double objective(OperatorRun& run, const std::vector<Array>& r) {
  run.forward();
  if (is_loss(run.op.op)) return run.outputs.back().at(0);
  double sum = 0;
  for (std::size_t o = 0; o < r.size(); ++o)
    for (std::int64_t i = 0; i < r[o].size(); ++i) sum += r[o].at(i) * run.outputs[o].at(i);
  return sum;
}

Array moved(const Array& x, const Array& direction, double h) {
  Array y = x;
  for (std::int64_t i = 0; i < x.size(); ++i) y.set(i, x.at(i) + h * direction.at(i));
  return y;
}

// |difference quotient - <gradient, d>| relative to the sizes of gradient and direction.
double gradient_error(OperatorRun& run, Array& operand, const Array& gradient, const std::vector<Array>& r,
                      std::uint64_t seed) {
  const Array x = operand, d = random_array(x.size(), seed);
  constexpr double h = 1e-5;
  operand = moved(x, d, h);
  const double up = objective(run, r);
  operand = moved(x, d, -h);
  const double down = objective(run, r);
  operand = x;
  objective(run, r);
  double expected = 0, size = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    expected += gradient.at(i) * d.at(i);
    size += gradient.at(i) * gradient.at(i) * d.at(i) * d.at(i);
  }
  return std::abs((up - down) / (2 * h) - expected) / (std::sqrt(size) + 1e-8);
}

void check_operator(const LayerGraph& layer, const Operator& op, const OpArguments& arguments, const std::string& name) {
  OperatorRun run = random_run(layer, op, arguments, 1000);
  run.forward();
  std::vector<Array> r;
  for (std::size_t o = 0; o < op.outputs.size() && !is_loss(op.op); ++o) {
    const bool graded = layer.values[static_cast<std::size_t>(op.outputs[o])].needs_grad;
    r.push_back(graded ? random_array(run.outputs[o].size(), 50 + o) : Array());
  }
  const OperatorRun::Gradients gradients = run.backward(r), onto = run.backward(r, true);
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    if (gradients.inputs[i].size() == 0) continue;
    EXPECT_LT(gradient_error(run, run.inputs[i], gradients.inputs[i], r, 70 + i), 1e-8) << name << ", input " << i;
    EXPECT_LT(relative_error(onto.inputs[i], gradients.inputs[i]), 1e-12) << name << ", added to input " << i;
  }
  EXPECT_EQ(gradients.weights.size(), run.weights.size()) << name;
  for (std::size_t w = 0; w < gradients.weights.size(); ++w) {
    EXPECT_LT(gradient_error(run, run.weights[w], gradients.weights[w], r, 90 + w), 1e-8) << name << ", weight " << w;
    EXPECT_LT(relative_error(onto.weights[w], gradients.weights[w]), 1e-12) << name << ", added to weight " << w;
  }
}

TEST(HostGradients, EveryOperatorAgainstFiniteDifferences) {
  int checked = 0;
  std::set<std::string> seen;
  for (const GraphCase& test : graph_cases(DType::F64)) {
    const OpGraph graph = build_op_graph(test.model, test.sharding);
    const OpArguments arguments = arguments_of(test);
    for (const LayerGraph& layer : graph.kinds)
      for (const Operator& op : layer.operators) {
        if (op.communication) continue;
        check_operator(layer, op, arguments, test.name + ", " + layer.kind + ", " + op.name);
        ++checked;
        seen.insert(word(op.op));
      }
  }
  EXPECT_GT(checked, 100);
  // Every operator that the host runs and that has a gradient; updates, clipping, cast and zero have none. Those of context parallelism:
  // host_context_parallel_test; of experts: host_experts_gradient_test.
  std::set<std::string> all;
  for (std::size_t i = 0; i < operation_words().size(); ++i)
    if (const Operation op = operation_of(i);
        !is_of_update(op) &&
        !is<ops::Cast, ops::Encode, ops::Decode, ops::MergeAttention, ops::HeadParts, ops::TokenScores, ops::KeepTokens,
            ops::TakeRows, ops::PutRows, ops::Route, ops::Dispatch, ops::SendOnce, ops::Combine, ops::GroupedMatMul>(op))
      all.insert(word(op));
  EXPECT_EQ(seen, all);
}

}  // namespace
}  // namespace foreshard::host_gradient_test
