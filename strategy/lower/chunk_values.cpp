#include "strategy/lower/chunk_values.h"

#include <algorithm>

#include "core/op/eight_bit_factors.h"

namespace foreshard {

std::vector<Param> chunk_params(bool splits, bool versions) {
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
  if (versions) params.push_back({"weights", ParamKind::Slot});
  return params;
}

bool defers(const Operator& op) {
  return !op.communication && !op.weights.empty() && !op.frozen && !(op.weight_grad == OpWork{});
}

int regathered(const ChunkLayer& layer, std::size_t value) {
  if (layer.keep->whole_layer || layer.keep->stored[value]) return -1;
  int gather = -1;
  const auto& operators = layer.graph->operators;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = operators[i];
    const bool makes = op.always_recompute && op.communication && op.communication->forward && !op.outputs.empty() &&
                       static_cast<std::size_t>(op.outputs[0]) == value;
    if (makes && layer.keep->stored[layer.real(op.inputs[0])]) gather = static_cast<int>(i);
    const auto reads = [&](const std::vector<int>& values) {
      return std::any_of(values.begin(), values.end(), [&](int v) { return layer.real(v) == value; });
    };
    if (reads(op.saved) && !(defers(op) && is<ops::MatMul>(op.op))) return -1;
    if (layer.keep->redone[i] && reads(op.inputs)) return -1;
  }
  return gather;
}

static std::vector<char> late_values(const ChunkLayer& layer) {
  std::vector<char> late(layer.graph->values.size(), 0);
  for (const Operator& op : layer.graph->operators) {
    if (!defers(op)) continue;
    for (const int saved : op.saved) {
      const std::size_t value = layer.real(saved);
      late[value] = 1;
      if (const int gather = regathered(layer, value); gather >= 0)
        late[layer.real(layer.graph->operators[static_cast<std::size_t>(gather)].inputs[0])] = 1;
    }
  }
  return late;
}

ChunkValues::ChunkValues(const ChunkFrame& frame, const ChunkSlots& slots, ActivationPool& pool)
    : frame_(frame), slots_(slots), pool_(pool) {
  add_layers();
}

void ChunkValues::add_layers() {
  const int first = frame_.first_layer(), last = first + frame_.layers();
  const OpGraph& graph = frame_.lowering.graph;
  const ActivationPolicy& policy = frame_.lowering.tables.activations;
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
    frame_.role.layers.push_back(layer.name);
    layers.push_back({.graph = &graph.kinds[static_cast<std::size_t>(layer.kind)],
                      .keep = &keeps_[static_cast<std::size_t>(layer.kind) * forms + form],
                      .id = {static_cast<std::int32_t>(frame_.role.layers.size()) - 1},
                      .counted = layer.counted ? counted++ : -1});
    if (frame_.splits()) layers.back().late = late_values(layers.back());
  }
  if (!policy.runs_of_stage.empty()) keep_by_runs();
  for (auto& of_kinds : scratch_) of_kinds.resize(graph.kinds.size());
}

// Border i lies between chunk-local layers i-1 and i.
bool ChunkValues::border_stored(int border) const {
  const auto at = static_cast<std::size_t>(border);
  if (at < layers.size() && layers[at].graph->input >= 0 &&
      layers[at].keep->stored[static_cast<std::size_t>(layers[at].graph->input)])
    return true;
  return at > 0 && layers[at - 1].graph->output >= 0 &&
         layers[at - 1].keep->stored[static_cast<std::size_t>(layers[at - 1].graph->output)];
}

void ChunkValues::add_rings() {
  const auto value_at = [&](int border) -> const Value& {
    const ChunkLayer& layer = layers[static_cast<std::size_t>(border == 0 ? 0 : border - 1)];
    return layer.graph->values[static_cast<std::size_t>(border == 0 ? layer.graph->input : layer.graph->output)];
  };
  const int borders = static_cast<int>(layers.size());
  if (!frame_.first_stage()) {
    const Value& value = value_at(0);
    const Category kept = border_stored(0) ? Category::Activations : Category::Communication;
    input = {frame_.add_buffer("input", kept, value.dtype, value.bytes, slots_.input), {ChunkArgs::input}};
    input_free = frame_.add_event("input_free", slots_.input);
    gradient_out = {frame_.add_buffer("gradient_out", Category::Communication, value.dtype, value.bytes, slots_.gradient_out),
                    {ChunkArgs::gradient_out}};
    gradient_sent = frame_.add_event("gradient_sent", slots_.gradient_out);
  }
  if (!frame_.last_stage()) {
    const Value& value = value_at(borders);
    if (!border_stored(borders))
      output = {frame_.add_buffer("output", Category::Communication, value.dtype, value.bytes, slots_.output),
                {ChunkArgs::output}};
    output_sent =
        frame_.add_event("output_sent", border_stored(borders) ? std::max(slots_.activation, slots_.early) : slots_.output);
    gradient_in = {frame_.add_buffer("gradient_in", Category::Communication, value.dtype, value.bytes, slots_.gradient_in),
                   {ChunkArgs::gradient_in}};
    gradient_free = frame_.add_event("gradient_free", slots_.gradient_in);
  }
}

// Where each forward value lives. Borders that nobody keeps alternate between two scratch slots.
void ChunkValues::add_homes() {
  const int count = static_cast<int>(layers.size());
  Bytes largest_border = {};
  DType border_type = frame_.lowering.compute_type();
  for (ChunkLayer& layer : layers) layer.away.resize(layer.graph->values.size()), layer.back.resize(layer.graph->values.size());
  for (int l = 0; l < count; ++l) {
    ChunkLayer& layer = layers[static_cast<std::size_t>(l)];
    layer.home.resize(layer.graph->values.size());
    for (std::size_t v = 0; v < layer.home.size(); ++v) {
      const Value& value = layer.graph->values[v];
      const int index = static_cast<int>(v);
      if (layer.real(index) != v) continue;  // another name of a value that has a home
      if (index == layer.graph->input) {
        layer.home[v] = l == 0 ? input
                               : layers[static_cast<std::size_t>(l) - 1]
                                     .home[static_cast<std::size_t>(layers[static_cast<std::size_t>(l) - 1].graph->output)];
        continue;
      }
      const bool border = index == layer.graph->output;
      if (border && l + 1 == count && output.buffer.valid()) {
        layer.home[v] = output;
      } else if (layer.keep->stored[v] || (border && border_stored(l + 1))) {
        layer.home[v] = stored_home(l, index);
      } else if (border) {
        layer.home[v] = {{}, {l % 2}};  // border_value, once its size is known
      }
      if (border) {
        largest_border = std::max(largest_border, value.bytes);
        border_type = value.dtype;
      }
    }
  }
  border_value = frame_.add_buffer("border", Category::Transient, border_type, largest_border, 2);
  // With halves the gradient that leaves the chunk may be made here, and copied into its ring.
  if (frame_.splits() && layers[0].graph->input >= 0)
    largest_border = std::max(largest_border, layers[0].graph->values[static_cast<std::size_t>(layers[0].graph->input)].bytes);
  border_gradient = frame_.add_buffer("border.gradient", Category::Transient, border_type, largest_border, 2);
  for (int l = 0; l < count; ++l) {
    ChunkLayer& layer = layers[static_cast<std::size_t>(l)];
    for (const int v : {layer.graph->input, layer.graph->output})
      if (v >= 0 && !layer.home[static_cast<std::size_t>(v)].buffer.valid() && !(l == 0 && v == layer.graph->input))
        layer.home[static_cast<std::size_t>(v)] = {border_value, {v == layer.graph->output ? l % 2 : (l + 1) % 2}};
    for (std::size_t v = 0; v < layer.home.size(); ++v)
      if (!layer.home[v].buffer.valid() && layer.real(static_cast<int>(v)) == v)
        layer.home[v] = {scratch(*layer.graph, static_cast<int>(v), false), {0}};
  }
  std::ranges::sort(moved, {}, &MovedValue::move);
  add_factors();
}

static Bytes factor_bytes(const LayerGraph& graph, const Operator& op) {
  std::vector<std::int64_t> parts;
  for (const int y : op.outputs) parts.push_back(graph.values[static_cast<std::size_t>(y)].dims.back());
  Bytes most = {};
  for (const Phase phase : {Phase::Forward, Phase::InputGrad, Phase::WeightGrad})
    most = std::max(most, eight_bit_memory(op.shapes.front(), phase, parts));
  return {static_cast<std::int64_t>(std::ceil(coded_size(op.shapes.front().dtype) * static_cast<double>(most.value)))};
}

void ChunkValues::add_factors() {
  for (const ChunkLayer& layer : layers)
    for (const Operator& op : layer.graph->operators)
      if (is<ops::MatMul>(op.op) && !op.communication && is_code(op.shapes.front().dtype) && !factors_.contains(&op))
        factors_[&op] = frame_.add_buffer(layer.graph->kind + "." + op.name + ".factors", Category::Transient, DType::U8,
                                          factor_bytes(*layer.graph, op), 1);
}

Block ChunkValues::factors(const Operator& op) const {
  const auto found = factors_.find(&op);
  return found == factors_.end() ? Block{} : Block{found->second, {0}};
}

const ActivationRow* ChunkValues::row(int layer) const {
  const ActivationPolicy& policy = frame_.lowering.tables.activations;
  const int index = policy.row_of(frame_.first_layer() + layer);
  return index < 0 ? nullptr : &policy.rows[static_cast<std::size_t>(index)];
}

// A value that waits for the backward. In the pool: the same place for an equal layer of every chunk, except for what
// crosses the chunk's end, which some chunks send away instead.
Block ChunkValues::stored_home(int l, int value) {
  const ChunkLayer& layer = layers[static_cast<std::size_t>(l)];
  if (const ValueMove* move = move_of(l, value)) return moved_home(l, value, *move);
  if (const Space space = space_of(l, value); space != Space::Device) return passing_home(l, value, space);
  const Value& shape = layer.graph->values[static_cast<std::size_t>(value)];
  const bool next_counted = l + 1 < static_cast<int>(layers.size()) && layers[static_cast<std::size_t>(l) + 1].counted >= 0;
  const int place = pool_.place(frame_.chunk, layer.counted);
  const bool pooled = place >= 0 && (value != layer.graph->output || next_counted);
  const auto add = [&](int count) {
    return frame_.add_buffer(frame_.role.layers[layer.id.index()] + "." + shape.name, Category::Activations, shape.dtype,
                             shape.bytes, count);
  };
  const auto late = [&](const ChunkLayer& reader, int name) {
    return name >= 0 && reader.late[reader.real(name)];  // the weight gradients read it
  };
  const bool early = frame_.splits() && !late(layer, value) &&
                     !(value == layer.graph->output && l + 1 < static_cast<int>(layers.size()) &&
                       late(layers[static_cast<std::size_t>(l) + 1], layers[static_cast<std::size_t>(l) + 1].graph->input));
  if (!pooled && early) return {add(slots_.early), {ChunkArgs::early}};
  if (!pooled) return {add(slots_.activation), {ChunkArgs::activation}};
  BufferId& known = pool_.buffers[{place, value, early}];
  if (!known.valid()) known = add(early ? pool_.early : pool_.slots);
  return {known, {early ? ChunkArgs::pooled_early : ChunkArgs::pooled}};
}

// Buffers shared by all layers of a kind: a value that dies inside its layer, and the gradient of a value.
BufferId ChunkValues::scratch(const LayerGraph& graph, int value, bool gradient) {
  const auto kind = static_cast<std::size_t>(&graph - frame_.lowering.graph.kinds.data());
  std::vector<BufferId>& known = scratch_[gradient ? 1 : 0][kind];
  known.resize(graph.values.size());
  BufferId& id = known[static_cast<std::size_t>(value)];
  if (!id.valid()) {
    const Value& shape = graph.values[static_cast<std::size_t>(value)];
    id = frame_.add_buffer(graph.kind + "." + shape.name + (gradient ? ".gradient" : ""), Category::Transient, shape.dtype,
                           shape.bytes, gradient ? 2 : 1);
  }
  return id;
}

// A place from the input to the weight gradient, for a gradient (`held` >= 0) or a value made again. Chunks with equal layers
// share them, one for each position.
Block ChunkValues::deferred_home(int l, int value, int held) {
  const bool gradient = held >= 0;
  const auto [known, fresh] = deferred_homes_.try_emplace(gradient ? std::pair{-1, held} : std::pair{l, value});
  if (!fresh) return known->second;
  const ChunkLayer& layer = layers[static_cast<std::size_t>(l)];
  const Value& shape = layer.graph->values[static_cast<std::size_t>(value)];
  const auto add = [&](int slots, int chunk) {
    const std::string name = frame_.role.layers[layer.id.index()] + "." + shape.name + (gradient ? ".gradient" : "") + ".kept";
    const BufferId buffer = frame_.add_buffer(name, Category::Activations, shape.dtype, shape.bytes, slots);
    pool_.deferred_buffers.emplace_back(buffer, chunk);
    return buffer;
  };
  const int place = pool_.place(frame_.chunk, layer.counted);
  const std::tuple<int, int, bool> key{place, -1 - 2 * value - (gradient ? 1 : 0),
                                       false};  // values of the forward are not negative
  const bool twice = std::any_of(deferred_homes_.begin(), deferred_homes_.end(), [&](const auto& other) {
    const auto found = pool_.buffers.find(key);
    return found != pool_.buffers.end() && other.second.buffer == found->second;
  });
  if (place < 0 || twice) {
    known->second = {add(slots_.deferred, frame_.chunk), {ChunkArgs::deferred}};
  } else {
    BufferId& pooled = pool_.buffers[key];
    if (!pooled.valid()) pooled = add(pool_.deferred, -1);
    known->second = {pooled, {ChunkArgs::pooled_deferred}};
  }
  return known->second;
}

}  // namespace foreshard
