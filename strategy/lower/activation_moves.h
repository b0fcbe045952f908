// Offloads activations: copies those whose home is the host or a drive (as rows of ActivationPolicy say) out after their forward and back
// before their backward. Internal to strategy/.
//
//   compute    | F0 | F1 | F2 | ... | B2 | B1 | B0 |
//   out             | f0 | f1 | ...                       f0: the values of layer 0, after the last read of its forward
//   in                              | f1 | f0 |           one layer ahead of the backward that reads them
//
// On the device, each value that is offloaded passes through a few places (slots of a buffer): two for each value of a kind of layer,
// shared by all layers of that kind, and three for the inputs of layers, shared by all layers (an input is the output of the layer before,
// so two layers use it). A value with a ValueMove has one block in the forward and another in the backward; the move says when each is
// acquired and released.
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
  void add_events();  // adds to the role one event per place, "place is free"; call it once the values have their homes

  void begin();  // call at the start of every segment: forgets which places the segment has used

  // `run` writes the value in its forward: adds the wait until the last copy out of the value's place is done. Only the first use of a
  // place in a segment needs it.
  void before_write(Instruction& run, int layer, int value);
  // Whether the value is offloaded between its forward and its backward.
  bool is_away(int layer, int value) const {
    return values_.layer(layer).away[values_.layer(layer).real(value)].buffer.valid();
  }
  // Emits the copy of the value out of the device and releases its place. Call it after the last read of the forward.
  void send(SegmentBuilder& out, int layer, int value);

  // Emits the copies to the device of all offloaded values that the backward of the layer reads; nothing for layer -1. The first copy into
  // a place waits for the newest copy out of it: the value's own copy out was that one or an earlier one.
  void fetch(SegmentBuilder& out, int layer);
  // Releases a block after its last read of the backward; if it is a place, records that the place is free.
  void release(SegmentBuilder& out, const Block& block) const;

  // Values that a ValueMove moves. Their blocks are acquired and released by computes only, so the memory planner knows their lifetimes.
  void after_forward(SegmentBuilder& out, int layer,
                     int op);  // waits for copies out that end with this operator, frees their blocks
  void before_backward(SegmentBuilder& out, int layer, int op);  // takes blocks of values that return here, and copies them in
  void after_backward(SegmentBuilder& out);                      // waits for these copies where the move says so

 private:
  // Adds the waits until nobody uses the place any more.
  void wait_until_free(Instruction& run, const Block& place) const;
  EventUse free(const Block& block) const { return {free_.at(block.buffer.value), block.slot}; }
  EventUse left(const Block& block) const { return {left_.at(block.buffer.value), block.slot}; }
  bool first_here(const Block& block);

  ChunkFrame frame_;
  ChunkValues& values_;
  std::map<std::int32_t, EventId> free_ = {};  // [buffer of places]: event with one slot per place
  // Where runs overlap: the same of the copies out alone, and `free_` is of the backwards alone. The newest of both may be of a run that is
  // not begun (before the first, after the last); the newest of each then still orders the others.
  std::map<std::int32_t, EventId> left_ = {};
  std::vector<std::pair<std::int32_t, std::int32_t>> met_ = {};  // places (buffer, slot) that this segment has used
  int awaited_ = -1;                                             // the copy of this segment that after_backward waits for
};

}  // namespace foreshard
