#include "strategy/state/model_state.h"

#include <algorithm>

namespace foreshard {

namespace {

std::int64_t elements_of(const std::vector<std::int64_t>& dims) {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

// The layer and parameter of `first`..`last` that holds the token embedding, when a tied copy may share it.
std::optional<std::pair<int, int>> find_embedding(const OpGraph& graph, int first, int last) {
  for (int layer = first; layer < last; ++layer) {
    const LayerGraph& kind = graph.kinds[static_cast<std::size_t>(graph.layers[static_cast<std::size_t>(layer)].kind)];
    if (kind.kind != "embedding") continue;
    for (std::size_t p = 0; p < kind.parameters.size(); ++p)
      if (kind.parameters[p].split_dim == 0 || kind.parameters[p].name == "token.weight")
        return std::pair{layer - first, static_cast<int>(p)};
  }
  return std::nullopt;
}

class StateLayout {
 public:
  StateLayout(Lowering& lowering, Role& role, int chunk, int first, int last)
      : lowering_(lowering), role_(role), chunk_(chunk), first_(first), last_(last) {}

  ChunkState build() {
    state_.places.resize(static_cast<std::size_t>(last_ - first_));
    for (std::size_t l = 0; l < state_.places.size(); ++l) state_.places[l].resize(kind(static_cast<int>(l)).parameters.size());
    embedding_ = find_embedding(lowering_.graph, first_, last_);
    if (lowering_.zero >= 2)
      units_by_layer();
    else
      units_by_bucket();
    pad_units();
    for (std::size_t unit = 0; unit < state_.units.size(); ++unit) add_buffers(static_cast<int>(unit));
    if (lowering_.zero >= 2) add_gradient_ring();
    borrow_embedding();
    hold_tensors();
    list_units_of_layers();
    return std::move(state_);
  }

 private:
  const LayerGraph& kind(int layer) const {
    return lowering_.graph
        .kinds[static_cast<std::size_t>(lowering_.graph.layers[static_cast<std::size_t>(first_ + layer)].kind)];
  }
  bool shares_embedding(const Parameter& parameter) const {
    return parameter.tied && (embedding_.has_value() || lowering_.embedding_here.has_value());
  }
  bool is_tied_copy(int layer, int parameter) const {
    if (!lowering_.tied_group.valid()) return false;
    const Parameter& p = kind(layer).parameters[static_cast<std::size_t>(parameter)];
    return p.tied || (embedding_ && *embedding_ == std::pair{layer, parameter});
  }
  bool partial(const Parameter& parameter) const {
    return parameter.sequence_parallel_grad && lowering_.strategy.sequence_parallel && lowering_.strategy.tp > 1;
  }

  // Parameters that every tp rank holds whole lie apart when their gradients are treated apart: summed over tp, or counted once.
  bool apart(const Parameter& parameter) const {
    return partial(parameter) || (lowering_.measures() && lowering_.strategy.tp > 1 && parameter.split_dim < 0);
  }
  void open_apart(int layer, const Parameter& parameter, int& unit) {
    if (unit >= 0) return;
    unit = open_unit(layer);
    state_.units.back().partial_over_tp = partial(parameter);
    state_.units.back().replicated_over_tp = true;
  }

  void put(int layer, int parameter, int unit) {
    StateUnit& into = state_.units[static_cast<std::size_t>(unit)];
    const std::int64_t elements = elements_of(kind(layer).parameters[static_cast<std::size_t>(parameter)].local);
    state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)] = {unit, into.elements, elements};
    into.elements += elements;
    into.last_layer = std::min(into.last_layer, layer);
  }
  int open_unit(int layer) {
    state_.units.push_back({.last_layer = layer});
    return static_cast<int>(state_.units.size()) - 1;
  }

  // Whole parameters, from the last to the first, until a bucket is full. Tied embeddings and gradients that are partial over
  // tp need a reduction of their own, so they have units of their own.
  void units_by_bucket() {
    const std::int64_t bucket =
        lowering_.replicas > 1
            ? std::max<std::int64_t>(1, lowering_.strategy.bucket.value / size_of(lowering_.types.grad).value)
            : INT64_MAX;
    int open = -1, apart_unit = -1;
    for (int layer = last_ - first_ - 1; layer >= 0; --layer)
      for (int p = static_cast<int>(kind(layer).parameters.size()) - 1; p >= 0; --p) {
        const Parameter& parameter = kind(layer).parameters[static_cast<std::size_t>(p)];
        if (shares_embedding(parameter)) continue;
        if (is_tied_copy(layer, p)) {
          const int unit = open_unit(layer);
          state_.units.back().tied = true;
          put(layer, p, unit);
          continue;
        }
        if (apart(parameter)) {
          open_apart(layer, parameter, apart_unit);
          put(layer, p, apart_unit);
          continue;
        }
        if (open < 0) open = open_unit(layer);
        put(layer, p, open);
        if (state_.units[static_cast<std::size_t>(open)].elements >= bucket) open = -1;
      }
    order_units();
  }

  // Completed first comes first; the sums over tp are issued last of those that complete together.
  void order_units() {
    std::vector<int> order(state_.units.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return state_.units[static_cast<std::size_t>(a)].last_layer > state_.units[static_cast<std::size_t>(b)].last_layer;
    });
    std::vector<int> place(order.size());
    std::vector<StateUnit> sorted;
    for (std::size_t i = 0; i < order.size(); ++i) {
      place[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
      sorted.push_back(state_.units[static_cast<std::size_t>(order[i])]);
    }
    state_.units = std::move(sorted);
    for (auto& layer : state_.places)
      for (ParameterPlace& at : layer) at.unit = place.empty() ? 0 : place[static_cast<std::size_t>(at.unit)];
  }

  void units_by_layer() {
    for (int layer = last_ - first_ - 1; layer >= 0; --layer) {
      int own = -1, apart_unit = -1;
      for (int p = 0; p < static_cast<int>(kind(layer).parameters.size()); ++p) {
        const Parameter& parameter = kind(layer).parameters[static_cast<std::size_t>(p)];
        if (shares_embedding(parameter)) continue;
        const bool alone = is_tied_copy(layer, p) || (embedding_ && *embedding_ == std::pair{layer, p} && has_tied_reader());
        if (alone) {
          const int unit = open_unit(layer);
          state_.units.back().tied = is_tied_copy(layer, p);
          state_.units.back().standalone = true;
          put(layer, p, unit);
        } else if (apart(parameter)) {
          open_apart(layer, parameter, apart_unit);
          state_.units[static_cast<std::size_t>(apart_unit)].standalone = true;
          put(layer, p, apart_unit);
        } else {
          if (own < 0) own = open_unit(layer);
          put(layer, p, own);
        }
      }
    }
  }
  bool has_tied_reader() const {
    for (int layer = 0; layer < last_ - first_; ++layer)
      for (const Parameter& parameter : kind(layer).parameters)
        if (parameter.tied) return true;
    return false;
  }

  void pad_units() {
    for (StateUnit& unit : state_.units) {
      unit.used = unit.elements;
      unit.elements = round_up(unit.elements, lowering_.shards);
    }
    if (!embedding_) return;
    for (std::size_t layer = 0; layer < state_.places.size(); ++layer)
      for (std::size_t p = 0; p < state_.places[layer].size(); ++p)
        if (shares_embedding(kind(static_cast<int>(layer)).parameters[p]))
          state_.places[layer][p] =
              state_.places[static_cast<std::size_t>(embedding_->first)][static_cast<std::size_t>(embedding_->second)];
  }

  // A V placement has the first and the last stage on one rank: the head reads and writes the buffers of the embedding.
  void borrow_embedding() {
    if (embedding_) {
      const ParameterPlace& place =
          state_.places[static_cast<std::size_t>(embedding_->first)][static_cast<std::size_t>(embedding_->second)];
      const StateUnit& unit = state_.units[static_cast<std::size_t>(place.unit)];
      lowering_.embedding_here = {unit.value, unit.gradient, place.element, place.elements};
      return;
    }
    if (!lowering_.embedding_here) return;
    const EmbeddingPlace& here = *lowering_.embedding_here;
    for (std::size_t layer = 0; layer < state_.places.size(); ++layer)
      for (std::size_t p = 0; p < state_.places[layer].size(); ++p) {
        if (!shares_embedding(kind(static_cast<int>(layer)).parameters[p])) continue;
        state_.places[layer][p] = {static_cast<int>(state_.units.size()), here.element, here.elements};
        state_.units.push_back({.elements = here.elements,
                                .used = here.elements,
                                .borrowed = true,
                                .last_layer = -1,
                                .value = here.value,
                                .gradient = here.gradient});
      }
  }

  BufferId add(const std::string& name, Category category, DType dtype, std::int64_t elements, bool resident) {
    Buffer buffer{.name = name, .category = category, .dtype = dtype, .bytes = size_of(dtype) * elements, .resident = resident};
    role_.buffers.push_back(std::move(buffer));
    return {static_cast<std::int32_t>(role_.buffers.size()) - 1};
  }

  void add_buffers(int index) {
    StateUnit& unit = state_.units[static_cast<std::size_t>(index)];
    const StateTypes& types = lowering_.types;
    const std::string tail = "." + std::to_string(chunk_) + "." + std::to_string(index);
    const std::int64_t shard = unit.elements / lowering_.shards;
    unit.value = add("parameters" + tail, Category::Parameters, types.param, lowering_.zero >= 3 ? shard : unit.elements, true);
    unit.gradient = add("gradients" + tail, Category::Gradients, types.grad, lowering_.zero >= 2 ? shard : unit.elements, true);
    const std::int64_t states = lowering_.zero >= 1 ? shard : unit.elements;
    if (types.master) unit.master = add("master" + tail, Category::Optimizer, types.state, states, true);
    const bool adam = lowering_.strategy.optimizer == OptimizerKind::Adam;
    if (adam || lowering_.strategy.momentum > 0)
      unit.momentum = add("momentum" + tail, Category::Optimizer, types.state, states, true);
    if (adam) unit.variance = add("variance" + tail, Category::Optimizer, types.state, states, true);
  }

  // Full-size gradients wait here for their reduce-scatter: two places when it overlaps with the backward.
  void add_gradient_ring() {
    std::int64_t largest = 0;
    for (const StateUnit& unit : state_.units)
      if (!unit.standalone) largest = std::max(largest, unit.elements);
    const int slots = lowering_.strategy.overlap->gradients ? 2 : 1;
    const BufferId ring =
        largest > 0 ? add("gradients.full." + std::to_string(chunk_), Category::Gradients, lowering_.types.grad, largest, false)
                    : BufferId{};
    if (ring.valid()) role_.buffers[ring.index()].offsets.resize(static_cast<std::size_t>(slots));
    int next = 0;
    for (std::size_t i = 0; i < state_.units.size(); ++i) {
      StateUnit& unit = state_.units[i];
      if (unit.standalone) {
        unit.full_gradient = add("gradients.full." + std::to_string(chunk_) + "." + std::to_string(i), Category::Gradients,
                                 lowering_.types.grad, unit.elements, false);
      } else {
        unit.full_gradient = ring;
        unit.full_gradient_slot = next++ % slots;
      }
    }
  }

  TensorId tensor(int layer, int parameter) {
    const Parameter& p = kind(layer).parameters[static_cast<std::size_t>(parameter)];
    const bool is_embedding = p.tied || (embedding_ && *embedding_ == std::pair{layer, parameter});
    if (is_embedding && lowering_.embedding.valid()) return lowering_.embedding;
    const std::string& owner = lowering_.graph.layers[static_cast<std::size_t>(first_ + layer)].name;
    lowering_.plan.tensors.push_back(
        {.name = owner + "." + p.name, .shape = p.shape, .dtype = lowering_.types.param, .init = p.init});
    const TensorId id{static_cast<std::int32_t>(lowering_.plan.tensors.size()) - 1};
    if (is_embedding) lowering_.embedding = id;
    return id;
  }

  void hold(BufferId buffer, const Shard& shard, TensorPart part, bool flat) {
    if (!buffer.valid()) return;
    Shard held = shard;
    held.part = part;
    held.at = size_of(role_.buffers[buffer.index()].dtype) * shard.at.value;  // shard.at counts elements here
    if (flat) held.flat_by = lowering_.over({DenseKind::Data, DenseKind::Context});
    role_.buffers[buffer.index()].holds.push_back(std::move(held));
  }

  void hold_tensors() {
    for (int layer = 0; layer < last_ - first_; ++layer)
      for (int p = 0; p < static_cast<int>(kind(layer).parameters.size()); ++p) {
        const Parameter& parameter = kind(layer).parameters[static_cast<std::size_t>(p)];
        if (shares_embedding(parameter)) continue;
        const ParameterPlace& place = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(p)];
        const StateUnit& unit = state_.units[static_cast<std::size_t>(place.unit)];
        Shard shard{
            .tensor = tensor(layer, p), .blocks = parameter.blocks, .block_rows = parameter.block_rows, .at = {place.element}};
        const std::vector<AxisId> tensor = lowering_.over({DenseKind::Tensor});
        if (parameter.split_dim >= 0 && !tensor.empty()) shard.dim = parameter.split_dim, shard.split_by = tensor;
        hold(unit.value, shard, TensorPart::Value, lowering_.zero >= 3);
        hold(unit.gradient, shard, TensorPart::Gradient, lowering_.zero >= 2);
        hold(unit.full_gradient, shard, TensorPart::Gradient, false);  // one layer after the other
        hold(unit.master, shard, TensorPart::Master, lowering_.zero >= 1);
        hold(unit.momentum, shard, TensorPart::Momentum, lowering_.zero >= 1);
        hold(unit.variance, shard, TensorPart::Variance, lowering_.zero >= 1);
      }
  }

  void list_units_of_layers() {
    for (const auto& layer : state_.places) {
      std::vector<int> units;
      for (const ParameterPlace& place : layer) units.push_back(place.unit);
      std::sort(units.begin(), units.end());
      units.erase(std::unique(units.begin(), units.end()), units.end());
      state_.units_of_layer.push_back(std::move(units));
    }
  }

  Lowering& lowering_;
  Role& role_;
  int chunk_, first_, last_;
  ChunkState state_ = {};
  std::optional<std::pair<int, int>> embedding_ = {};
};

}  // namespace

ChunkState lay_out_state(Lowering& lowering, Role& role, int chunk, int first, int last) {
  return StateLayout(lowering, role, chunk, first, last).build();
}

}  // namespace foreshard
