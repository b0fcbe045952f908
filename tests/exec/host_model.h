// A model on one rank, straight from its op graph: loss and gradients without a plan. An oracle for the executor.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/exec/host_graph.h"

namespace foreshard {

struct ModelRun {
  OpGraph graph = {};
  OpArguments arguments = {};                                    // `layer` is set per layer
  std::map<std::string, Array> parameters = {}, gradients = {};  // by full name; tied tensors once

  // Loss of the micro-batch that the arguments name.
  double forward();
  // After forward: fills `gradients`.
  void backward();

  std::vector<std::vector<OperatorRun>> runs = {};  // [layer][operator], of the last forward
};

ModelRun make_model_run(const Model& model, const Sharding& sharding, const OpArguments& arguments, std::uint64_t seed);

}  // namespace foreshard
