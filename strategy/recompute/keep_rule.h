// What a layer keeps between its forward and its backward, and what the backward redoes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/op_graph.h"
#include "core/strategy/strategy.h"

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

// none: store what the backward reads. full: store the layer's input, run the whole forward again (Chen et al. 2016; Megatron
// "full"). selective: run the operators of module "attention" again, their inputs and what later operators saved stay stored
// (Korthikanti et al. 2022, section 5). modules: the outputs of the named modules are dropped and made again on demand.
// Operators marked always_recompute are redone under every rule.
// `stops`: full recomputation leaves out the operators at the layer's end that make nothing the backward reads, as PyTorch's
// non-reentrant checkpoint does ("early stop").
KeepRule keep_rule(const LayerGraph& layer, const Recompute& recompute, bool in_full_range, bool stops = false);

// The ways in which the layers of a strategy keep values: 0 for those that do not count, or that `full` leaves out; then what is
// named, each once (recompute_layers.h says which layer has which).
struct KeepForm {
  Recompute recompute = {};
  bool full = false;
  bool operator==(const KeepForm&) const = default;
};
std::vector<KeepForm> keep_forms(const Recompute& recompute);
std::size_t form_of(const std::vector<KeepForm>& forms, const LayerRecompute& layer);  // of Each

}  // namespace foreshard
