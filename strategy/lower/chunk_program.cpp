#include "strategy/lower/chunk_program.h"

#include <algorithm>
#include <utility>

namespace foreshard {

std::vector<Param> chunk_params(bool splits) {
  std::vector<Param> params = {{"microbatch", ParamKind::Microbatch},
                               {"activation", ParamKind::Slot},
                               {"input", ParamKind::Slot},
                               {"output", ParamKind::Slot},
                               {"gradient_in", ParamKind::Slot},
                               {"gradient_out", ParamKind::Slot},
                               {"pooled", ParamKind::Slot}};
  if (splits)
    for (const char* name : {"early", "pooled_early", "deferred", "pooled_deferred", "handover"})
      params.push_back({name, ParamKind::Slot});
  return params;
}

ChunkProgram::ChunkProgram(Lowering& lowering, Role& role, int role_index, int chunk, int stage, const ChunkSlots& slots,
                           ActivationPool& pool)
    : lowering_(lowering),
      role_(role),
      role_index_(role_index),
      chunk_(chunk),
      stage_(stage),
      first_(lowering.first_layer(stage)),
      last_(lowering.first_layer(stage + 1)),
      pool_(pool),
      slots_(slots) {
  state_ = lay_out_state(lowering, role, chunk, first_, last_);
  add_layers(first_, last_);
  add_rings(slots);
  add_homes(slots.activation, pool);
}

BufferId ChunkProgram::add_buffer(const std::string& name, Category category, DType dtype, Bytes bytes, int slots) {
  role_.buffers.push_back({.name = name + "." + std::to_string(chunk_),
                           .category = category,
                           .dtype = dtype,
                           .bytes = bytes,
                           .offsets = std::vector<Bytes>(static_cast<std::size_t>(slots))});
  return {static_cast<std::int32_t>(role_.buffers.size()) - 1};
}

EventId ChunkProgram::add_event(const std::string& name, int slots) {
  role_.events.push_back({.name = name + "." + std::to_string(chunk_), .slots = slots});
  return {static_cast<std::int32_t>(role_.events.size()) - 1};
}

void ChunkProgram::add_layers(int first, int last) {
  const OpGraph& graph = lowering_.graph;
  const ActivationPolicy& policy = lowering_.tables.activations;
  const std::size_t forms = policy.rows.size() + 1;
  keeps_.reserve(graph.kinds.size() * forms);
  for (const LayerGraph& kind : graph.kinds) {
    keeps_.push_back(keep_rule(kind, {}));
    for (const ActivationRow& row : policy.rows) keeps_.push_back(keep_rule(kind, row.redone));
  }
  int counted = 0;
  for (int at = first; at < last; ++at) {
    const OpGraph::Layer& layer = graph.layers[static_cast<std::size_t>(at)];
    const auto form = static_cast<std::size_t>(policy.row_of(at) + 1);
    role_.layers.push_back(layer.name);
    layers_.push_back({.graph = &graph.kinds[static_cast<std::size_t>(layer.kind)],
                       .keep = &keeps_[static_cast<std::size_t>(layer.kind) * forms + form],
                       .id = {static_cast<std::int32_t>(role_.layers.size()) - 1},
                       .counted = layer.counted ? counted++ : -1});
    if (splits()) layers_.back().late = late_values(layers_.back());
  }
  if (!policy.runs_of_stage.empty()) keep_by_runs();
  scratch_.resize(graph.kinds.size());
  scratch_gradient_.resize(graph.kinds.size());
}

// Border i lies between chunk-local layers i-1 and i.
bool ChunkProgram::border_stored(int border) const {
  const auto at = static_cast<std::size_t>(border);
  if (at < layers_.size() && layers_[at].graph->input >= 0 &&
      layers_[at].keep->stored[static_cast<std::size_t>(layers_[at].graph->input)])
    return true;
  return at > 0 && layers_[at - 1].graph->output >= 0 &&
         layers_[at - 1].keep->stored[static_cast<std::size_t>(layers_[at - 1].graph->output)];
}

void ChunkProgram::add_rings(const ChunkSlots& slots) {
  const auto value_at = [&](int border) -> const Value& {
    const Layer& layer = layers_[static_cast<std::size_t>(border == 0 ? 0 : border - 1)];
    return layer.graph->values[static_cast<std::size_t>(border == 0 ? layer.graph->input : layer.graph->output)];
  };
  const int borders = static_cast<int>(layers_.size());
  if (!first_stage()) {
    const Value& value = value_at(0);
    const Category kept = border_stored(0) ? Category::Activations : Category::Communication;
    input_ = {add_buffer("input", kept, value.dtype, value.bytes, slots.input), {ChunkArgs::input}};
    input_free_ = add_event("input_free", slots.input);
    gradient_out_ = {add_buffer("gradient_out", Category::Communication, value.dtype, value.bytes, slots.gradient_out),
                     {ChunkArgs::gradient_out}};
    gradient_sent_ = add_event("gradient_sent", slots.gradient_out);
  }
  if (!last_stage()) {
    const Value& value = value_at(borders);
    if (!border_stored(borders))
      output_ = {add_buffer("output", Category::Communication, value.dtype, value.bytes, slots.output), {ChunkArgs::output}};
    output_sent_ = add_event("output_sent", border_stored(borders) ? std::max(slots.activation, slots.early) : slots.output);
    gradient_in_ = {add_buffer("gradient_in", Category::Communication, value.dtype, value.bytes, slots.gradient_in),
                    {ChunkArgs::gradient_in}};
    gradient_free_ = add_event("gradient_free", slots.gradient_in);
  }
  const int units = std::max<int>(1, static_cast<int>(state_.units.size()));
  reduced_ = add_event("reduced", units);
  ready_ = add_event("parameters_ready", units);
  updated_ = add_event("updated", units);
  const StateRow& state = lowering_.tables.state.back();  // rows are cut alike
  if (!state.gradients.cut_by.empty()) ring_free_ = add_event("gradient_ring_free", 2);
  if (state.parameters.cut_by.empty()) return;
  Bytes largest = {};
  for (const std::vector<int>& units_of : state_.units_of_layer) {
    Bytes bytes = {};
    for (const int unit : units_of)
      bytes += size_of(state.parameters.dtype) * state_.units[static_cast<std::size_t>(unit)].elements;
    largest = std::max(largest, bytes);
  }
  gathered_slots_ = state.parameters.slots;
  gathered_ = add_buffer("gathered", Category::Parameters, state.parameters.dtype, largest, gathered_slots_);
  gathered_free_ = add_event("gathered_free", gathered_slots_);
}

// Where each forward value lives. Borders that nobody keeps alternate between two scratch slots.
void ChunkProgram::add_homes(int slots, ActivationPool& pool) {
  const int count = static_cast<int>(layers_.size());
  Bytes largest_border = {};
  DType border_type = lowering_.compute_type();
  for (int l = 0; l < count; ++l) {
    Layer& layer = layers_[static_cast<std::size_t>(l)];
    layer.home.resize(layer.graph->values.size());
    for (std::size_t v = 0; v < layer.home.size(); ++v) {
      const Value& value = layer.graph->values[v];
      const int index = static_cast<int>(v);
      if (real(layer, index) != v) continue;  // another name of a value that has a home
      if (index == layer.graph->input) {
        layer.home[v] = l == 0 ? input_
                               : layers_[static_cast<std::size_t>(l) - 1]
                                     .home[static_cast<std::size_t>(layers_[static_cast<std::size_t>(l) - 1].graph->output)];
        continue;
      }
      const bool border = index == layer.graph->output;
      if (border && l + 1 == count && output_.buffer.valid()) {
        layer.home[v] = output_;
      } else if (layer.keep->stored[v] || (border && border_stored(l + 1))) {
        layer.home[v] = stored_home(l, index, slots, pool);
      } else if (border) {
        layer.home[v] = {{}, {l % 2}};  // border_value_, once its size is known
      }
      if (border) {
        largest_border = std::max(largest_border, value.bytes);
        border_type = value.dtype;
      }
    }
  }
  border_value_ = add_buffer("border", Category::Transient, border_type, largest_border, 2);
  border_gradient_ = add_buffer("border.gradient", Category::Transient, border_type, largest_border, 2);
  for (int l = 0; l < count; ++l) {
    Layer& layer = layers_[static_cast<std::size_t>(l)];
    for (const int v : {layer.graph->input, layer.graph->output})
      if (v >= 0 && !layer.home[static_cast<std::size_t>(v)].buffer.valid() && !(l == 0 && v == layer.graph->input))
        layer.home[static_cast<std::size_t>(v)] = {border_value_, {v == layer.graph->output ? l % 2 : (l + 1) % 2}};
    for (std::size_t v = 0; v < layer.home.size(); ++v)
      if (!layer.home[v].buffer.valid() && real(layer, static_cast<int>(v)) == v)
        layer.home[v] = {scratch(*layer.graph, static_cast<int>(v), false), {0}};
  }
}

// A value that waits for the backward. In the pool: the same place for the layer at this position of every chunk, except for what
// crosses the chunk's end, which some chunks send away instead.
Block ChunkProgram::stored_home(int l, int value, int slots, ActivationPool& pool) {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const Value& shape = layer.graph->values[static_cast<std::size_t>(value)];
  const bool next_counted = l + 1 < static_cast<int>(layers_.size()) && layers_[static_cast<std::size_t>(l) + 1].counted >= 0;
  const bool pooled = pool.shared && layer.counted >= 0 && (value != layer.graph->output || next_counted);
  const auto add = [&](int count) {
    return add_buffer(role_.layers[layer.id.index()] + "." + shape.name, Category::Activations, shape.dtype, shape.bytes,
                      count);
  };
  const auto late = [&](const Layer& reader, int name) {
    return name >= 0 && reader.late[real(reader, name)];  // the weight gradients read it
  };
  const bool early = splits() && !late(layer, value) &&
                     !(value == layer.graph->output && l + 1 < static_cast<int>(layers_.size()) &&
                       late(layers_[static_cast<std::size_t>(l) + 1], layers_[static_cast<std::size_t>(l) + 1].graph->input));
  if (!pooled && early) return {add(slots_.early), {ChunkArgs::early}};
  if (!pooled) return {add(slots), {ChunkArgs::activation}};
  BufferId& known = pool.buffers[{layer.counted, value}];
  if (!known.valid()) known = add(early ? pool.early : pool.slots);
  return {known, {early ? ChunkArgs::pooled_early : ChunkArgs::pooled}};
}

// Buffers shared by all layers of a kind: a value that dies inside its layer, and the gradient of a value.
BufferId ChunkProgram::scratch(const LayerGraph& graph, int value, bool gradient) {
  const auto kind = static_cast<std::size_t>(&graph - lowering_.graph.kinds.data());
  std::vector<BufferId>& known = gradient ? scratch_gradient_[kind] : scratch_[kind];
  known.resize(graph.values.size());
  BufferId& id = known[static_cast<std::size_t>(value)];
  if (!id.valid()) {
    const Value& shape = graph.values[static_cast<std::size_t>(value)];
    id = add_buffer(graph.kind + "." + shape.name + (gradient ? ".gradient" : ""), Category::Transient, shape.dtype,
                    shape.bytes, gradient ? 2 : 1);
  }
  return id;
}

Peer ChunkProgram::next_stage() const { return {.role_shift = lowering_.tables.schedule.rank_of(stage_ + 1) - role_index_}; }
Peer ChunkProgram::previous_stage() const {
  return {.role_shift = lowering_.tables.schedule.rank_of(stage_ - 1) - role_index_};
}
// Chunk of the receiving stage: pairs sends with receives and is the same text on every role.
std::string ChunkProgram::tag(bool forward, int to_stage) const {
  return (forward ? "forward." : "backward.") + std::to_string(lowering_.tables.schedule.chunk_of(to_stage));
}
StreamId ChunkProgram::tensor_stream() const { return lowering_.communication(Purpose::Operator).stream; }

static Use whole(const Block& block) { return {.buffer = block.buffer, .slot = block.slot}; }

Instruction ChunkProgram::communication(const Layer& layer, const Operator& op, CollectiveKind kind, const Block& from,
                                        const Block& to) const {
  const Communication& talk = *op.communication;
  const CommunicationRow& way = lowering_.communication(Purpose::Operator);
  Instruction instruction{.name = op.name,
                          .what = Collective{.kind = kind,
                                             .algorithm = way.algorithm,
                                             .group = lowering_.group(talk.over, way.stream),
                                             .bytes = talk.bytes,
                                             .dtype = lowering_.compute_type(),
                                             .combine = talk.combine},
                          .stream = way.stream,
                          .layer = layer.id,
                          .reads = {whole(from)},
                          .writes = {whole(to)}};
  return instruction;
}

// Collectives on a stream of their own reuse scratch places of the action before: they come after what it computed.
void ChunkProgram::begin(SegmentBuilder& out) {
  begin_ = -1;
  if (tensor_stream() == kComputeStream || lowering_.ranks({DenseKind::Tensor, DenseKind::Context}) == 1) return;
  begin_ = out.emit({.name = "begin", .what = Mark{}, .stream = kComputeStream});
}

// ... and what the next action computes comes after the collectives that read what it writes: where nothing here follows the last one.
void ChunkProgram::end(SegmentBuilder& out) const {
  if (begin_ < 0) return;
  int last = -1;
  bool followed = true;
  for (int i = 0; i < out.size(); ++i) {
    const Instruction& run = out.at(i);
    if (run.stream == tensor_stream()) last = i, followed = false;
    if (run.stream == kComputeStream && std::find(run.after.begin(), run.after.end(), last) != run.after.end()) followed = true;
  }
  if (!followed) out.emit({.name = "end", .what = Mark{}, .stream = kComputeStream, .after = {last}});
}

// A collective, or one exchange less than there are ranks with the ring neighbours, which bring the others' parts one by one.
int ChunkProgram::emit_communication(SegmentBuilder& out, const Layer& layer, const Operator& op, CollectiveKind kind,
                                     const Block& from, const Block& to, bool acquire) {
  if (!op.communication->ring_exchange) {
    Instruction instruction = communication(layer, op, kind, from, to);
    if (acquire) instruction.acquires.push_back(to);
    if (acquire && begin_ >= 0) instruction.after.push_back(begin_);
    if (acquire && output_.buffer.valid() && to.buffer == output_.buffer)  // the embedding alone scatters what it sends on
      instruction.waits.push_back({output_sent_, output_.slot});
    return out.emit(std::move(instruction));
  }
  const int ranks = lowering_.ranks(op.communication->over);
  const std::vector<AxisId> axes = lowering_.over(op.communication->over);
  FS_ASSERT(axes.size() < 2);  // a ring goes round one axis
  const AxisId ring = ranks > 1 ? axes.front() : AxisId{};
  int index = -1;
  for (int step = 1; step < ranks; ++step) {
    Instruction instruction{.name = op.name + "." + std::to_string(step),
                            .what = Exchange{.to = Peer{.axis = ring, .shift = 1},
                                             .from = Peer{.axis = ring, .shift = -1},
                                             .tag = op.name,
                                             .bytes = {op.communication->bytes.value / ranks}},
                            .stream = tensor_stream(),
                            .layer = layer.id,
                            .reads = {whole(from)},
                            .writes = {whole(to)}};
    if (acquire && step == 1) instruction.acquires.push_back(to);
    if (acquire && step == 1 && begin_ >= 0) instruction.after.push_back(begin_);
    index = out.emit(std::move(instruction));
  }
  return index;
}

static const OpWork& work_of(const Operator& op, Phase phase) {
  if (phase == Phase::InputGrad) return op.input_grad;
  if (phase == Phase::WeightGrad) return op.weight_grad;
  return op.forward;
}

Instruction ChunkProgram::compute(const Layer& layer, const Operator& op, Phase phase) const {
  const OpWork& work = work_of(op, phase);
  Compute what{.op = op.op, .phase = phase, .shapes = op.shapes, .flops = work.flops, .traffic = work.traffic};
  if (depends_on_microbatch(op.op)) what.microbatch = ChunkArgs::microbatch;
  return {.name = op.name, .what = std::move(what), .stream = kComputeStream, .layer = layer.id};
}

bool ChunkProgram::cuts_parameters(int layer) const {
  const std::vector<int>& units = state_.units_of_layer[static_cast<std::size_t>(layer)];
  return !units.empty() && !lowering_.tables.state.back().parameters.cut_by.empty();  // rows are cut alike
}

Use ChunkProgram::weight_use(int layer, int parameter) const {
  const ParameterPlace& place = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)];
  const StateUnit& unit = state_.units[static_cast<std::size_t>(place.unit)];
  const Bytes each = size_of(row_of(unit).parameters.dtype);
  Use use{.buffer = unit.value, .from = each * place.element, .length = each * place.elements};
  if (!cuts_parameters(layer)) return use;
  use.buffer = gathered_;
  use.slot = {gathered_slot_};
  for (const int before : state_.units_of_layer[static_cast<std::size_t>(layer)]) {
    if (before == place.unit) break;
    use.from += each * state_.units[static_cast<std::size_t>(before)].elements;
  }
  return use;
}

Use ChunkProgram::weight_gradient_use(int layer, int parameter) const {
  const ParameterPlace& place = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)];
  const StateUnit& unit = state_.units[static_cast<std::size_t>(place.unit)];
  const StateRow::Gradients& gradients = row_of(unit).gradients;
  const Bytes each = size_of(gradients.dtype);
  const bool cut = !gradients.cut_by.empty();
  return {.buffer = cut ? unit.full_gradient : unit.gradient,
          .slot = {cut ? unit.full_gradient_slot : 0},
          .from = each * place.element,
          .length = each * place.elements};
}

// All-gathers the layer's units into the next place of the ring, ahead of use when the ring has two.
void ChunkProgram::gather_layer(SegmentBuilder& out, int layer, bool waits_for_parameters) {
  if (!cuts_parameters(layer)) return;
  gathered_slot_ = gathers_++ % gathered_slots_;
  const Block ring{gathered_, {gathered_slot_}};
  Bytes at = {};
  for (const int index : state_.units_of_layer[static_cast<std::size_t>(layer)]) {
    Instruction gather = gather_unit(index);
    const Bytes bytes = std::get<Collective>(gather.what).bytes;
    gather.name = "gather";
    gather.layer = layers_[static_cast<std::size_t>(layer)].id;
    gather.records.clear();
    gather.writes = {{.buffer = gathered_, .slot = ring.slot, .from = at, .length = bytes}};
    if (at == Bytes{}) {
      gather.acquires.push_back(ring);
      if (gathers_ <= gathered_slots_) gather.waits.push_back({gathered_free_, ring.slot});
    }
    if (waits_for_parameters) gather.waits.push_back({ready_, {index}});
    out.emit(std::move(gather));
    at += bytes;
  }
}

// Before the gradients of `layer` are summed: on their stream the parameters of the next one would have to wait for that.
void ChunkProgram::gather_ahead(SegmentBuilder& out, int layer) {
  if (lowering_.tables.state.back().parameters.ahead < 1) return;
  int next = layer - 1;
  while (next >= 0 && !backward_reads_parameters(layers_[static_cast<std::size_t>(next)])) --next;
  if (next < 0) return;
  const int here = gathered_slot_;
  gather_layer(out, next, false);
  ahead_ = next;
  ahead_slot_ = std::exchange(gathered_slot_, here);
}

void ChunkProgram::release_gathered(SegmentBuilder& out, int layer) {
  if (!cuts_parameters(layer)) return;
  const Block ring{gathered_, {gathered_slot_}};
  out.record_after_last_use(ring, {gathered_free_, ring.slot});
  out.release(ring);
}

}  // namespace foreshard
