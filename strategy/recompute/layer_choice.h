// One of several strategies for every layer of a chain (sharded or whole parameters, kept or recomputed activations, ...), so that
// all fit together and the sum of times is least: docs/search.md, "A strategy per layer". Times in seconds, sizes in bytes.
#pragma once

#include <vector>

namespace foreshard {

struct LayerOption {
  double seconds = 0;  // infinite: this layer cannot have this strategy
  double bytes = 0;
  bool operator==(const LayerOption&) const = default;
};

struct LayerChoiceJob {
  std::vector<std::vector<LayerOption>> layers = {};  // [layer][strategy], every layer with as many
  std::vector<std::vector<double>> switching = {};    // [of a layer][of the next]: seconds; empty: free
  double memory = 0;                                  // bytes of all layers together
  bool operator==(const LayerChoiceJob&) const = default;
};

struct LayerChoice {
  std::vector<int> strategies = {};  // [layer]; empty: nothing fits
  double seconds = 0, bytes = 0;
  bool operator==(const LayerChoice&) const = default;
};

// Time and memory of an assignment by the job's numbers.
LayerChoice layer_choice(const LayerChoiceJob& job, std::vector<int> strategies);

// Every trade: no other assignment within the memory is both as fast and as small. Fastest first; exact. Partial assignments are
// dropped when another one with the same last strategy is as fast and as small, or when the rest has no room.
std::vector<LayerChoice> layer_choice_front(const LayerChoiceJob& job);

// The fastest within the memory: the first of the front.
LayerChoice layer_choice_exact(const LayerChoiceJob& job);

// The knapsack on a grid of `cells` cells (Viterbi over the layers, with the cells that are used up): each layer's bytes are rounded
// up to cells, so the answer never needs more than the memory. With n layers and cells of c bytes it is as fast as the optimum for
// memory - n c, or faster: rounding adds less than c per layer. O(layers cells strategies^2).
LayerChoice layer_choice_on_grid(const LayerChoiceJob& job, int cells);

}  // namespace foreshard
