// Chooses one of several strategies for each layer of a chain (sharded or whole parameters, kept or recomputed activations, ...), so that
// the sum of times is least and the sum of bytes fits in memory: a knapsack with exactly one choice per layer, with costs for switching
// between layers. Times in seconds, sizes in bytes.
#pragma once

#include <vector>

namespace foreshard {

struct LayerOption {
  double seconds = 0;  // infinite: the layer cannot have this strategy
  double bytes = 0;
  bool operator==(const LayerOption&) const = default;
};

struct LayerChoiceJob {
  // [layer][strategy]; the same number of strategies for every layer (asserted).
  std::vector<std::vector<LayerOption>> layers = {};
  // [strategy of a layer][strategy of the next layer]: seconds of the change between them; empty: 0.
  std::vector<std::vector<double>> switching = {};
  double memory = 0;  // the most bytes of all layers together
  bool operator==(const LayerChoiceJob&) const = default;
};

struct LayerChoice {
  std::vector<int> strategies = {};  // [layer]; empty: no assignment fits, and seconds are infinite
  double seconds = 0, bytes = 0;
  bool operator==(const LayerChoice&) const = default;
};

// The assignment `strategies` with its time and memory.
LayerChoice layer_choice(const LayerChoiceJob& job, std::vector<int> strategies);

// The Pareto front of time and memory among the assignments that fit, fastest first. Exact. Works layer by layer, and drops a partial
// assignment if another one with the same last strategy is as fast and as small, or if the remaining layers would not fit beside it.
std::vector<LayerChoice> layer_choice_front(const LayerChoiceJob& job);

// The fastest assignment that fits: the first of the front.
LayerChoice layer_choice_exact(const LayerChoiceJob& job);

// An approximation by dynamic programming over layers and `cells` equal cells of the memory. Each layer's bytes are rounded up to cells, so
// the answer fits in the memory. With n layers and cells of c bytes it is at least as fast as the optimum for memory - n c, since rounding
// adds less than c per layer. O(layers cells strategies^2).
LayerChoice layer_choice_on_grid(const LayerChoiceJob& job, int cells);

}  // namespace foreshard
