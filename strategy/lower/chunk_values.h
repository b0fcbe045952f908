// Where the values of one chunk live: rings of what arrives and leaves, homes of what waits for the backward, scratch places of the rest.
// Activations that wait for the backward have one slot per micro-batch in flight; everything else is reused at once. Internal to strategy/.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strategy/program/chunk_frame.h"
#include "strategy/recompute/keep_rule.h"
#include "strategy/recompute/recompute_runs.h"

namespace foreshard {

// Parameters of every forward and backward segment, in this order.
struct ChunkArgs {
  static constexpr ParamId microbatch{0}, activation{1}, input{2}, output{3}, gradient_in{4}, gradient_out{5}, pooled{6};
  // Split backwards: what only the input gradient reads, what it leaves for the weight gradient, and the place in the ring of the
  // next chunk on the same rank.
  static constexpr ParamId early{7}, pooled_early{8}, deferred{9}, pooled_deferred{10}, handover{11};
};
std::vector<Param> chunk_params(bool splits, bool versions = false);

// Chunks of one role with equal layers keep their activations in common buffers: in flight together are fewer micro-batches than
// the sum of each chunk's own maximum (interleaved 1F1B). By (layer of the chunk, value).
struct ActivationPool {
  bool shared = false;  // all chunks hold equal transformer layers
  int slots = 1;        // most micro-batches in flight over all chunks
  int early = 1;        // ... until their input gradient
  int deferred = 1;     // most between their input and their weight gradient
  std::map<std::pair<int, int>, BufferId> buffers = {};
  std::vector<std::pair<BufferId, int>> deferred_buffers = {};  // made with the segments: and whose chunk's, -1 pooled
};

// Slots of the rings of a chunk; differ between roles of equal signature.
struct ChunkSlots {
  int activation = 1, input = 1, output = 2, gradient_in = 2, gradient_out = 2;
  int early = 1, deferred = 1;
};

struct ChunkLayer {
  const LayerGraph* graph = nullptr;
  const KeepRule* keep = nullptr;
  LayerId id = {};               // of Role::layers
  int counted = -1;              // position among the counted layers of the chunk; -1: not one of them
  std::vector<Block> home = {};  // [value] as a forward value; invalid buffer: lives in the scratch buffers of the kind
  std::vector<char> late = {};   // [value]: the weight gradients read it, when they are apart
  std::vector<Block> away = {};  // [value]: where it lies between forward and backward, when not in its home; invalid: there

  std::size_t real(int value) const { return static_cast<std::size_t>(keep->same_as[static_cast<std::size_t>(value)]); }
  const Operator& op(int index) const { return graph->operators[static_cast<std::size_t>(index)]; }
};

class ChunkValues {
 public:
  ChunkValues(const ChunkFrame& frame, const ChunkSlots& slots, ActivationPool& pool);
  void add_rings();
  void add_homes();

  std::vector<ChunkLayer> layers = {};
  Block input = {}, output = {}, gradient_in = {}, gradient_out = {};
  EventId input_free = {}, output_sent = {}, gradient_free = {}, gradient_sent = {};
  BufferId border_gradient = {}, border_value = {};
  const StageRuns* runs = nullptr;  // of a recomputation schedule; null: layer by layer
  RunLives lives = {};
  // The chunks of the stages before and after this one, where they are on the same rank.
  const ChunkValues *before = nullptr, *after = nullptr;

  const ChunkLayer& layer(int index) const { return layers[static_cast<std::size_t>(index)]; }
  int count() const { return static_cast<int>(layers.size()); }
  bool is_last(int layer) const { return layer + 1 == count(); }
  bool border_stored(int border) const;
  Bytes bytes(const Block& block) const { return frame_.role.buffers[block.buffer.index()].bytes; }
  // Buffers shared by all layers of a kind: a value that dies inside its layer, and the gradient of a value.
  BufferId scratch(const LayerGraph& graph, int value, bool gradient);
  // Where the factors of a linear layer in 8 bits lie while it multiplies; invalid for other operators.
  Block factors(const Operator& op) const;
  Block deferred_home(int layer, int value, int held);
  // Of a life of a recomputation schedule (run_player.cpp).
  Block place_of(int life);
  bool crosses(const ValueLife& life) const { return life.from < runs->turn && life.to >= runs->turn; }

 private:
  void add_layers();
  void keep_by_runs();
  void add_factors();
  Block stored_home(int layer, int value);
  const ActivationRow* row(int layer) const;  // of ActivationPolicy; null: none
  // Where a stored value of the layer lies until the backward. Device: in its home.
  Space space_of(int layer, int value) const;
  Block passing_home(int layer, int value, Space space);

  ChunkFrame frame_;
  ChunkSlots slots_;
  ActivationPool& pool_;
  std::vector<KeepRule> keeps_ = {};                                         // [op graph kind, row of ActivationPolicy or none]
  std::vector<std::vector<BufferId>> scratch_ = {}, scratch_gradient_ = {};  // [op graph kind][value]
  std::map<const Operator*, BufferId> factors_ = {};
  std::map<std::pair<int, int>, BufferId> passing_ = {};      // (op graph kind, value), or (-1, 0) of the inputs of layers
  std::map<std::pair<int, int>, Block> deferred_homes_ = {};  // (layer, value), or (-1, index of a gradient)
  std::map<std::pair<int, int>, BufferId> again_ = {};        // (layer, value): made again, and kept while other layers run
};

// Whether the weight gradients of an operator come apart from its input gradients. Norms, and residual sums with dropout, make both in
// one kernel: those stay with the input gradients.
bool defers(const Operator& op);
// The operator that gathers `value` again for weight gradients only, from a value that is stored; -1: none.
int regathered(const ChunkLayer& layer, std::size_t value);

}  // namespace foreshard
