#include "strategy/state/model_state.h"

#include <algorithm>
#include <map>

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
    fill_units();
    pad_units();
    choose_units_away();
    for (std::size_t unit = 0; unit < state_.units.size(); ++unit) add_buffers(static_cast<int>(unit));
    add_gradient_ring();
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
  const StatePolicy& rows() const { return lowering_.tables.state; }
  const StateRow& row_of(const StateUnit& unit) const { return rows()[static_cast<std::size_t>(unit.row)]; }
  bool is_embedding(int layer, int parameter) const { return embedding_ && *embedding_ == std::pair{layer, parameter}; }

  int row_of(int layer, int parameter) const {
    const Parameter& p = kind(layer).parameters[static_cast<std::size_t>(parameter)];
    const auto holds = [&](const StateRow& row) { return belongs(p, is_embedding(layer, parameter), row.tensors); };
    return static_cast<int>(std::ranges::find_if(rows(), holds) - rows().begin());
  }

  // The most elements of a bucket; no limit where gradients are neither summed over replicas nor shared by servers.
  std::int64_t limit(const StateRow& row) const {
    const auto summed = [&](const GradientSum& sum) { return lowering_.ranks(sum.over) > 1; };
    if (row.bucket == Bytes{} || (!row.served && std::ranges::none_of(row.gradients.sums, summed))) return INT64_MAX;
    return std::max<std::int64_t>(1, row.bucket.value / size_of(row.gradients.dtype).value);
  }

  void put(int layer, int parameter, int unit) {
    StateUnit& into = state_.units[static_cast<std::size_t>(unit)];
    const std::int64_t elements = elements_of(kind(layer).parameters[static_cast<std::size_t>(parameter)].local);
    state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(parameter)] = {unit, into.elements, elements};
    into.elements += elements;
    into.last_layer = std::min(into.last_layer, layer);
  }

  // Puts whole parameters into units, from the last layer to the first. A row's unit stays open until it is full or, for units that are
  // layers or tensors, until the layer ends or the unit has its tensor. Buckets take the parameters of a layer in the order of the
  // backward, other units in the order of the layer.
  void fill_units() {
    std::vector<int> open(rows().size(), -1);
    for (int layer = last_ - first_ - 1; layer >= 0; --layer) {
      const int count = static_cast<int>(kind(layer).parameters.size());
      const bool buckets = rows().back().unit == Unit::Bucket;
      for (int i = 0; i < count; ++i) {
        const int p = buckets ? count - 1 - i : i;
        if (shares_embedding(kind(layer).parameters[static_cast<std::size_t>(p)])) continue;
        const int index = row_of(layer, p);
        const StateRow& row = rows()[static_cast<std::size_t>(index)];
        int& unit = open[static_cast<std::size_t>(index)];
        if (unit < 0) {
          unit = static_cast<int>(state_.units.size());
          state_.units.push_back({.row = index, .frozen = !row.trained, .last_layer = layer});
        }
        put(layer, p, unit);
        if (row.unit == Unit::Tensor || state_.units[static_cast<std::size_t>(unit)].elements >= limit(row)) unit = -1;
      }
      for (std::size_t row = 0; row < open.size(); ++row)
        if (rows()[row].unit == Unit::Layer) open[row] = -1;
    }
    order_units();
  }

  // Sorts units by the layer whose backward completes them, last layer first; units of one layer keep their order.
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

  // Pads to equal parts for all ranks; where codes are sent, to parts of whole words of codes.
  std::int64_t padded(std::int64_t elements, const StateRow& row) const {
    const int ranks = lowering_.ranks(row.optimizer.cut_by);
    for (const GradientSum& sum : row.gradients.sums)
      if (!sum.first.empty()) return round_up(elements, lowering_.ranks(sum.first));
    for (const GradientSum& sum : row.gradients.sums)
      if (sum.coding && ranks > 1) return ops::CodeForm{.parts = ranks}.part_elements(elements) * ranks;
    return round_up(elements, ranks);
  }

  void pad_units() {
    for (StateUnit& unit : state_.units) {
      unit.used = unit.elements;
      unit.elements = padded(unit.elements, row_of(unit));
    }
    if (!embedding_) return;
    for (std::size_t layer = 0; layer < state_.places.size(); ++layer)
      for (std::size_t p = 0; p < state_.places[layer].size(); ++p)
        if (shares_embedding(kind(static_cast<int>(layer)).parameters[p]))
          state_.places[layer][p] =
              state_.places[static_cast<std::size_t>(embedding_->first)][static_cast<std::size_t>(embedding_->second)];
  }

  // The states of the first units are away, because their gradients are complete first; those of the last units stay, up to the share that
  // the row keeps.
  void choose_units_away() {
    double all = 0, before = 0;
    for (const StateUnit& unit : state_.units) all += unit.frozen ? 0 : static_cast<double>(unit.elements);
    for (StateUnit& unit : state_.units) {
      if (unit.frozen) continue;
      const StateRow::Optimizer& row = row_of(unit).optimizer;
      unit.states_away = row_of(unit).moves_states() && before < all * (1 - row.kept);
      before += static_cast<double>(unit.elements);
    }
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
                                .frozen = !here.gradient.valid(),
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
    const StateRow& row = row_of(unit);
    const std::string tail = "." + std::to_string(chunk_) + "." + std::to_string(index);
    const auto part = [&](const Kinds& cut_by) { return unit.elements / lowering_.ranks(cut_by); };
    unit.value = add("parameters" + tail, Category::Parameters, row.parameters.dtype, part(row.parameters.cut_by), true);
    role_.buffers[unit.value.index()].space = row.parameters.home;
    if (unit.frozen) return;
    role_.buffers[unit.value.index()].offsets.resize(static_cast<std::size_t>(lowering_.weight_slots));
    if (row.gradients.kept) {
      unit.gradient = add("gradients" + tail, Category::Gradients, row.gradients.dtype, part(row.gradients.cut_by), true);
      role_.buffers[unit.gradient.index()].space = row.gradients.home;
    }
    const auto state = [&](bool wanted, const char* name) {
      if (!wanted) return BufferId{};
      const BufferId id = add(name + tail, Category::Optimizer, row.optimizer.dtype, part(row.optimizer.cut_by), true);
      if (unit.states_away) role_.buffers[id.index()].space = row.optimizer.home;
      return id;
    };
    unit.master = state(row.optimizer.master, "master");
    unit.momentum = state(row.optimizer.momentum, "momentum");
    unit.variance = state(row.optimizer.variance, "variance");
  }

  // Whole gradients that are cut or away wait in these places for their reduce-scatter and their copy out.
  void add_gradient_ring() {
    std::int64_t largest = 0;
    int slots = 0;
    for (StateUnit& unit : state_.units) {
      const StateRow::Gradients& gradients = row_of(unit).gradients;
      if (!row_of(unit).writes_gradients_to_slots()) continue;
      unit.standalone = gradients.slots == 0;
      if (!unit.standalone) largest = std::max(largest, unit.elements), slots = gradients.slots;
    }
    std::map<std::int64_t, BufferId> rings;  // by elements of a slot
    const auto ring_of = [&](std::int64_t elements) {
      BufferId& ring = rings[elements];
      if (ring.valid()) return ring;
      const std::string tail = rings.size() > 1 ? ".size " + std::to_string(rings.size() - 1) : "";
      ring = add("gradients.full." + std::to_string(chunk_) + tail, Category::Gradients, rows().back().gradients.dtype,
                 elements, false);
      role_.buffers[ring.index()].offsets.resize(static_cast<std::size_t>(slots));
      return ring;
    };
    if (largest > 0 && !lowering_.places_by_size()) ring_of(largest);
    int next = 0;
    for (std::size_t i = 0; i < state_.units.size(); ++i) {
      StateUnit& unit = state_.units[i];
      if (!row_of(unit).writes_gradients_to_slots()) continue;
      if (unit.standalone) {
        unit.full_gradient = add("gradients.full." + std::to_string(chunk_) + "." + std::to_string(i), Category::Gradients,
                                 row_of(unit).gradients.dtype, unit.elements, false);
      } else {
        unit.full_gradient = ring_of(lowering_.places_by_size() ? unit.elements : largest);
        unit.full_gradient_slot = next++ % slots;
      }
      if (!row_of(unit).gradients.kept) unit.gradient = unit.full_gradient;
    }
  }

  TensorId tensor(int layer, int parameter) {
    const Parameter& p = kind(layer).parameters[static_cast<std::size_t>(parameter)];
    const bool shared = p.tied || is_embedding(layer, parameter);
    if (shared && lowering_.embedding.valid()) return lowering_.embedding;
    const std::string& owner = lowering_.graph.layers[static_cast<std::size_t>(first_ + layer)].name;
    const bool held_twice = lowering_.tables.schedule.routes > 1;
    if (held_twice)
      if (const auto known = lowering_.tensor_of.find(owner + "." + p.name); known != lowering_.tensor_of.end())
        return known->second;
    lowering_.plan.tensors.push_back({.name = owner + "." + p.name,
                                      .shape = p.shape,
                                      .dtype = rows().back().parameters.dtype,
                                      .init = p.init,
                                      .grid = p.grid,
                                      .frozen = p.frozen});
    const TensorId id{static_cast<std::int32_t>(lowering_.plan.tensors.size()) - 1};
    if (shared) lowering_.embedding = id;
    if (held_twice) lowering_.tensor_of.emplace(owner + "." + p.name, id);
    return id;
  }

  void hold(BufferId buffer, const Shard& shard, TensorPart part, const std::vector<AxisId>& flat_by = {}) {
    if (!buffer.valid()) return;
    Shard held = shard;
    held.part = part;
    held.at = size_of(role_.buffers[buffer.index()].dtype) * shard.at.value;  // shard.at counts elements here
    held.flat_by = flat_by;
    role_.buffers[buffer.index()].holds.push_back(std::move(held));
  }

  // Room for the shards of each unit's parameters in the buffers of the unit, so that they are not moved as the lists grow.
  void reserve_shards() {
    std::vector<std::size_t> parameters(state_.units.size(), 0);
    for (const auto& layer : state_.places)
      for (const ParameterPlace& place : layer)
        if (place.unit >= 0) ++parameters[static_cast<std::size_t>(place.unit)];
    for (std::size_t u = 0; u < state_.units.size(); ++u) {
      const StateUnit& unit = state_.units[u];
      for (const BufferId buffer : {unit.value, unit.gradient, unit.master, unit.momentum, unit.variance})
        if (buffer.valid())
          role_.buffers[buffer.index()].holds.reserve(role_.buffers[buffer.index()].holds.size() + parameters[u]);
    }
  }

  void hold_tensors() {
    reserve_shards();
    struct Cuts {  // the axes that each tensor of a row is cut along
      std::vector<AxisId> parameters = {}, gradients = {}, optimizer = {};
    };
    std::vector<Cuts> cuts;
    for (const StateRow& row : rows())
      cuts.push_back({.parameters = lowering_.over(row.parameters.cut_by),
                      .gradients = lowering_.over(row.gradients.cut_by),
                      .optimizer = lowering_.over(row.optimizer.cut_by)});
    for (int layer = 0; layer < last_ - first_; ++layer)
      for (int p = 0; p < static_cast<int>(kind(layer).parameters.size()); ++p) {
        const Parameter& parameter = kind(layer).parameters[static_cast<std::size_t>(p)];
        if (shares_embedding(parameter)) continue;
        const ParameterPlace& place = state_.places[static_cast<std::size_t>(layer)][static_cast<std::size_t>(p)];
        const StateUnit& unit = state_.units[static_cast<std::size_t>(place.unit)];
        Shard shard{
            .tensor = tensor(layer, p), .blocks = parameter.blocks, .block_rows = parameter.block_rows, .at = {place.element}};
        const std::vector<AxisId> cut = lowering_.over(parameter.split_over);
        if (parameter.split_dim >= 0 && !cut.empty()) shard.dim = parameter.split_dim, shard.split_by = cut;
        const StateRow& row = row_of(unit);
        const Cuts& by = cuts[static_cast<std::size_t>(unit.row)];
        hold(unit.value, shard, TensorPart::Value, by.parameters);
        if (row.trained && row.gradients.kept) hold(unit.gradient, shard, TensorPart::Gradient, by.gradients);
        hold(unit.full_gradient, shard, TensorPart::Gradient);  // one layer after the other
        hold(unit.master, shard, TensorPart::Master, by.optimizer);
        hold(unit.momentum, shard, TensorPart::Momentum, by.optimizer);
        hold(unit.variance, shard, TensorPart::Variance, by.optimizer);
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
