// Parameters, gradients and optimizer states of one chunk (the layers of one stage): which unit (bucket) of the flat buffers
// each parameter lies in, and the buffers.
//
//   units in the order in which the backward completes them:   | unit 0: last layers | unit 1 | ... | unit n-1: first layers |
//
// ZeRO 0-1 cut the parameters into buckets of Strategy::bucket; ZeRO 2-3 reduce (and gather) layer by layer.
#pragma once

#include <cstdint>
#include <vector>

#include "strategy/lower/lowering.h"

namespace foreshard {

struct ParameterPlace {
  int unit = 0;
  std::int64_t element = 0;   // where it begins in the unit
  std::int64_t elements = 0;  // local
};

struct StateUnit {
  std::int64_t elements = 0;        // local, padded to the sharding group
  std::int64_t used = 0;            // of these, what parameters fill
  bool partial_over_tp = false;     // gradients of replicated parameters under sequence parallelism: summed over tp first
  bool replicated_over_tp = false;  // every tp rank holds the same elements: apart from the others when their norm is needed
  bool tied = false;                // the token embedding or its copy on the last stage
  bool standalone = false;          // ZeRO 2-3: its full gradient has its own buffer, not a place in the ring
  bool borrowed = false;            // another chunk of the rank owns it: the embedding that this chunk's head is tied to
  int last_layer = 0;               // chunk-local layer whose backward completes its gradients
  BufferId value = {}, gradient = {}, master = {}, momentum = {}, variance = {};
  BufferId full_gradient = {};  // ZeRO 2-3: what the backward writes and the reduce-scatter reads
  int full_gradient_slot = 0;
};

struct ChunkState {
  std::vector<std::vector<ParameterPlace>> places = {};  // [chunk-local layer][parameter of its kind]
  std::vector<StateUnit> units = {};
  std::vector<std::vector<int>> units_of_layer = {};  // distinct units that a layer's parameters lie in
};

// Lays out the parameters of layers [first, last) of the op graph and appends their buffers to `role`.
ChunkState lay_out_state(Lowering& lowering, Role& role, int chunk, int first, int last);

}  // namespace foreshard
