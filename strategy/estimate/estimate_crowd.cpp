// What the screen says of stages that share a NIC: their transfers take turns, their collectives have a part of it each.
#include <algorithm>
#include <cmath>

#include "strategy/estimate/estimate_screen.h"

namespace foreshard {

namespace {

enum Kind { First, Middle, Last, Only };

// Seconds of what ZeRO 2 and 3 say of a chunk: of a layer, of the embedding or the head.
struct LayerTalk {
  double forward = 0, backward = 0, layers = 1, head_part = 0, rest = 0;
  double scatter = 0, end_scatter = 0, groups = 0, end_groups = 0, gather = 0, end_gather = 0;
  double left = 1;  // of the compute units beside it
  double head = 0;  // of backward: seconds before the layers
  double forward_head = 0;
};

// Seconds of what a backward says of a layer, with sums over groups, and of its head.
struct BackwardTalk {
  double each = 0, scatter = 0, head = 0, end_scatter = 0, groups = 0, end_groups = 0;
};

// With one place the next weight gradient stands still for what is not hidden of a reduction: a layer goes on beside the one before it until its
// first weight gradient, and beside the head's, whose place is another one, as a whole. Where gathers have one place only, too, gathers, computes and
// reductions of a layer come one after the other; the first gather may be there before, the last reduction ends after.
void say_in_turn(bool waits, const LayerTalk& says, const BackwardTalk& of, TalkStep& step) {
  const double layers = says.layers, gather = waits ? says.gather : 0;
  const double early = of.each * says.head_part / says.left, own = std::min(of.scatter, early);
  const double behind_head = std::min(of.end_scatter + of.scatter, of.each / says.left + early);
  const double hidden = waits ? 0 : (layers - 1 - of.head) * own + of.head * behind_head;
  step.ahead = of.head > 0 && waits ? says.end_gather : gather;
  const double shards = (layers - 1) * (says.scatter + gather) + of.head * (says.end_scatter + gather);
  const double all = shards + (layers - 1) * of.groups + of.head * of.end_groups;
  const double shown = std::max(0.0, all - hidden) / std::max(1e-30, all);
  step.still[Links::OfShards] = shards * shown;
  step.still[Links::OfReplicas] = (all - shards) * shown;
  step.compute += all * shown;
  step.begin_hold = waits ? 0 : TalkStep::kNoHold;
  step.after += of.scatter;
  if (hidden <= 0) return;
  step.said = all * (1 - shown), step.said_at = of.head > 0 ? says.head : step.compute / layers;
  step.hold = 0, step.free = step.compute * (1 - (1 - says.head_part) / layers);
}

// Else the stream's order is what the first two units gather, the first one's reduction, the third one's gather, the second one's reduction, ... Sums
// over the groups keep no place, but the next reduction is behind them.
void say_backward(const Point& point, int kind, const LayerTalk& says, double groups, double end_groups, TalkStep& step) {
  const double b = says.backward, layers = says.layers, more = layers - 1, gather = says.gather;
  const BackwardTalk of{.each = (b - says.head) / layers,
                        .scatter = says.scatter + groups,
                        .head = kind == Last ? 1.0 : 0.0,
                        .end_scatter = says.end_scatter + end_groups,
                        .groups = groups,
                        .end_groups = end_groups};
  const bool waits = point.zero == 3 && !point.overlap_parameters, two = point.overlap_gradients || groups > 0;
  const bool has_head = of.head > 0;
  step.over_groups = groups / std::max(1e-30, of.scatter);
  step.after = kind == First ? of.end_scatter : 0;
  if (waits || (point.zero == 2 && !two && layers > 1)) return say_in_turn(waits, says, of, step);
  const double places = two ? 2 : 1, gathers = std::max(0.0, has_head ? more : layers - 2) * gather;
  step.ahead = has_head ? says.end_gather + gather : std::min(2.0, layers) * gather;
  if (gather > 0) step.begin_hold = step.ahead - (has_head ? says.end_gather : gather);
  step.said = gathers + more * of.scatter + of.head * of.end_scatter;
  step.said_at = has_head ? says.head : of.each;
  step.after += of.scatter;
  if (has_head && of.end_scatter > 0 && layers > places) {  // layers that have no place wait for the head's, too
    const bool next = two && gather > 0;
    step.middle = says.head + of.each * (next ? 1 : places + says.head_part);
    step.middle_hold = (more - 1) * gather + (next ? more : more - 1) * of.scatter;
  }
  step.again = point.virtual_stages > 1 && layers <= places;  // each chunk has places of its own
  step.hold = groups + (point.overlap_gradients && layers > 1 ? of.scatter : 0);
  // With one place computes go on beside gathers only.
  const double beside = std::min(step.said_at + (has_head ? of.each : 0) + gathers * says.left, b - of.each);
  step.free =
      two ? b - of.each * (gather > 0 ? 1 : 1 - says.head_part) : beside + (b - beside) * says.head_part * more / layers;
}

void say_layers(const Point& point, int kind, const LayerTalk& says, TalkOfChunk& talk) {
  const double f = says.forward, layers = says.layers;
  say_backward(point, kind, says, 0, 0, talk.backward);
  say_backward(point, kind, says, says.groups, says.end_groups, talk.last_backward);
  if (says.gather <= 0) return;
  TalkStep& forward = talk.forward;
  if (!point.overlap_parameters) {
    forward.ahead = kind == First ? says.end_gather : says.gather, forward.begin_hold = 0;
    const double gathers = (layers - 1) * says.gather + (kind == First ? says.gather : says.end_gather);
    const double shown = std::max(0.0, gathers - (layers - 1) * says.rest);
    forward.still[Links::OfShards] = shown, forward.compute += shown;
    forward.said_at = kind == Last ? forward.compute : (layers - 1) / layers * forward.compute;
    return;
  }
  const double each = (f - says.forward_head) / layers, end = kind == First ? 0 : says.end_gather;
  forward.ahead = std::min(2.0, layers) * says.gather + (kind == First ? says.end_gather : 0);
  forward.begin_hold = std::max(0.0, std::min(2.0, layers) - 1) * says.gather;
  forward.said = std::max(0.0, layers - 2) * says.gather + end, forward.said_at = forward.said > 0 ? each : 0;
  if (end > 0 && layers > 1) forward.middle = f - says.forward_head - each, forward.middle_hold = end;
  forward.hold = 0, forward.free = end > 0 ? f - says.forward_head : f - each;
}

}  // namespace

// Where stages share a NIC, each has as much less of it as the others are talking, the more of the time they do so, and all
// together no micro-batch takes less than what they send: by how much micro-batches take longer than `times`, where stages have
// it for themselves. `plain`: without what ZeRO 2 and 3 send.
double Screen::shared(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const Layers& layers,
                      const PipelineTimes& plain, const PipelineTimes& times) const {
  constexpr int kPasses = 3;
  const bool sharded = point.zero >= 2 && point.dp * point.cp > 1;
  const double grad = static_cast<double>(size_of(types_.grad).value), param = static_cast<double>(size_of(types_.param).value);
  const double once = 1 / grid.tensor_probed;
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

// What a chunk says to its replicas.
TalkOfChunk Screen::talk_of(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const PipelineTimes& times,
                            int kind) const {
  const auto k = static_cast<std::size_t>(kind);
  const double layers = layers_of(point)[k], layer = shape.parameters.layer, elements = shape.parameters.of(kind, layers);
  const double f = times.forward[k], b = times.backward[k], shards = shards_of(point);
  const double grad = static_cast<double>(size_of(types_.grad).value), param = static_cast<double>(size_of(types_.param).value);
  const bool groups = point.zero > 0 && point.zero_group > 0 && point.zero_group < point.dp;
  const auto how = point.zero == 0 ? CollectiveKind::AllReduce : CollectiveKind::ReduceScatter;
  const auto over_groups = [&](double of) { return groups ? grid.replicas_time(of * grad / shards) : 0; };
  const bool alone = point.dp * point.cp == 1;
  const auto summed = [&](double of) { return alone ? 0 : grid.collective_time(how, of * grad); };
  const auto gathered = [&](double of) { return alone ? 0 : grid.collective_time(CollectiveKind::AllGather, of * param); };
  const double once = 1 / grid.tensor_probed;
  const double own = once * shape.communication.of(kind, layers),
               own_forward = once * shape.forward_communication.of(kind, layers);
  TalkOfChunk talk;
  talk.forward.compute = f, talk.forward.still[Links::Tensor] = own_forward;
  talk.backward.compute = b, talk.backward.still[Links::Tensor] = own - own_forward;
  talk.last_backward = talk.backward;
  // Units of whole parameters, from the last layer to the first; a tied embedding and, in units of layers, both ends are one each.
  const bool layered = point.zero >= 2, ends = kind != Middle && (layered || tied_);
  const double wanted =
      base_.bucket.value > 0 ? static_cast<double>(base_.bucket.value) / grad : std::max(40e6, 1e6 * point.dp);
  const double bucket = std::ceil(wanted / (layer / 3)) * (layer / 3);
  const double end = ends ? std::max(0.0, tied_ && !layered ? tied_elements(point.tp) : elements - layers * layer) : 0;
  const double between = elements - end;  // of the layers
  const double units = layered ? layers : std::max(1.0, std::ceil(between / bucket));
  const double unit = layered ? layer : units > 1 ? bucket : between, rest = between - (units - 1) * unit;
  talk.update = adam_per_element_ * elements / shards + units * launch_, talk.one_update = talk.update / units;
  if (point.zero == 1 || point.zero == 2) {
    const double gathers = (units - 1) * gathered(unit) + gathered(rest) + gathered(end);
    if (!point.overlap_parameters) talk.gathers = gathers;
    if (point.overlap_parameters) talk.early_gathers = gathers, talk.early_share = 1 / units;
  }
  if (!layered) {
    talk.last_backward.over_groups = over_groups(unit) / std::max(1e-30, summed(unit) + over_groups(unit));
    const auto both = [&](double of) { return of > 0 ? summed(of) + over_groups(of) : 0; };
    const double full = (units - 1) * both(unit), last_one = both(rest), of_end = both(end);
    if (!point.overlap_gradients) {
      talk.sums = kind == Last && tied_ ? of_end : full + last_one + of_end;
      talk.sums_after_tied = kind == Last && tied_ ? full + last_one : 0;
    } else if (kind == Last && end > 0) {  // the head is the first to have its gradients
      talk.last_backward.said_at = std::max(0.0, b - times.backward[Middle]);
      talk.last_backward.said = of_end + full, talk.last_backward.after = last_one;
    } else {
      talk.last_backward.said_at = std::min(b, b * unit / elements), talk.last_backward.said = full;
      talk.last_backward.after = last_one + of_end;
    }
    return talk;
  }
  const double head = end > 0 ? end : 0;
  const double head_backward = kind == Last && head > 0 ? std::max(0.0, b - times.backward[Middle]) : 0;
  const LayerTalk says{.forward = f,
                       .backward = b,
                       .layers = layers,
                       // of a layer, before its first weight gradient
                       .head_part = std::min(1.0, shape.head * layers / std::max(b - head_backward, 1e-30)),
                       .rest = shape.rest,
                       .scatter = summed(layer),
                       .end_scatter = summed(head),
                       .groups = over_groups(layer),
                       .end_groups = over_groups(head),
                       .gather = point.zero == 3 ? gathered(layer) : 0,
                       .end_gather = point.zero == 3 ? gathered(head) : 0,
                       .left = 1 - grid.share,
                       .head = head_backward,
                       .forward_head = kind == Last && head > 0 ? std::max(0.0, f - times.forward[Middle]) : 0};
  say_layers(point, kind, says, talk);
  return talk;
}

// A play with what is said to replicas, where stages share the NIC with it.
std::optional<Screen::Talked> Screen::talked(const Point& point, const GridCosts& grid, const PipelineTimes& times,
                                             const TalkTimes& talk, double hop_bytes, double most, const Enough& enough) const {
  const double least = least_talk(point.schedule, times, talk, grid.ways, hop_bytes, point.overlap_p2p);
  const bool further = enough.look != Look::Played;
  if (enough.look == Look::Loads || least > most) return Talked{least, further};
  const auto played =
      enough.look == Look::Alone
          ? play_talk_alone(point.schedule, times, talk, grid.ways, hop_bytes, point.overlap_p2p)
          : play_talk(point.schedule, times, talk, grid.ways, hop_bytes, point.overlap_p2p, most, enough.memory);
  if (!played) return {};
  return Talked{std::max(least, *played), further};
}

std::optional<Screen::Talked> Screen::talked(const Point& point, const ShapeCosts& shape, const GridCosts& grid,
                                             const PipelineTimes& times, double most, const Enough& enough) const {
  if (grid.ways.ranks == 0) return {};
  if (base_.microbatch_group != 0 && base_.microbatch_group != point.pp) return {};
  TalkTimes talk{.sums = point.zero == 0, .share = grid.share};
  for (const int kind : {First, Middle, Last})
    talk.of[static_cast<std::size_t>(kind)] = talk_of(point, shape, grid, times, kind);
  if (tied_) {
    const double bytes = tied_elements(point.tp) * static_cast<double>(size_of(types_.grad).value);
    talk.tied = grid.tied_time(point.zero >= 2 ? bytes / shards_of(point) : bytes);
  }
  return talked(point, grid, times, talk, shape.hop_bytes, most, enough);
}

// Ranks redo `fewer` layers than `shape` says: how much sooner they are done. What fills and drains the pipeline goes through
// them, and a rank that is behind the others waits for them no more, which only a play of a few micro-batches knows.
double Screen::sooner(const Point& point, const ShapeCosts& shape, const GridCosts& grid, double each,
                      const std::array<double, Ways::kMost>& fewer, double all_fewer) const {
  constexpr int kMostCells = 160;
  const double once = all_fewer * each;
  const double m = microbatches(point);
  if (point.pp > Ways::kMost || point.pp * point.virtual_stages * std::min(m, 3.0 * point.pp + 1) > kMostCells) return once;
  const Layers layers = layers_of(point);
  PipelineTimes times{.ranks = point.pp, .chunks = point.virtual_stages, .microbatches = m};
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    times.forward[kind] = shape.forward.of(static_cast<int>(kind), layers[kind]);
    times.backward[kind] = shape.backward.of(static_cast<int>(kind), layers[kind]);
  }
  Ways ways{.ranks = point.pp};
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(point.pp); ++rank) {
    ways.output[rank].latency = ways.gradient[rank].latency = grid.hop + grid.hop_per_byte * shape.hop_bytes;
    ways.output[rank].lane = static_cast<int>(rank), ways.gradient[rank].lane = static_cast<int>(rank) + point.pp;
  }
  std::array<double, Ways::kMost> faster = fewer;
  for (double& rank : faster) rank *= each;
  const auto equal = play_pipeline(point.schedule, times, ways, shape.hop_bytes, point.overlap_p2p);
  const auto played = play_pipeline(point.schedule, times, ways, shape.hop_bytes, point.overlap_p2p, faster);
  return equal && played ? *equal - *played : once;
}

}  // namespace foreshard
