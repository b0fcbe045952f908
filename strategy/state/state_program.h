// Emits what a run does with the parameters, gradients and optimizer states of one chunk, as the rows of StatePolicy say: parameters are
// gathered and read; gradients are written, summed over replicas and measured (their norm); states are updated. Buffers may be sharded over
// ranks ("cut") or offloaded to host memory or a drive ("away"). Layers and parameters are numbered within the chunk. Internal to
// strategy/.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "strategy/program/chunk_frame.h"
#include "strategy/program/segment_builder.h"
#include "strategy/state/coded_sums.h"
#include "strategy/state/model_state.h"
#include "strategy/state/parameter_visits.h"
#include "strategy/state/sum_parts.h"
#include "strategy/state/update_moves.h"

namespace foreshard {

class StateProgram {
 public:
  // Lays out the parameters of the chunk's layers and appends their buffers to the role.
  explicit StateProgram(const ChunkFrame& frame);
  // Appends events to the role, and places for sharded or offloaded parameters and gradients. Call it once, before the functions below.
  // `visits`: the layers of the chunk as one forward and one backward read them, in that order; `first`: the id of its first layer.
  void add_events(std::vector<UnitUse> visits, LayerId first);

  const ChunkState& layout() const { return state_; }
  const StateUnit& unit(int index) const { return state_.units[static_cast<std::size_t>(index)]; }
  const ParameterPlace& place(int layer, int parameter) const {
    return state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)];
  }

  // Begins the segment of a forward or of a backward. `weights`: the version of the weights that it reads.
  void begin(bool backward, const Slot& weights);

  // Where operators read a parameter.
  Use weight(int layer, int parameter) const;
  // Makes `run` wait until the parameter is updated; only the first call per unit and segment adds the wait.
  void wait_for_update(Instruction& run, int layer, int parameter);
  ParameterVisits& visits() { return *visits_; }

  // Where operators write the gradient of a parameter.
  Use weight_gradient(int layer, int parameter) const;
  bool cuts_gradients(int unit) const;
  bool writes_gradients_to_slots(
      int unit) const;  // the backward writes them to places that units take in turn, not to their home
  // Copies gradients of earlier micro-batches back into such places, for a backward that adds to them. `opened` [unit]: the units whose
  // place this segment has acquired.
  void bring_gradients(SegmentBuilder& out, int layer, std::vector<char>& opened) const;
  // Makes `run`, the first instruction that writes the unit's gradients to place `to`, acquire the place and wait until it is free.
  void open_gradient(Instruction& run, const Use& to, int unit, std::vector<char>& opened) const;

  // Makes `run`, which writes the unit's new gradients, wait for an update that may still read those of the last run. `written` [unit]:
  // only the first call per unit and segment adds the wait.
  void wait_for_taken(Instruction& run, int unit, std::vector<char>& written) const;

  // Gradients are summed, or copied to their home, while backwards run, not only at the end of the run.
  bool sums_beside_backwards() const;
  // Emits the sums of units whose gradients the backward of `layer` completes. The first sum of each unit comes after instruction
  // `begins`; -1: no such condition.
  void sum_layer(SegmentBuilder& out, int layer, const RunPart& part, int begins);

  // Where units are updated during the backward: emits the updates of the units that the last call of sum_layer summed.
  void update_summed(SegmentBuilder& out);

  // The end of the run for this chunk: the sums that the backwards left, the updates, the all-gathers of updated parameters.
  Segment finish(bool keeps = false);  // `keeps`: first copies the weights that the updates overwrite to the other slot
  // Where the global norm is needed, this segment precedes finish(): all sums, and this chunk's contribution to the norm. `first`: no
  // other chunk of the rank has contributed yet.
  Segment measure(bool first);
  // Parameters whose all-gather belongs to the next run: gathers what the last run updated, ahead of the first forward.
  Segment gather_all();

 private:
  static constexpr int kOwnPlaces = 2;  // slots for the rank's part of sharded and offloaded gradients; units use them in turn
  void add_own_gradients();
  void add_norm_places();
  void add_root_places();
  Bytes root_places(Bytes bytes, int ranks) const;  // that the root of a gather needs to receive gradients
  const StateRow& row_of(const StateUnit& unit) const {
    return frame_.lowering.tables.state[static_cast<std::size_t>(unit.row)];
  }
  const StateRow& last_row() const { return frame_.lowering.tables.state.back(); }  // all rows are sharded alike
  int units() const { return static_cast<int>(state_.units.size()); }
  bool gathers_after_update(const StateUnit& unit) const;  // each rank updates its part of parameters that all read whole
  void add_update(SegmentBuilder& out, int unit, int mark);
  bool is_second_copy(const StateUnit& unit) const;        // the last stage's copy of a tied embedding: not in the norm
  std::int64_t own_elements(const StateUnit& unit) const;  // that this rank updates
  GroupId slice(const StateUnit& unit) const;              // the group over which the optimizer states are sharded
  bool is_summed(const GradientSum& sum) const;
  bool is_summed(int unit) const;
  void sum_unit(SegmentBuilder& out, int unit, const RunPart& part, bool at_end, int begins, const SumPart* piece = nullptr);
  bool is_ordered(int unit) const;  // its sum is in order_
  std::vector<int> order_of_updates() const;
  void sum_in_order(SegmentBuilder& out, int layer, const RunPart& part, int begins);
  void sum_rest(SegmentBuilder& out, int begins);  // the sums that come at the end of the run
  bool leaves(int unit) const;                     // its gradients are offloaded
  bool updates_with_backward(int unit) const;
  Use gradient_of(const StateUnit& unit) const;
  Instruction copy_gradient(const StateUnit& unit, const Use& place, bool in, bool own_slice) const;
  Use bring_own_gradient(SegmentBuilder& out, int unit, const RunPart& part);
  void open_own_gradient(Instruction& run, const Use& place) const;
  void send_gradient(SegmentBuilder& out, int unit, const Use& place, const RunPart& part, bool own_slice) const;
  void release_full_gradient(SegmentBuilder& out, const StateUnit& unit) const;
  void wait_for_sums(SegmentBuilder& out) const;
  Instruction update(int unit) const;
  Slot weights_made() const;                            // the version of the weights that an update writes
  EventUse ready(int unit, const Slot& version) const;  // the parameters are there
  Instruction norm(int unit, bool first) const;
  void measure_away(SegmentBuilder& out, int unit, int turn, Instruction norm);  // copies offloaded gradients in for it
  Instruction clip(int unit) const;
  Instruction gather_unit(int unit) const;

  ChunkFrame frame_;
  ChunkState state_;
  std::optional<UpdateMoves> moves_ = {};  // for units whose states are offloaded
  // For units whose states are on the device while their gradients or parameters are offloaded.
  std::optional<UpdateMoves> kept_moves_ = {};
  std::optional<CodedSums> coded_ = {};
  std::optional<ParameterVisits> visits_ = {};
  BufferId own_gradients_ = {}, norm_places_ = {}, root_places_ = {};
  Slot weights_ = {};                // the version of the weights that the segment reads
  std::vector<char> waited_ = {};    // [unit]: the segment has waited for its update
  std::vector<SumPart> order_ = {};  // the last micro-batch's sums in order of priority; empty: as they are ready
  std::size_t next_ = 0;             // the next of order_ to be emitted
  std::vector<int> summed_ = {};     // units to be updated with the backward of the next layer
  EventId reduced_ = {}, ready_ = {}, updated_ = {}, ring_free_ = {}, own_free_ = {}, norm_free_ = {}, taken_ = {};
  std::vector<EventId> version_ready_ = {};  // [unit], a slot per version of the weights; empty: one version
};

}  // namespace foreshard
