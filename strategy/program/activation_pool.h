// Activation buffers that the chunks of one rank share. Internal to strategy/.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "strategy/program/lowering.h"

namespace foreshard {

// Activation buffers that the chunks of one role share where they have equal layers. They need fewer slots than the chunks' own buffers
// would, because the chunks do not reach their maxima of micro-batches in flight at one time (interleaved 1F1B).
struct ActivationPool {
  // [chunk][counted layer of the chunk]: its place in the pool, a set of buffers that one layer of every chunk shares; -1: not every chunk
  // has such a layer. Empty: nothing is shared.
  std::vector<std::vector<int>> places = {};
  int slots = 1;                                                // most micro-batches in flight over all chunks
  int early = 1;                                                // most between their forward and their input gradients
  int deferred = 1;                                             // most between their input gradients and their weight gradients
  std::map<std::tuple<int, int, bool>, BufferId> buffers = {};  // (place, value, early); value below 0: a deferred one
  std::vector<std::pair<BufferId, int>> deferred_buffers =
      {};  // made while segments are built: buffer and its chunk, -1: pooled

  int place(int chunk, int counted) const {
    if (places.empty() || counted < 0) return -1;
    return places[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(counted)];
  }
};

// For chunks that hold these stages: the nth layer with the same values and the same recomputation has the same place in every chunk.
std::vector<std::vector<int>> pool_places(const Lowering& lowering, const std::vector<int>& stages);

}  // namespace foreshard
