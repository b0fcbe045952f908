#include "strategy/state/sum_parts.h"

#include <algorithm>
#include <cmath>

#include "core/base/at.h"
#include "core/network/network.h"
#include "strategy/state/sum_order.h"

namespace foreshard {

namespace {

constexpr double kProducts = 0.5, kMemory = 0.8;  // shares of the device's peak FLOP/s and bandwidth that operators reach
constexpr std::int64_t kWhole = 64;               // the size of a part is a multiple of this number of elements

struct LayerTimes {
  double forward = 0, backward = 0;
};

LayerTimes times_of(const LayerGraph& layer, const Gpu& gpu, DType compute) {
  const double flops = peak(gpu, compute).value * kProducts, bytes = gpu.memory_bandwidth.value * kMemory;
  const auto time = [&](const OpWork& work) {
    return std::max(work.flops.value / flops, static_cast<double>(work.traffic.value) / bytes);
  };
  LayerTimes times;
  for (const Operator& op : layer.operators) {
    times.forward += time(op.forward);
    times.backward += time(op.input_grad) + time(op.weight_grad);
  }
  return times;
}

// The route from device 0 to the last replica in its group.
Route furthest(const Network& network, const Lowering& lowering, int replicas) {
  int stride = 1;
  for (const AxisId axis : lowering.plan.placement.order) {
    if (!axis.valid()) {
      stride *= lowering.tables.schedule.ranks();
      continue;
    }
    const Axis& of = lowering.plan.axes[axis.index()];
    if (is_of(of, {DenseKind::Data, DenseKind::Context, DenseKind::OuterData})) break;
    stride *= of.size;
  }
  return network.route({0}, {std::min(stride * (replicas - 1), network.devices() - 1)});
}

class Ordering {
 public:
  Ordering(const ChunkFrame& frame, const ChunkState& state) : frame_(frame), state_(state), network_(frame.lowering.cluster) {
    for (int l = 0; l < frame.layers(); ++l) {
      const OpGraph& graph = frame.lowering.graph;
      const OpGraph::Layer& layer = graph.layers[at(frame.first_layer() + l)];
      times_.push_back(times_of(graph.kinds[at(layer.kind)], network_.gpu({0}), frame.lowering.compute_type()));
    }
    for (int u = 0; u < static_cast<int>(state.units.size()); ++u)
      if (state.units[at(u)].updated() && row(u).optimizer.beside_forward) units_.push_back(u);
    std::ranges::stable_sort(units_, {}, [&](int u) { return first_layer(u); });
  }

  std::vector<SumPart> parts() const {
    const CommunicationRow& way = frame_.lowering.communication(Purpose::GradientSum);
    const auto wire = [](Bytes bytes) { return static_cast<double>(bytes.value); };
    int replicas = 1;
    std::vector<SummedUnit> summed;
    for (const int u : units_) {
      replicas = std::max(replicas, frame_.lowering.ranks(row(u).gradients.sums.front().over));
      summed.push_back({.ready = {ready(u)}, .bytes = wire(each(u) * state_.units[at(u)].elements), .forward = {forward(u)}});
    }
    if (replicas < 2) return {};
    const Route route = furthest(network_, frame_.lowering, replicas);
    const SumChannel channel{.bandwidth = route.rate * (replicas / (2.0 * (replicas - 1))),
                             .latency = route.latency * (2.0 * (replicas - 1)),
                             .order = way.order,
                             .partition = wire(way.partition),
                             .credit = wire(way.credit)};
    std::vector<SumPart> order;
    for (const SentPart& part : schedule_sums(summed, channel).parts) add(order, units_[at(part.unit)], part);
    return order;
  }

 private:
  const StateRow& row(int u) const { return frame_.lowering.tables.state[at(state_.units[at(u)].row)]; }
  Bytes each(int u) const { return size_of(row(u).gradients.dtype); }
  bool reads(int layer, int u) const {
    const std::vector<int>& of = state_.units_of_layer[at(layer)];
    return std::ranges::find(of, u) != of.end();
  }
  int first_layer(int u) const {
    for (int l = 0; l < frame_.layers(); ++l)
      if (reads(l, u)) return l;
    return frame_.layers();
  }
  double ready(int u) const {
    double time = 0;
    for (int l = frame_.layers() - 1; l >= state_.units[at(u)].last_layer; --l) time += times_[at(l)].backward;
    return time;
  }
  // Forward seconds of the layers that wait for this unit and for none after it.
  double forward(int u) const {
    double time = 0;
    const auto here = std::ranges::find(units_, u);
    for (int l = 0; l < frame_.layers(); ++l)
      if (reads(l, u) && std::none_of(here + 1, units_.end(), [&](int other) { return reads(l, other); }))
        time += times_[at(l)].forward;
    return time;
  }

  // Rounds parts down to multiples of kWhole elements; the last part of a unit takes the remainder.
  void add(std::vector<SumPart>& order, int u, const SentPart& part) const {
    const std::int64_t elements = state_.units[at(u)].elements;
    const auto whole = [&](double bytes) {
      const auto element = static_cast<std::int64_t>(std::llround(bytes / static_cast<double>(each(u).value)));
      return element >= elements ? elements : element / kWhole * kWhole;
    };
    const std::int64_t first = whole(part.first), end = whole(part.first + part.bytes);
    if (end > first) order.push_back({.unit = u, .first = first, .elements = end - first, .last = end == elements});
  }

  const ChunkFrame& frame_;
  const ChunkState& state_;
  Network network_;
  std::vector<LayerTimes> times_ = {};
  std::vector<int> units_ = {};  // as the next forward needs them
};

}  // namespace

std::vector<SumPart> order_of_sums(const ChunkFrame& frame, const ChunkState& state) {
  const bool wanted =
      std::ranges::any_of(frame.lowering.tables.state, [](const StateRow& row) { return row.optimizer.beside_forward; });
  return wanted ? Ordering(frame, state).parts() : std::vector<SumPart>{};
}

}  // namespace foreshard
