// What the screen plays of a pipeline whose ranks have links of their own: chunks that wait for each other, and what each says to its
// replicas.
#include <algorithm>

#include "strategy/estimate/estimate_screen.h"
#include "strategy/estimate/estimate_streams.h"

namespace foreshard {

namespace {
enum Kind { First, Middle, Last, Only };
}

StreamTimes Screen::streams_of(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const PipelineTimes& times,
                               const Fewer& fewer) const {
  const Layers layers = layers_of(point);
  const bool sharded = point.zero >= 2 && point.dp * point.cp > 1;
  const auto scattered = [&](double elements) {
    return grid.collective_time(CollectiveKind::ReduceScatter, elements * static_cast<double>(size_of(types_.grad).value));
  };
  const auto gathered = [&](double elements) {
    const double bytes = elements * static_cast<double>(size_of(types_.param).value);
    return point.zero < 3 ? 0 : grid.collective_time(CollectiveKind::AllGather, bytes);
  };
  const auto over_groups = [&](double elements) {
    return grid.replicas_time(elements * static_cast<double>(size_of(types_.grad).value) / shards_of(point));
  };
  StreamTimes streams{.gather_places = point.overlap_parameters ? 2 : 1, .reduce_places = point.overlap_gradients ? 2 : 1};
  for (std::size_t rank = 0; rank < fewer.size(); ++rank) streams.fewer[rank] = fewer[rank];
  if (sharded) {
    // Where either is short most of it is latency.
    const double said = scattered(shape.parameters.layer),
                 latency = grid.collective_time(CollectiveKind::ReduceScatter, GridCosts::kLeast);
    streams.hop_on_link = grid.hop_per_byte * shape.hop_bytes * std::max(0.0, 1 - latency / said);
    streams.hop_speed = grid.hop_speed, streams.talk_beside_hop = grid.shards_beside_hop;
  }
  for (const int kind : {First, Middle, Last}) {
    const auto k = static_cast<std::size_t>(kind);
    ChunkStreams& of = streams.of[k];
    of = {.forward = times.forward[k], .backward = times.backward[k], .head = shape.head, .rest = shape.rest};
    of.layers = std::max(1, static_cast<int>(layers[k]));
    of.redone = shape.redone[k], of.redo = shape.redo, of.redone_head = shape.redone_head;
    if (shape.redo > 0) of.head = shape.kept_head;
    if (!sharded) continue;
    const double layer = shape.parameters.layer, end = std::max(0.0, shape.parameters.one[k] - layer);
    const bool groups = point.zero_group > 0 && point.zero_group < point.dp;
    of.scatter = scattered(layer), of.gather = gathered(layer), of.groups = groups ? over_groups(layer) : 0;
    if (kind != Middle && end > 0) {
      const double tied = kind == Last && tied_ ? std::min(end, tied_elements(point.tp)) : 0;
      of.end = kind == First ? -1 : 1;
      of.forward_end = std::max(0.0, shape.forward.one[k] - shape.forward.layer);
      of.backward_end = std::max(0.0, shape.backward.one[k] - shape.redone[k] * shape.redo - shape.backward.layer);
      of.end_scatter = scattered(end - tied), of.tied_scatter = tied > 0 ? scattered(tied) : 0, of.end_gather = gathered(end);
      of.end_groups = groups ? over_groups(end) : 0;
    }
    const double own = shape.communication.of(kind, layers[k]), own_forward = shape.forward_communication.of(kind, layers[k]);
    const Dense forward(grid, of.forward, own_forward), backward(grid, of.backward, own - own_forward);
    of.compute_speed = {of.forward / forward.time, of.backward / backward.time};
    of.talk_speed = {forward.carried / forward.time, backward.carried / backward.time};
  }
  return streams;
}

std::optional<double> Screen::streamed(const Point& point, const ShapeCosts& shape, const GridCosts& grid,
                                       const PipelineTimes& times, const Fewer& fewer) const {
  if (base_.microbatch_group != 0 && base_.microbatch_group != point.pp) return {};
  return play_streams(point.schedule, times, streams_of(point, shape, grid, times, fewer), point.overlap_p2p);
}

}  // namespace foreshard
