// Runs an operator of an op graph with the operand order that docs/host-kernels.md promises, forward and backward.
#pragma once

#include <string>
#include <vector>

#include "core/graph/op_graph.h"
#include "tests/exec/host_arrays.h"

namespace foreshard {

Array array_of(const Value& value);  // NaN, in the value's type
Array parameter_array(const Parameter& parameter, DType dtype, std::uint64_t seed);

// One operator with operands of its own.
struct OperatorRun {
  const LayerGraph& layer;
  const Operator& op;
  OpArguments arguments = {};
  std::vector<Array> inputs = {}, weights = {}, outputs = {};

  void forward();
  // Gradients of inputs and weights, from those of the outputs (empty arrays: none). With `onto`, the kernels add to what the
  // arrays hold (1 everywhere), which is taken off again.
  struct Gradients {
    std::vector<Array> inputs = {}, weights = {};  // an input that gets none: empty
  };
  Gradients backward(const std::vector<Array>& output_gradients, bool onto = false);
};

OperatorRun random_run(const LayerGraph& layer, const Operator& op, const OpArguments& arguments, std::uint64_t seed);

// Small models that use every operator: GPT, Llama, BERT and a CNN, with and without dropout and flash attention.
struct GraphCase {
  std::string name = {};
  Model model = {};
  Sharding sharding = {};
};
std::vector<GraphCase> graph_cases(DType compute);
OpArguments arguments_of(const GraphCase& test);

}  // namespace foreshard
