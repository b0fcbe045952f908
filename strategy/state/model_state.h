// Where the parameters, gradients and optimizer states of one chunk (the layers of one stage) lie: the unit (bucket) of each
// parameter, and the flat buffers of each unit.
//
//   units in the order in which the backward completes them:   | unit 0: last layers | unit 1 | ... | unit n-1: first layers |
//
// The rows of StatePolicy say which parameters make a unit, and which of its buffers are sharded over ranks ("cut") or offloaded to host
// memory or a drive ("away").
#pragma once

#include <cstdint>
#include <vector>

#include "strategy/program/lowering.h"

namespace foreshard {

struct ParameterPlace {
  int unit = 0;
  std::int64_t element = 0;   // index of its first element in the unit
  std::int64_t elements = 0;  // of the parameter on this rank, before ZeRO shards it
};

struct StateUnit {
  std::int64_t elements = 0;  // on this rank before ZeRO shards it, padded to a multiple of the sharding group's ranks
  std::int64_t used = 0;      // elements without the padding
  int row = 0;                // index into the rows of StatePolicy
  bool states_away = false;   // the optimizer states are offloaded
  bool borrowed = false;      // another chunk of the rank owns it: the embedding that this chunk's head is tied to
  bool frozen = false;        // only read: it has a value, but no gradient and no states, and is not updated
  int last_layer = 0;         // chunk-local layer whose backward completes its gradients
  BufferId value = {}, gradient = {}, master = {}, momentum = {}, variance = {};  // invalid: the unit has none
  // The buffer and slot that the backward writes where `gradient` is sharded, offloaded or not kept. Such units use the slots of one shared
  // buffer in turn (a ring); a standalone unit has a buffer of its own.
  BufferId full_gradient = {};
  int full_gradient_slot = 0;
  bool standalone = false;

  bool updated() const { return !borrowed && !frozen; }
};

struct ChunkState {
  std::vector<std::vector<ParameterPlace>> places = {};  // [chunk-local layer][parameter of its kind]
  std::vector<StateUnit> units = {};
  std::vector<std::vector<int>> units_of_layer = {};  // distinct units that a layer's parameters lie in
};

// Distributes the parameters of layers [first, last) of the op graph over units and appends the buffers of the units to `role`.
ChunkState lay_out_state(Lowering& lowering, Role& role, int chunk, int first, int last);

}  // namespace foreshard
