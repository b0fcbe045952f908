// What the screen says of stages that share a NIC: their transfers take turns, their collectives have a part of it each.
#include <algorithm>
#include <cmath>

#include "strategy/estimate_screen.h"

namespace foreshard {

namespace {

enum Kind { First, Middle, Last, Only };

}  // namespace

// Where stages share a NIC, each has as much less of it as the others are talking, the more of the time they do so, and all
// together no micro-batch takes less than what they send: by how much micro-batches take longer than `times`, where stages have
// it for themselves. `plain`: without what ZeRO 2 and 3 send.
double Screen::shared(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const Layers& layers,
                      const PipelineTimes& plain, const PipelineTimes& times) const {
  constexpr int kPasses = 3;
  const bool sharded = point.zero >= 2 && point.dp * point.cp > 1;
  const double grad = static_cast<double>(size_of(types_.grad).value), param = static_cast<double>(size_of(types_.param).value);
  const double once = 1.0 / roles_between(point);
  const auto own = [&](int kind) { return once * shape.communication.of(kind, layers[static_cast<std::size_t>(kind)]); };
  const auto talk = [&](int kind) {  // of a micro-batch, on the NIC
    double seconds = grid.tensor_crowd > 1 ? own(kind) : 0;
    if (!sharded || grid.shards_crowd <= 1) return seconds;
    const double all = layers[static_cast<std::size_t>(kind)], layer = shape.parameters.layer;
    const double end = kind == Middle ? 0 : shape.parameters.one[static_cast<std::size_t>(kind)] - layer;
    const double gathers = point.zero < 3 ? 0 : kind == Last ? 2 : 1;
    seconds += all * grid.collective_time(CollectiveKind::ReduceScatter, layer * grad) +
               grid.collective_time(CollectiveKind::ReduceScatter, end * grad) +
               gathers * grid.collective_time(CollectiveKind::AllGather, end * param);
    return seconds + (point.zero < 3 ? 0 : 2 * all * grid.collective_time(CollectiveKind::AllGather, layer * param));
  };
  const double together = std::min<double>(point.pp, std::round(std::max(grid.tensor_crowd, grid.shards_crowd)));
  const double chunks = point.virtual_stages - 1, first = talk(First), last = talk(Last), middle = talk(Middle);
  const double load =
      together * chunks * middle + first + (together >= point.pp ? (together - 2) * middle + last : (together - 1) * middle);
  const auto both = [](const PipelineTimes& of, int kind) {
    return of.forward[static_cast<std::size_t>(kind)] + of.backward[static_cast<std::size_t>(kind)];
  };
  const int busiest = both(times, First) >= both(times, Last) ? First : Last;
  const double alone = both(times, busiest) + chunks * both(times, Middle), mine = talk(busiest) + chunks * middle;
  double period = alone;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double slower = std::min(together, 1 + (load - mine) / period);
    PipelineTimes slowed = plain;
    for (const int kind : {static_cast<int>(Middle), busiest}) {
      const auto k = static_cast<std::size_t>(kind);
      const double forward = once * shape.forward_communication.of(kind, layers[k]);
      const double more = std::min(slower, grid.tensor_crowd) - 1;
      slowed.forward[k] += more * forward, slowed.backward[k] += more * (own(kind) - forward);
    }
    if (sharded) shard(point, shape, grid, layers, std::min(slower, grid.shards_crowd), slowed);
    period = both(slowed, busiest) + chunks * both(slowed, Middle);
  }
  return (times.microbatches - 1) * std::max(0.0, std::max(period, load) - alone);
}

// How much longer the play of a few micro-batches says that a pipeline takes than the closed form does: `moving` without
// transfers in the actions, `plain` with those that do not overlap, `times` with what ZeRO 2 and 3 add.
double Screen::beyond_closed_form(const Point& point, const ShapeCosts& shape, const GridCosts& grid,
                                  const PipelineTimes& moving, const PipelineTimes& plain, const PipelineTimes& times) const {
  if (base_.microbatch_group != 0 && base_.microbatch_group != point.pp) return 0;
  PipelineTimes played = moving;
  for (std::size_t kind = 0; kind < played.forward.size(); ++kind) {
    played.forward[kind] += times.forward[kind] - plain.forward[kind];
    played.backward[kind] += times.backward[kind] - plain.backward[kind];
  }
  const auto seconds = play_pipeline(point.schedule, played, grid.ways, shape.hop_bytes, point.overlap_p2p);
  return seconds ? *seconds - pipeline_time(point.schedule, times) : 0;
}

}  // namespace foreshard
