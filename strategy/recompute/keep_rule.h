// What a layer keeps between its forward and its backward, and what the backward redoes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/op_graph.h"

namespace foreshard {

struct KeepRule {
  std::vector<int> same_as = {};  // [value]: itself, or the value that an identity communication passes on under a new name
  std::vector<char> stored = {};  // [value]: lives from forward to backward
  std::vector<char> redone = {};  // [operator]: runs again in the backward
  std::vector<int> run = {};      // [operator]: redone operators with the same number >= 0 run again together; -1: alone
  bool whole_layer = false;       // redone in one go before the layer's backward (full recomputation)
  // [value]: how often the backward reads it: operators that saved it, and redone operators that take it as input
  std::vector<int> backward_uses = {};
  bool operator==(const KeepRule&) const = default;
};

// What of a layer runs again in the backward. Nothing: what the backward reads is stored.
struct Redone {
  bool whole = false;  // the layer's input is stored, its whole forward runs again (Chen et al. 2016; Megatron "full")
  // Or the operators of these modules. Of "attention" the inputs, and what later operators saved, stay stored (Korthikanti et al. 2022,
  // section 5); the outputs of others are dropped and made again on demand. "mlp" takes in the activation.
  std::vector<std::string> modules = {};
  // Whole: without the operators at the layer's end that make nothing the backward reads, as PyTorch's non-reentrant checkpoint does
  // ("early stop").
  bool stops = false;
  bool operator==(const Redone&) const = default;
};

// Operators marked always_recompute are redone under every rule.
KeepRule keep_rule(const LayerGraph& layer, const Redone& redone);

}  // namespace foreshard
