// Parameters that are cut or away, from their transfer to their release, as the row's stays say (strategy/residency/parameter_stays.h). A
// visit is the forward or the backward of a layer whose parameters are read. Internal to strategy/.
//
//   visit       | layer 0 | layer 1 | layer 2 | ...
//   compute     | F0      | F1      | F2      |
//   transfers    0 1       2         3              one ahead; the place of a layer is free again when its visit has ended
#pragma once

#include <string>
#include <vector>

#include "strategy/program/chunk_frame.h"
#include "strategy/program/segment_builder.h"
#include "strategy/state/model_state.h"

namespace foreshard {

inline const std::string kGatheredPlaces = "gathered";  // how the names of their buffers begin

class ParameterVisits {
 public:
  // Appends places and events to the role. `uses`: of the chunk's layers in one forward and one backward, in the order of the program;
  // `first`: the id of its first layer; `ready`: of a unit, that it is updated.
  ParameterVisits(const ChunkFrame& frame, const ChunkState& state, std::vector<UnitUse> uses, LayerId first, EventId ready);

  void begin(bool backward);  // a segment begins
  // A layer's visit begins: what is due is brought. It ends: what goes is released.
  void start(SegmentBuilder& out, int layer, bool waits_for_update);
  void end(SegmentBuilder& out, int layer);
  // What was to be brought beside the visits that have ended: before other things that go on the same streams, and at the end of a pass.
  void bring_ahead(SegmentBuilder& out, bool waits_for_update);

  bool brings(int layer) const;      // some of its parameters are not read where they lie between steps
  bool brings_unit(int unit) const;  // ... those of this unit
  Block read_block() const;      // where the operators of this visit read them ...
  Bytes read_from(int layer) const {
    return from_[static_cast<std::size_t>(layer)];
  }  // ... from here, those of all its units that are brought, in order

 private:
  struct Size {  // places of one size
    BufferId buffer = {}, copy = {};
    EventId free = {}, copy_free = {}, arrived = {};
  };
  const StateRow& row_of(const StateUnit& unit) const {
    return frame_.lowering.tables.state[static_cast<std::size_t>(unit.row)];
  }
  const StateRow& last_row() const { return frame_.lowering.tables.state.back(); }  // rows that are cut are cut alike
  std::vector<ParameterUnit> layers() const;
  void lay_units();
  void add_sizes();
  const Stay& stay(int index) const { return residency_.stays[static_cast<std::size_t>(index)]; }
  const Size& size_of_stay(int stay) const;
  int stay_now() const { return stay_of_[static_cast<std::size_t>(now_)]; }
  bool crosses(const Stay& stay) const { return stay.brought < turn_ && stay.first_use >= turn_; }
  Block place_of(int stay) const;
  bool take(const Block& place);  // false: it was taken or released in this segment before
  void bring(SegmentBuilder& out, int stay, bool waits_for_update);
  void bring_layer(SegmentBuilder& out, int stay, int layer, bool waits_for_update);
  void begin_with_moment(Instruction& transfer, int moment) const;
  void release_left(SegmentBuilder& out);
  void copy_out(SegmentBuilder& out, int layer);
  Instruction copy_in(const StateUnit& unit, const Use& place) const;

  ChunkFrame frame_;
  const ChunkState& state_;
  std::vector<UnitUse> uses_ = {};  // of units of the residency
  LayerUnits units_ = {};
  std::vector<Bytes> from_ = {};  // [layer]: where it begins in the place of its unit
  LayerId first_ = {};
  EventId ready_ = {}, passed_ = {};  // passed: the last visit of a forward, of a backward
  int turn_ = 0;                      // the first visit of the backward
  bool own_moments_ = false;          // transfers begin with their moments
  Residency residency_ = {};
  std::vector<int> stay_of_ = {};  // [moment]
  std::vector<char> staged_ = {};  // [moment]: the operators read a copy
  Places places_ = {};
  std::vector<Size> sizes_ = {};
  // of the segment being built
  int begin_ = 0, now_ = 0, next_ = 0;  // its first moment; this one; stay to bring
  std::vector<Block> taken_ = {};
  std::vector<int> last_read_ = {};  // [moment]: instruction, -1
};

// Of a unit's parts over what its optimizer states are cut by.
Instruction all_gather(const ChunkFrame& frame, const StateUnit& unit, const Use& from, const Use& to);

}  // namespace foreshard
