// Which activations a layer keeps between its forward and its backward, and which operators the backward recomputes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/op_graph.h"

namespace foreshard {

struct KeepRule {
  // [value]: itself, unless it is the output of a communication that does nothing in the forward: then that communication's input.
  std::vector<int> same_as = {};
  std::vector<char> stored = {};  // [value]: kept from the forward to the backward
  std::vector<char> redone = {};  // [operator]: recomputed in the backward
  std::vector<int> run = {};      // [operator]: operators with the same number >= 0 are recomputed together; -1: by itself
  bool whole_layer = false;       // all of it is recomputed before the layer's backward begins (full recomputation)
  // [value]: how many times the backward reads it: once for each operator that saved it and each recomputed operator that reads it.
  std::vector<int> backward_uses = {};
  bool operator==(const KeepRule&) const = default;
};

// Which part of a layer's forward the backward recomputes. By default nothing: all that the backward reads is stored.
struct Redone {
  bool whole = false;  // the whole forward; only the layer's input is stored (Chen et al. 2016; "full" in Megatron)
  // Or the operators of these modules. For "attention", its inputs and those of its outputs that later operators save stay stored
  // (selective recomputation, Korthikanti et al. 2022, section 5). The outputs of other modules are dropped, and recomputed when the
  // backward reads them. "mlp" includes the activation function.
  std::vector<std::string> modules = {};
  // With `whole`: leaves out the operators at the end of the layer whose results the backward does not read, as PyTorch's non-reentrant
  // checkpoint does ("early stop").
  bool stops = false;
  bool operator==(const Redone&) const = default;
};

// Operators marked always_recompute are recomputed under every rule.
KeepRule keep_rule(const LayerGraph& layer, const Redone& redone);

}  // namespace foreshard
