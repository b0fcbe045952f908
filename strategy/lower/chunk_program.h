// The segments of one chunk (the layers of one pipeline stage): forward and backward of a micro-batch, with every block they
// touch. Activations that wait for the backward have one slot per micro-batch in flight; everything else is reused at once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategy/lower/lowering.h"
#include "strategy/lower/segment_builder.h"
#include "strategy/recompute/keep_rule.h"
#include "strategy/recompute/recompute_runs.h"
#include "strategy/schedule/schedule.h"
#include "strategy/state/model_state.h"

namespace foreshard {

inline constexpr StreamId kComputeStream{0};  // of every role; the others are named by rows of CommunicationPolicy

// Parameters of every forward and backward segment, in this order.
struct ChunkArgs {
  static constexpr ParamId microbatch{0}, activation{1}, input{2}, output{3}, gradient_in{4}, gradient_out{5}, pooled{6};
  // Split backwards: what only the input gradient reads, what it leaves for the weight gradient, and the place in the ring of the
  // next chunk on the same rank.
  static constexpr ParamId early{7}, pooled_early{8}, deferred{9}, pooled_deferred{10}, handover{11};
};
std::vector<Param> chunk_params(bool splits);

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

struct ForwardVariant {
  bool waits_for_parameters = false;  // first of the run: the parameters come from an update and its all-gather
};
struct BackwardVariant {
  Work half = Work::B;       // or I, or W
  bool accumulates = false;  // not the first micro-batch of the run
  bool last = false;         // of the run
};

class ChunkProgram {
 public:
  // Appends the chunk's buffers and events to `role`.
  ChunkProgram(Lowering& lowering, Role& role, int role_index, int chunk, int stage, const ChunkSlots& slots,
               ActivationPool& pool);

  // The chunks of the stages before and after this one, where they are on the same rank.
  void meet(const ChunkProgram* before, const ChunkProgram* after) { local_before_ = before, local_after_ = after; }

  Segment forward(const ForwardVariant& variant);
  Segment backward(const BackwardVariant& variant);  // W: after an I was built

  bool is_summed(int unit) const;  // chunk_reduce.cpp
  void sum_unit(SegmentBuilder& out, int unit, const BackwardVariant& variant, bool at_end, int begins);

  // The end of the run for this chunk: what the backward left of the reductions, the update, the all-gather of parameters.
  Segment finish();  // chunk_update.cpp
  // With clipping, the first part of that: all reductions, and this chunk's part of the norm.
  Segment measure(bool first);
  // Parameters that are gathered in the next run: the all-gather of the last run's update, issued ahead of the first forward.
  Segment gather();

  const ChunkState& state() const { return state_; }
  int stage() const { return stage_; }

 private:
  struct Layer {
    const LayerGraph* graph = nullptr;
    const KeepRule* keep = nullptr;
    LayerId id = {};               // of Role::layers
    int counted = -1;              // position among the counted layers of the chunk; -1: not one of them
    std::vector<Block> home = {};  // [value] as a forward value; invalid buffer: lives in the scratch buffers of the kind
    std::vector<char> late = {};   // [value]: the weight gradients read it, when they are apart
  };
  struct Deferred {  // a weight gradient that an input-gradient segment left
    int layer = 0, op = 0;
    std::vector<int> gradients = {};  // of the outputs: indices into held
  };
  struct LayerLeft {  // and the state of a layer then
    std::vector<char> present = {}, redone = {};
    std::vector<Block> where = {};
    std::vector<int> uses = {};
    bool owns_input = false;  // the layer before is done with it
  };
  struct BackwardState {
    struct Held {
      Block block = {};
      int pending = 0;  // values whose gradient this is
    };
    std::vector<Held> held = {};
    std::vector<int> gradient = {};  // [value of the layer]: index into held, -1 none
    std::vector<char> present = {};  // [value]: readable now
    std::vector<Block> where = {};   // [value]
    std::vector<int> uses = {};      // [value]: backward reads to come
    std::vector<char> redone = {};   // [operator]
    std::vector<char> written = {};  // [unit]: this segment has written (a part of) its gradients
    std::vector<std::pair<int, std::int64_t>> written_places = {};  // (unit, element) of parameters written, to see ties
    int border = -1;  // gradient of the value between the current layer and the one after it
    Work half = Work::B;
    std::vector<Deferred> deferred = {};
    std::vector<LayerLeft> left = {};  // [layer]
  };
  static std::size_t real(const Layer& layer, int value) {
    return static_cast<std::size_t>(layer.keep->same_as[static_cast<std::size_t>(value)]);
  }

  // set-up (chunk_program.cpp)
  void add_layers(int first, int last);
  void add_rings(const ChunkSlots& slots);
  void add_homes(int slots, ActivationPool& pool);
  Block stored_home(int layer, int value, int slots, ActivationPool& pool);
  BufferId add_buffer(const std::string& name, Category category, DType dtype, Bytes bytes, int slots);
  EventId add_event(const std::string& name, int slots);
  BufferId scratch(const LayerGraph& graph, int value, bool gradient);
  bool border_stored(int border) const;
  bool first_stage() const { return stage_ == 0; }
  bool last_stage() const { return stage_ + 1 == lowering_.stages(); }
  Peer next_stage() const;
  Peer previous_stage() const;
  std::string tag(bool forward, int to_stage) const;
  StreamId tensor_stream() const;
  const CommunicationRow& transfer(Purpose purpose) const { return lowering_.communication(purpose, chunk_); }
  bool splits() const { return lowering_.tables.schedule.splits; }
  const StateRow& row_of(const StateUnit& unit) const { return lowering_.tables.state[static_cast<std::size_t>(unit.row)]; }
  bool cuts_parameters(int layer) const;  // they are gathered to be used

  // shared by forward and backward
  void begin(SegmentBuilder& out);
  void end(SegmentBuilder& out) const;
  Instruction communication(const Layer& layer, const Operator& op, CollectiveKind kind, const Block& from,
                            const Block& to) const;
  int emit_communication(SegmentBuilder& out, const Layer& layer, const Operator& op, CollectiveKind kind, const Block& from,
                         const Block& to, bool acquire);
  Instruction compute(const Layer& layer, const Operator& op, Phase phase) const;
  Use weight_use(int layer, int parameter) const;
  Use weight_gradient_use(int layer, int parameter) const;
  void gather_layer(SegmentBuilder& out, int layer, bool waits_for_parameters);  // cut parameters
  void gather_ahead(SegmentBuilder& out, int layer);                             // for the layer whose backward comes next
  void release_gathered(SegmentBuilder& out, int layer);

  // forward (chunk_forward.cpp)
  void receive_input(SegmentBuilder& out);
  void send_output(SegmentBuilder& out);
  void wait_for_send(SegmentBuilder& out, int sent);
  void forward_layer(SegmentBuilder& out, int layer, const ForwardVariant& variant);
  void run_forward(SegmentBuilder& out, int layer, int op, const ForwardVariant& variant, std::vector<char>& live);
  void wait_for_unit(Instruction& run, int layer, int parameter);
  void forget_after_forward(SegmentBuilder& out, int layer, int value);

  // backward (chunk_backward.cpp; gradients of activations: chunk_gradients.cpp)
  Segment build_backward(const BackwardVariant& variant);
  static void wait_for_gradient(Segment& segment);
  bool backward_reads_parameters(const Layer& layer) const;
  void receive_gradient(SegmentBuilder& out, BackwardState& state);
  void send_gradient(SegmentBuilder& out, BackwardState& state);
  void backward_layer(SegmentBuilder& out, int layer, const BackwardVariant& variant, BackwardState& state);
  void backward_operator(SegmentBuilder& out, int layer, int op, const BackwardVariant& variant, BackwardState& state);
  void backward_communication(SegmentBuilder& out, int layer, const Operator& op, BackwardState& state);
  void pass_gradients(SegmentBuilder& out, int layer, int op, BackwardState& state);
  void pass_gradient(SegmentBuilder& out, int layer, int value, int from, BackwardState& state);
  void input_gradients(SegmentBuilder& out, int layer, int op, const BackwardVariant& variant, BackwardState& state);
  void write_weight_gradients(Instruction& run, int layer, const Operator& op, const BackwardVariant& variant,
                              BackwardState& state);
  void weight_gradients(SegmentBuilder& out, int layer, int op, const BackwardVariant& variant, BackwardState& state);
  void redo_for(SegmentBuilder& out, int layer, const std::vector<int>& values, BackwardState& state);
  void redo(SegmentBuilder& out, int layer, int op, BackwardState& state);
  void used(SegmentBuilder& out, int layer, int value, BackwardState& state);
  int fresh_gradient(int layer, int value, BackwardState& state);
  void own_gradient(SegmentBuilder& out, int layer, int value, BackwardState& state);
  void add_gradients(SegmentBuilder& out, const Layer& layer, int value, const Block& block, BackwardState& state);
  void add_beside(SegmentBuilder& out, int layer, int value, int known, const Block& block, BackwardState& state);
  void drop_gradient(SegmentBuilder& out, int value, BackwardState& state);
  void release_gradient(SegmentBuilder& out, const Block& block);
  bool wants_gradient(int layer, int value) const;
  // input and weight gradients apart (chunk_split.cpp)
  static bool defers(const Operator& op);
  static std::vector<char> late_values(const Layer& layer);
  static int regathered(const Layer& layer, std::size_t value);
  std::vector<int> saved_now(const Layer& layer, const Operator& op, Work half) const;
  bool lends_embedding(const ParameterPlace& place) const;
  void defer(int layer, int op, BackwardState& state);
  void join_kept(SegmentBuilder& out, const BackwardState& state) const;
  void leave_layer(int layer, BackwardState& state);
  Block deferred_home(int layer, int value, int held);
  Segment build_weights(const BackwardVariant& variant);
  void deferred_gradients(SegmentBuilder& out, const Deferred& deferred, const BackwardVariant& variant, BackwardState& state);
  bool is_summed(const GradientSum& sum) const;
  bool sums_beside_backwards() const;
  bool is_second_copy(const StateUnit& unit) const;
  bool gathers_after_update(const StateUnit& unit) const;
  std::int64_t own_elements(const StateUnit& unit) const;
  void sum_layer(SegmentBuilder& out, int layer, const BackwardVariant& variant);
  void wait_for_sums(SegmentBuilder& out) const;
  Instruction update(int unit) const;
  Instruction norm(int unit, bool first) const;
  Instruction clip(int unit) const;
  GroupId slice(const StateUnit& unit) const;
  Instruction gather_unit(int unit) const;

  // under a recomputation schedule (chunk_replay.cpp)
  void keep_by_runs();
  Block& now_at(int layer, int value);
  Block place_of(int life);
  void play_segment(SegmentBuilder& out, const ForwardVariant& variant);
  void play_backwards(SegmentBuilder& out, const BackwardVariant& variant, BackwardState& state);
  void play(SegmentBuilder& out, int run, const ForwardVariant& variant);
  void play_back(SegmentBuilder& out, int run, const BackwardVariant& variant, BackwardState& state);
  void end_lives(SegmentBuilder& out, int run);
  void gather_for(SegmentBuilder& out, int layer, bool waits_for_parameters);
  void release_gather(SegmentBuilder& out);
  bool crosses(const ValueLife& life) const { return life.from < runs_->turn && life.to >= runs_->turn; }

  Lowering& lowering_;
  Role& role_;
  int role_index_, chunk_, stage_, first_, last_;
  ChunkState state_ = {};
  std::vector<KeepRule> keeps_ = {};  // [op graph kind, row of ActivationPolicy or none]
  std::vector<Layer> layers_ = {};
  std::vector<std::vector<BufferId>> scratch_ = {}, scratch_gradient_ = {};  // [op graph kind][value]
  Block input_ = {}, output_ = {}, gradient_in_ = {}, gradient_out_ = {};
  BufferId border_gradient_ = {}, border_value_ = {}, gathered_ = {};
  int gathered_slots_ = 1;
  int gathers_ = 0, gathered_slot_ = 0;  // of the segment being built
  int ahead_ = -1, ahead_slot_ = 0;      // the layer whose parameters were gathered before its turn, and where
  int begin_ = -1;                       // index of its first instruction, when collectives have their own stream
  int mark_ = -1;                        // its first compute instruction, when reductions have to wait for the action before
  int sent_ = -1;                        // of its gradients, the one that leaves the chunk; -1: not known
  bool trying_ = false;                  // to find that out: places of gradients do not count yet
  std::vector<char> kept_ = {};          // [of its gradients]: weight gradients read it in a segment of their own
  BackwardState left_ = {};              // by the last input-gradient segment
  ActivationPool& pool_;
  ChunkSlots slots_;
  std::map<std::pair<int, int>, Block> deferred_homes_ = {};  // (layer, value), or (-1, index of a gradient)
  const ChunkProgram *local_before_ = nullptr, *local_after_ = nullptr;
  std::vector<char> waited_ = {};    // [unit], likewise
  const StageRuns* runs_ = nullptr;  // null: layer by layer
  RunLives lives_ = {};
  std::vector<std::vector<Block>> now_ = {};            // [layer][value]: where its newest life is
  std::map<std::pair<int, int>, BufferId> again_ = {};  // (layer, value): made again, and kept while other layers run
  int gathered_layer_ = -1;
  EventId input_free_ = {}, output_sent_ = {}, gradient_free_ = {}, gradient_sent_ = {}, reduced_ = {}, ready_ = {},
          updated_ = {}, gathered_free_ = {}, ring_free_ = {};
};

}  // namespace foreshard
