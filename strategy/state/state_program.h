// Parameters, gradients and optimizer states of one chunk over a run, as the rows of StatePolicy say: gathered and read, written, summed,
// measured, updated. Internal to strategy/.
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
  // And the places of parameters that are cut or away. `visits`: of the chunk's layers in one forward and one backward, in the order in
  // which their parameters are read; `first` is the id of its first layer.
  void add_events(std::vector<UnitUse> visits, LayerId first);

  const ChunkState& layout() const { return state_; }
  const StateUnit& unit(int index) const { return state_.units[static_cast<std::size_t>(index)]; }
  const ParameterPlace& place(int layer, int parameter) const {
    return state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)];
  }

  // A segment begins: no unit has been waited for yet. `weights`: the version of the weights that it reads.
  void begin(bool backward, const Slot& weights);

  // Parameters as operators read them; layers are those of the chunk.
  Use weight(int layer, int parameter) const;
  void wait_for_update(Instruction& run, int layer, int parameter);  // once per unit and segment
  ParameterVisits& visits() { return *visits_; }

  // Gradients as operators write them. `opened` remembers the units that this segment has written.
  Use weight_gradient(int layer, int parameter) const;
  bool cuts_gradients(int unit) const;
  bool takes_gradients_away(int unit) const;  // they are written to places that layers take in turn
  // Of earlier micro-batches, where the backward adds to them in such places.
  void bring_gradients(SegmentBuilder& out, int layer, std::vector<char>& opened) const;
  void open_gradient(Instruction& run, const Use& to, int unit, std::vector<char>& opened) const;

  // Where an update may still be taking them while the next backward writes: once per unit and segment.
  void wait_for_taken(Instruction& run, int unit, std::vector<char>& written) const;

  bool sums_beside_backwards() const;
  // The sums of units that the backward of `layer` completes; the first of each comes after instruction `begins`, if there is one.
  void sum_layer(SegmentBuilder& out, int layer, const RunPart& part, int begins);

  // Updates of layers whose sums are under way since the layer before: with the backward.
  void update_summed(SegmentBuilder& out);

  // The end of the run for this chunk: what the backward left of the sums, the update, the all-gather of parameters.
  Segment finish();
  // Where the global norm is needed, the first part of that: all sums, and this chunk's part of the norm.
  Segment measure(bool first);
  // Parameters that are gathered in the next run: the all-gather of the last run's update, ahead of the first forward.
  Segment gather_all();

 private:
  static constexpr int kOwnPlaces = 2;  // of gradients that are cut and away
  void add_own_gradients();
  void add_norm_places();
  void add_root_places();
  Bytes root_places(Bytes bytes, int ranks) const;
  const StateRow& row_of(const StateUnit& unit) const {
    return frame_.lowering.tables.state[static_cast<std::size_t>(unit.row)];
  }
  const StateRow& last_row() const { return frame_.lowering.tables.state.back(); }  // rows are cut alike
  int units() const { return static_cast<int>(state_.units.size()); }
  bool gathers_after_update(const StateUnit& unit) const;
  void add_update(SegmentBuilder& out, int unit, int mark);
  bool is_second_copy(const StateUnit& unit) const;
  std::int64_t own_elements(const StateUnit& unit) const;
  GroupId slice(const StateUnit& unit) const;
  bool is_summed(const GradientSum& sum) const;
  bool is_summed(int unit) const;
  void sum_unit(SegmentBuilder& out, int unit, const RunPart& part, bool at_end, int begins, const SumPart* piece = nullptr);
  bool is_ordered(int unit) const;
  std::vector<int> order_of_updates() const;
  void sum_in_order(SegmentBuilder& out, int layer, const RunPart& part, int begins);
  void sum_rest(SegmentBuilder& out, int begins);
  bool leaves(int unit) const;  // its gradients are away
  bool updates_with_backward(int unit) const;
  Use gradient_of(const StateUnit& unit) const;
  Instruction copy_gradient(const StateUnit& unit, const Use& place, bool in, bool own_slice) const;
  Use bring_own_gradient(SegmentBuilder& out, int unit, const RunPart& part);
  void open_own_gradient(Instruction& run, const Use& place) const;
  void send_gradient(SegmentBuilder& out, int unit, const Use& place, const RunPart& part, bool own_slice) const;
  void release_full_gradient(SegmentBuilder& out, const StateUnit& unit) const;
  void wait_for_sums(SegmentBuilder& out) const;
  Instruction update(int unit) const;
  Slot weights_made() const;
  EventUse ready(int unit, const Slot& version) const;  // the parameters are there
  Instruction norm(int unit, bool first) const;
  void measure_away(SegmentBuilder& out, int unit, int turn, Instruction norm);
  Instruction clip(int unit) const;
  Instruction gather_unit(int unit) const;

  ChunkFrame frame_;
  ChunkState state_;
  std::optional<UpdateMoves> moves_ = {};       // where the rows move states
  std::optional<UpdateMoves> kept_moves_ = {};  // of states that stay, where what they are updated with is away
  std::optional<CodedSums> coded_ = {};
  std::optional<ParameterVisits> visits_ = {};
  BufferId own_gradients_ = {}, norm_places_ = {}, root_places_ = {};
  Slot weights_ = {};                // of the version that the segment reads
  std::vector<char> waited_ = {};    // [unit]
  std::vector<SumPart> order_ = {};  // of the last micro-batch's sums, where what is needed first goes first
  std::size_t next_ = 0;             // of them
  std::vector<int> summed_ = {};     // units to be updated with the backward of the next layer
  EventId reduced_ = {}, ready_ = {}, updated_ = {}, ring_free_ = {}, own_free_ = {}, norm_free_ = {}, taken_ = {};
  std::vector<EventId> version_ready_ = {};  // [unit], with several versions of the weights: a slot each
};

}  // namespace foreshard
