// Activations at home elsewhere than on the device, between their forward and their backward, as rows of ActivationPolicy say.
// Internal to strategy/.
//
//   compute    | F0 | F1 | F2 | ... | B2 | B1 | B0 |
//   out             | f0 | f1 | ...                       f: of a layer's values, when its forward has read them for the last time
//   in                              | f1 | f0 |           one layer ahead of its backward
//
// On the device all layers of a kind share two places for each value; the inputs of layers, which two layers know, share three.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "strategy/lower/chunk_values.h"
#include "strategy/program/segment_builder.h"

namespace foreshard {

class ActivationMoves {
 public:
  ActivationMoves(const ChunkFrame& frame, ChunkValues& values) : frame_(frame), values_(values) {}
  void add_events();  // after the values have their homes

  void begin();  // a segment

  // Before `run` writes a value in its forward: its place may still be on its way out.
  void before_write(Instruction& run, int layer, int value);
  bool is_away(int layer, int value) const {
    return values_.layer(layer).away[values_.layer(layer).real(value)].buffer.valid();
  }
  // The forward has read it for the last time: out it goes.
  void send(SegmentBuilder& out, int layer, int value);

  // All that the backward of the layer reads; nothing for -1. It waits for the newest copy out of the same place, and so for its own.
  void fetch(SegmentBuilder& out, int layer);
  // The backward has read it for the last time.
  void release(SegmentBuilder& out, const Block& block) const;

 private:
  EventUse free(const Block& block) const { return {free_.at(block.buffer.value), block.slot}; }
  bool first_here(const Block& block);

  ChunkFrame frame_;
  ChunkValues& values_;
  std::map<std::int32_t, EventId> free_ = {};                    // [buffer of places]: by slot
  std::vector<std::pair<std::int32_t, std::int32_t>> met_ = {};  // places that this segment has used
};

}  // namespace foreshard
