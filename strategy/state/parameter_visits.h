// Emits the transfers of parameters that are sharded over ranks or offloaded to host memory or a drive, and the release of the places
// (buffer slots) that they are transferred to. The rule of strategy/residency/parameter_stays.h says when. A visit is the forward or the
// backward of a layer that reads such parameters; visits are numbered in the order of the program, and that number is called a moment.
// Internal to strategy/.
//
//   visit       | layer 0 | layer 1 | layer 2 | ...
//   compute     | F0      | F1      | F2      |
//   transfers    0 1       2         3              a rule that transfers one layer ahead; a visit's end frees the place of its layer
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategy/program/chunk_frame.h"
#include "strategy/program/segment_builder.h"
#include "strategy/state/model_state.h"

namespace foreshard {

inline const std::string kGatheredPlaces = "gathered";  // prefix of the names of the buffers that parameters are transferred to

class ParameterVisits {
 public:
  // Appends places and events to the role. `uses`: the layers of the chunk as one forward and one backward read them, in the order of
  // the program; `first`: the id of the chunk's first layer; `ready`: the event [unit] recorded when the unit is updated.
  ParameterVisits(const ChunkFrame& frame, const ChunkState& state, std::vector<UnitUse> uses, LayerId first, EventId ready);

  void begin(bool backward);  // begins the segment of a forward or of a backward
  // Begins the visit of a chunk-local layer: emits the transfers that are due by then. `waits_for_update`: they wait until their units
  // are updated.
  void start(SegmentBuilder& out, int layer, bool waits_for_update);
  // Ends the visit: releases the places of parameters that leave the device with it.
  void end(SegmentBuilder& out, int layer);
  // Emits the transfers that are to overlap visits that have ended. Call it before other instructions are issued on the same streams, and
  // at the end of a forward or backward.
  void bring_ahead(SegmentBuilder& out, bool waits_for_update);

  bool brings(int layer) const;      // some of the layer's parameters are transferred before they are read
  bool brings_unit(int unit) const;  // the parameters of this unit are
  Block read_block() const;          // the block in which the operators of the current visit read transferred parameters
  // The offset in that block at which the layer's transferred units begin; they lie one after the other.
  Bytes read_from(int layer) const { return from_[static_cast<std::size_t>(layer)]; }

 private:
  struct Size {                       // the places of one size
    BufferId buffer = {}, copy = {};  // a slot per place; `copy`: staging, invalid where operators read the place itself
    EventId free = {}, copy_free = {}, arrived = {};
  };
  const StateRow& row_of(const StateUnit& unit) const {
    return frame_.lowering.tables.state[static_cast<std::size_t>(unit.row)];
  }
  const StateRow& last_row() const { return frame_.lowering.tables.state.back(); }  // rows that are sharded are sharded alike
  std::vector<ParameterUnit> layers() const;
  void lay_units();
  void add_sizes();
  const Stay& stay(int index) const { return residency_.stays[static_cast<std::size_t>(index)]; }
  const Size& size_of_stay(int stay) const;
  BufferId buffer_of_stay(int stay) const;
  int stay_now() const { return stay_of_[static_cast<std::size_t>(now_)]; }
  // It is transferred beside the forward and first read in the backward.
  bool crosses(const Stay& stay) const { return stay.brought < turn_ && stay.first_use >= turn_; }
  Block place_of(int stay) const;
  bool take(const Block& place);  // false: this segment has taken or released the place before
  void bring(SegmentBuilder& out, int stay, bool waits_for_update);
  void bring_layer(SegmentBuilder& out, int stay, int layer, bool waits_for_update);
  void begin_with_moment(Instruction& transfer, int moment) const;  // makes it wait for the end of the visit before
  void release_left(SegmentBuilder& out);                           // the places of stays that end with this moment
  void copy_out(SegmentBuilder& out, int layer);
  Instruction copy_in(const StateUnit& unit, const Use& place) const;

  ChunkFrame frame_;
  const ChunkState& state_;
  std::vector<UnitUse> uses_ = {};  // [moment]: which unit of the residency is read
  LayerUnits units_ = {};
  std::vector<Bytes> from_ = {};  // [layer]: offset in the place of its unit
  LayerId first_ = {};
  EventId ready_ = {}, passed_ = {};  // passed: [0] the last visit of the forward has ended, [1] that of the backward
  int turn_ = 0;                      // the moment of the first visit of the backward
  bool own_moments_ = false;          // a transfer begins at its moment; false: as soon as its place is free
  Residency residency_ = {};
  std::vector<int> stay_of_ = {};  // [moment]: index into residency_.stays
  std::vector<char> staged_ = {};  // [moment]: the operators read a copy
  Places places_ = {};
  std::vector<Size> sizes_ = {};
  std::map<std::int64_t, BufferId> by_elements_ = {};  // the buffers, where layers take turns in places of their own sizes
  // Of the segment being built: its first moment, the current moment, the next stay to transfer.
  int begin_ = 0, now_ = 0, next_ = 0;
  std::vector<Block> taken_ = {};
  std::vector<int> last_read_ = {};  // [moment]: the last instruction that reads the parameters; -1: not known yet
};

// The all-gather of a unit's parameters over the ranks that its optimizer states are sharded over: from the rank's part `from` to `to`.
Instruction all_gather(const ChunkFrame& frame, const StateUnit& unit, const Use& from, const Use& to);

}  // namespace foreshard
