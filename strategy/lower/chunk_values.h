// Which buffers hold the values (activations and their gradients) of one chunk: ring buffers for what is received and sent, buffers with
// one slot per micro-batch in flight for activations that wait for the backward, and scratch buffers, reused at once, for everything else.
// Internal to strategy/.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strategy/program/activation_pool.h"
#include "strategy/program/chunk_frame.h"
#include "strategy/recompute/keep_rule.h"
#include "strategy/recompute/recompute_runs.h"

namespace foreshard {

// Parameters of every forward and backward segment, in this order. All but the micro-batch are slots: of the activations that wait for the
// backward, of the four rings (input, output, gradient_in, gradient_out), and of the activations in the ActivationPool (pooled).
struct ChunkArgs {
  static constexpr ParamId microbatch{0}, activation{1}, input{2}, output{3}, gradient_in{4}, gradient_out{5}, pooled{6};
  // With split backwards also slots of: activations that only the input gradients read (early), what the input gradients leave for the
  // weight gradients (deferred), the same two in the pool, and the input or gradient ring of the next chunk on the same rank (handover).
  static constexpr ParamId early{7}, pooled_early{8}, deferred{9}, pooled_deferred{10}, handover{11};
};
// `splits`: backwards are split. `versions`: there are several versions of the weights; the last parameter says which.
std::vector<Param> chunk_params(bool splits, bool versions = false);

// Numbers of slots of a chunk's buffers. Roles that share their segments (equal signature) may differ in them.
struct ChunkSlots {
  int activation = 1, input = 1, output = 2, gradient_in = 2, gradient_out = 2;
  int early = 1, deferred = 1;
};

// One layer of the chunk. Values and operators are numbered as in its LayerGraph.
struct ChunkLayer {
  const LayerGraph* graph = nullptr;
  const KeepRule* keep = nullptr;
  LayerId id = {};               // of Role::layers
  int counted = -1;              // index among the counted layers (stage_layout.h) of the chunk; -1: not counted
  std::vector<Block> home = {};  // [value]: where it lies on the device, from the forward on
  std::vector<char> late = {};   // [value]: whether weight gradients read it; empty unless backwards are split
  std::vector<Block> away =
      {};  // [value]: where it lies between forward and backward if it is offloaded; invalid: it stays at home
  std::vector<Block> back = {};  // [value]: where it lies in the backward if a ValueMove moves it; invalid: at home

  // The value that `value` is another name of, or `value` itself: the index into the vectors above.
  std::size_t real(int value) const { return static_cast<std::size_t>(keep->same_as[static_cast<std::size_t>(value)]); }
  const Operator& op(int index) const { return graph->operators[static_cast<std::size_t>(index)]; }
};

// A ValueMove with the blocks that it needs. Layers are those of the chunk; `layer` reads the value first in the backward and knows it as
// `value`.
struct MovedValue {
  int layer = 0, value = 0;
  const ValueMove* move = nullptr;
  ValueMove::At leaves = {}, returns = {};
  Block here = {}, away = {}, back = {};
};

class ChunkValues {
 public:
  ChunkValues(const ChunkFrame& frame, const ChunkSlots& slots, ActivationPool& pool);
  void add_rings();  // adds the buffers and events of what the chunk receives and sends
  void add_homes();  // then those of all forward values: fills ChunkLayer::home and away

  std::vector<ChunkLayer> layers = {};
  std::vector<MovedValue> moved = {};  // in the order of the policy
  // Rings of what the chunk receives and sends; invalid where it receives or sends none. `output` is invalid, too, if the backward needs
  // the output: then it is sent from its home.
  Block input = {}, output = {}, gradient_in = {}, gradient_out = {};
  // [slot of the ring]: the slot may be written again. Free: its last reader is done. Sent: its transfer is done.
  EventId input_free = {}, output_sent = {}, gradient_free = {}, gradient_sent = {};
  // Scratch, two slots each: gradients and values at the boundaries between layers. Border i is the boundary between layers i-1 and i.
  BufferId border_gradient = {}, border_value = {};
  const StageRuns* runs = nullptr;  // of a recomputation schedule; null: layer by layer
  RunLives lives = {};              // with `runs`: when each value lives
  // The chunks of the stages before and after this one; null unless they are on the same rank.
  const ChunkValues *before = nullptr, *after = nullptr;

  const ChunkLayer& layer(int index) const { return layers[static_cast<std::size_t>(index)]; }
  int count() const { return static_cast<int>(layers.size()); }
  bool is_last(int layer) const { return layer + 1 == count(); }
  bool border_stored(int border) const;  // whether the value at this boundary is kept for the backward
  Bytes bytes(const Block& block) const { return frame_.role.buffers[block.buffer.index()].bytes; }
  // The buffer that all layers of a kind share: for a value that is freed inside its layer, or for the gradient of a value.
  BufferId scratch(const LayerGraph& graph, int value, bool gradient);
  // Where the scaling factors of an 8-bit matrix product lie while it runs; invalid for other operators.
  Block factors(const Operator& op) const;
  // A block that lives from the input gradients to the weight gradients: of the value, which was recomputed (`held` -1), or of its gradient
  // number `held` (index into BackwardState::held).
  Block deferred_home(int layer, int value, int held);
  // Under a recomputation schedule: where a value lies during life number `life` of `lives`, and whether a life begins in the forward and
  // ends in the backward.
  Block place_of(int life);
  bool crosses(const ValueLife& life) const { return life.from < runs->turn && life.to >= runs->turn; }

 private:
  void add_layers();
  void keep_by_runs();
  void add_factors();
  Block stored_home(int layer, int value);
  const ActivationRow* row(int layer) const;  // of ActivationPolicy; null: none
  // The memory in which a stored value of the layer waits for the backward. Device: it is not offloaded.
  Space space_of(int layer, int value) const;
  Block passing_home(int layer, int value, Space space);  // of an offloaded value: one of the places that layers share
  const ValueMove* move_of(int layer, int value) const;
  Block moved_home(int layer, int value, const ValueMove& move);
  BufferId away_from(int layer, int value, Space space);  // adds the buffer in `space`: a slot per micro-batch in flight

  ChunkFrame frame_;
  ChunkSlots slots_;
  ActivationPool& pool_;
  std::vector<KeepRule> keeps_ = {};                                // [op graph kind, row of ActivationPolicy or none]
  std::array<std::vector<std::vector<BufferId>>, 2> scratch_ = {};  // of values, of their gradients: [op graph kind][value]
  std::map<const Operator*, BufferId> factors_ = {};
  std::map<std::pair<int, int>, BufferId> passing_ =
      {};  // places of offloaded values: (op graph kind, value); (-1, 0): layer inputs
  std::map<std::pair<int, int>, Block> deferred_homes_ = {};  // (layer, value), or (-1, index of a gradient)
  std::map<std::pair<int, int>, BufferId> again_ = {};        // (layer, value): recomputed, alive while other layers run
};

// Whether split backwards defer the operator's weight gradients to the segment of weight gradients. Norms compute both gradients in one
// kernel: those stay with the input gradients, as do residual sums with dropout.
bool defers(const Operator& op);
// The operator (an all-gather of a stored value) that recomputes `value` for weight gradients only; -1: none. It then runs in the segment
// of weight gradients.
int regathered(const ChunkLayer& layer, std::size_t value);

}  // namespace foreshard
