// What the backward of a chunk knows while its segment is built. Internal to strategy/.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

struct Deferred {  // a weight gradient that an input-gradient segment left
  int layer = 0, op = 0;
  std::vector<int> gradients = {};  // of the outputs: indices into held
};
struct LayerLeft {  // and the state of a layer then
  std::vector<char> present = {}, redone = {};
  std::vector<Block> where = {};
  std::vector<int> uses = {};
  bool owns_input = false;  // the layer before is done with it
};
struct BackwardState {
  struct Held {
    Block block = {};
    int pending = 0;  // values whose gradient this is
  };
  std::vector<Held> held = {};
  std::vector<int> gradient = {};                                 // [value of the layer]: index into held, -1 none
  std::vector<char> present = {};                                 // [value]: readable now
  std::vector<Block> where = {};                                  // [value]
  std::vector<int> uses = {};                                     // [value]: backward reads to come
  std::vector<char> redone = {};                                  // [operator]
  std::vector<char> written = {};                                 // [unit]: this segment has written (a part of) its gradients
  std::vector<std::pair<int, std::int64_t>> written_places = {};  // (unit, element) of parameters written, to see ties
  int border = -1;  // gradient of the value between the current layer and the one after it
  Work half = Work::B;
  std::vector<Deferred> deferred = {};
  std::vector<LayerLeft> left = {};  // [layer]

  const Block& block_of(int held_at) const { return held[static_cast<std::size_t>(held_at)].block; }
};

}  // namespace foreshard
