// Parameters, gradients and optimizer states of one chunk (the layers of one stage): which unit (bucket) of the flat buffers
// each parameter lies in, and the buffers.
//
//   units in the order in which the backward completes them:   | unit 0: last layers | unit 1 | ... | unit n-1: first layers |
//
// Which parameters make a unit, and what of it is cut, say the rows of StatePolicy.
#pragma once

#include <cstdint>
#include <vector>

#include "strategy/program/lowering.h"

namespace foreshard {

struct ParameterPlace {
  int unit = 0;
  std::int64_t element = 0;   // where it begins in the unit
  std::int64_t elements = 0;  // local
};

struct StateUnit {
  std::int64_t elements = 0;  // local, padded to the sharding group
  std::int64_t used = 0;      // of these, what parameters fill
  int row = 0;                // of StatePolicy
  bool states_away = false;   // at home elsewhere than on the device
  bool borrowed = false;      // another chunk of the rank owns it: the embedding that this chunk's head is tied to
  int last_layer = 0;         // chunk-local layer whose backward completes its gradients
  BufferId value = {}, gradient = {}, master = {}, momentum = {}, variance = {};
  BufferId full_gradient = {};  // of gradients that are cut or leave: what the backward writes
  int full_gradient_slot = 0;
  bool standalone = false;  // it has a buffer of its own, not a place in the ring
};

struct ChunkState {
  std::vector<std::vector<ParameterPlace>> places = {};  // [chunk-local layer][parameter of its kind]
  std::vector<StateUnit> units = {};
  std::vector<std::vector<int>> units_of_layer = {};  // distinct units that a layer's parameters lie in
};

// Lays out the parameters of layers [first, last) of the op graph and appends their buffers to `role`.
ChunkState lay_out_state(Lowering& lowering, Role& role, int chunk, int first, int last);

}  // namespace foreshard
