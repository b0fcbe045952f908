// What the builder of a chunk's backward keeps track of while it builds a segment. Internal to strategy/.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

struct Deferred {         // a weight gradient that the segment of input gradients leaves to the segment of weight gradients
  int layer = 0, op = 0;  // layer of the chunk, operator of the layer
  std::vector<int> gradients = {};  // gradients of the operator's outputs: indices into BackwardState::held
};
struct LayerBackwardEnd {  // a layer at the end of its input gradients: the members of BackwardState of the same names
  std::vector<char> present = {}, redone = {};
  std::vector<Block> where = {};
  std::vector<int> uses = {};
  bool owns_input = false;  // the layer's weight gradients read its input last, so they release it, not the layer before
};
struct BackwardState {
  struct Held {  // the block of a gradient of an activation
    Block block = {};
    int pending = 0;  // values whose gradient lies here, plus deferred weight gradients that will read it; 0: released
  };
  std::vector<Held> held = {};
  std::vector<int> gradient = {};                                 // [value of the layer]: index into held, -1 none
  std::vector<char> present = {};                                 // [value]: whether it is on the device and readable
  std::vector<Block> where = {};                                  // [value]: the block it lies in
  std::vector<int> uses = {};                                     // [value]: reads still to come in the backward
  std::vector<char> redone = {};                                  // [operator]: whether it has been recomputed
  std::vector<char> opened = {};                                  // [unit]: this segment has acquired the place of its gradients
  std::vector<char> taken = {};  // [unit]: this segment has waited for the update that takes its gradients
  std::vector<std::pair<int, std::int64_t>> written_places = {};  // (unit, element) with written gradients: finds tied ones
  int border = -1;  // index into held: gradient of the output of the layer whose backward comes next; -1 none
  Work half = Work::B;
  std::vector<Deferred> deferred = {};      // in the order in which the segment of weight gradients computes them
  std::vector<LayerBackwardEnd> left = {};  // [layer]

  const Block& block_of(int held_at) const { return held[static_cast<std::size_t>(held_at)].block; }
};

}  // namespace foreshard
