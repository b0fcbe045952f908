#include "strategy/estimate/estimate_screen.h"

#include <algorithm>
#include <cmath>

#include "core/graph/op_graph_transformer.h"
#include "strategy/cost/framework_memory.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/learned_factors.h"
#include "strategy/cost/op_cost.h"
#include "strategy/cost/profile_time.h"
#include "strategy/estimate/estimate_pipeline.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

namespace {

enum Kind { First, Middle, Last, Only };

constexpr double kPlaces = 7;  // of a chunk: two outputs, two gradients to send, three that it receives

double read(const GridCosts::Ladder& ladder, double bytes) {
  if (bytes <= 0) return 0;
  const int low = std::clamp(std::ilogb(bytes / GridCosts::kLeast) / 2, 0, GridCosts::kSizes - 2);  // steps of 4
  const double from = std::ldexp(GridCosts::kLeast, 2 * low);
  const auto i = static_cast<std::size_t>(low);
  return std::max(0.0, ladder[i] + (ladder[i + 1] - ladder[i]) * (bytes - from) / (from * (GridCosts::kStep - 1)));
}

}  // namespace

Strategy strategy_at(const Strategy& base, const Point& point, int layers) {
  Strategy s = base;
  s.tp = point.tp, s.cp = point.cp, s.pp = point.pp, s.virtual_stages = point.virtual_stages, s.dp = point.dp;
  s.micro_batch = point.micro_batch;
  s.sequence_parallel = point.sequence_parallel;
  const bool tensor = s.overlap.value_or(Overlap{}).tp;
  s.overlap = Overlap{point.overlap_gradients, point.overlap_parameters, point.overlap_p2p, tensor};
  s.zero = point.zero, s.zero_group = point.zero_group;
  if (const int stages = point.pp * point.virtual_stages; layers > 0 && layers % stages != 0 && s.layer_split.empty())
    s.layer_split = nearly_even_split(layers, stages);
  if (point.recompute != s.recompute.kind || point.recompute_layers != 0) s.recompute = {.kind = point.recompute};
  s.recompute.layers = point.recompute_layers;
  s.schedule = point.schedule;
  if (point.order > 0) s.placement = rank_orders()[static_cast<std::size_t>(point.order)];
  return s;
}

const std::vector<RankOrder>& rank_orders() {
  using enum DenseKind;
  static const std::vector<RankOrder> orders = {default_rank_order(), with_outer_data({Tensor, Context, std::nullopt, Data}),
                                                with_outer_data({Data, Tensor, Context, std::nullopt}),
                                                with_outer_data({std::nullopt, Tensor, Context, Data})};
  return orders;
}

std::array<int, 4> layers_by_kind(int layers, int stages) {
  const int few = layers / stages, more = layers % stages;  // so many stages have one more
  return {more > stages - 2 ? few + (more > 0 ? 1 : 0) : few, more > 0 ? few + 1 : few, few, layers};
}

std::string nearly_even_split(int layers, int stages) {
  const auto [first, middle, last, only] = layers_by_kind(layers, stages);
  std::string text;
  const auto add = [&](int each, int count) {
    if (count > 0) text += (text.empty() ? "" : ",") + std::to_string(each) + (count > 1 ? "x" + std::to_string(count) : "");
  };
  const int between = stages - 2, more = layers - first - last - between * last;
  add(first, 1);
  add(last, between - more);
  add(last + 1, more);
  add(last, 1);
  return stages == 1 ? std::to_string(only) : text;
}

int stride_of(const Point& point) { return point.order == 2 ? point.dp : point.order == 3 ? point.pp : 1; }

ShapeCosts partly_redone(const ShapeCosts& none, const ShapeCosts& full, double layers, const std::array<double, 4>& redone) {
  ShapeCosts mixed = none;
  const auto mix = [&](PerStage& to, const PerStage& with) {
    const double more = with.layer - to.layer;
    for (std::size_t kind = 0; kind < to.one.size(); ++kind)
      to.one[kind] += redone[kind] * more;  // `of` is asked for this number of layers only
  };
  const auto larger = [&](PerStage& to, const PerStage& with) {
    for (std::size_t kind = 0; kind < to.one.size(); ++kind)
      to.one[kind] = redone[kind] == 0
                         ? to.of(static_cast<int>(kind), layers)
                         : std::max(to.of(static_cast<int>(kind), layers), with.of(static_cast<int>(kind), layers));
    to.layer = 0;
  };
  mix(mixed.backward, full.backward);
  mix(mixed.communication, full.communication);
  mixed.head += redone[Middle] / layers * (full.head - none.head);
  mix(mixed.activations, full.activations);
  larger(mixed.scratch, full.scratch);
  for (std::size_t gpu = 0; gpu < mixed.by_gpu.size(); ++gpu)
    mixed.by_gpu[gpu] = partly_redone(none.by_gpu[gpu], full.by_gpu[gpu], layers, redone);
  return mixed;
}

double GridCosts::collective_time(CollectiveKind kind, double bytes) const {
  const std::size_t which = kind == CollectiveKind::AllReduce ? 0 : kind == CollectiveKind::ReduceScatter ? 1 : 2;
  return read(collective[which], bytes);
}
double GridCosts::replicas_time(double bytes) const { return read(replicas, bytes); }
double GridCosts::tied_time(double bytes) const { return read(tied, bytes); }

Screen::Screen(const Model& model, const Cluster& cluster, const Strategy& base, const MachineProfile* profile)
    : model_(model), cluster_(cluster), base_(with_preset(model, base)), profile_(profile), types_(state_types(base_)) {
  if (!base_.framework_memory) base_.framework_memory = measured_outside(profile, cluster);
  const auto& transformer = std::get<Transformer>(model.shape);
  const Gpu& gpu = gpu_of(cluster, cluster.nodes.front().shape.gpu);
  layers_ = transformer.layers;
  tied_ = transformer.tied_embeddings;
  vocab_multiple_ = base_.vocab_multiple;
  capacity_ = static_cast<double>(gpu.memory.value) * (1 - base.reserve);
  const double each = static_cast<double>(size_of(types_.grad).value + size_of(types_.param).value +
                                          (types_.master ? 2 * size_of(types_.state).value : size_of(types_.param).value)) +
                      (base.optimizer == OptimizerKind::Adam ? 4.0
                       : base.momentum > 0                   ? 2.0
                                                             : 0.0) *
                          static_cast<double>(size_of(types_.state).value);
  const auto adam = [&](std::int64_t elements) {
    const Compute update{.op = ops::Adam{},
                         .phase = Phase::Update,
                         .shapes = {{{elements}, types_.state}},
                         .flops = {ops::Adam::flops_per_element * static_cast<double>(elements)},
                         .traffic = {static_cast<std::int64_t>(each * static_cast<double>(elements))}};
    const bool about = profile && profile->device == gpu.name;
    if (about)
      if (const auto measured = profiled_time(*profile, update)) return measured->value;
    const bool learned = about && profile->learned;
    const PartShape shape{.part = CostPart::Update, .words = {framework_preset(base.framework).name}};
    return op_time(gpu, update).value * (learned ? LearnedFactors(*profile->learned).factor(shape) : 1.0);
  };
  adam_per_element_ = (adam(200'000'000) - adam(100'000'000)) / 1e8;
  launch_ = gpu.launch_overhead.value;
  find_gpus();
}

double Screen::tied_elements(int tp) const {
  const auto& transformer = std::get<Transformer>(model_.shape);
  const std::int64_t rows = padded_vocab(transformer, vocab_multiple_ * tp);
  return static_cast<double>(rows / tp) * static_cast<double>(transformer.hidden);
}

double shards_of(const Point& point) {
  if (!point.cuts().optimizer) return 1;
  return static_cast<double>(point.zero_group > 0 ? point.zero_group : point.dp) * point.cp;
}

Screen::Layers Screen::layers_of(const Point& point) const {
  const std::array<int, 4> layers = layers_by_kind(layers_, point.pp * point.virtual_stages);
  return {static_cast<double>(layers[0]), static_cast<double>(layers[1]), static_cast<double>(layers[2]),
          static_cast<double>(layers[3])};
}

// So many ranks after the first one have a stage with a layer less than those after them.
int Screen::thinner(const Point& point) const {
  const Layers layers = layers_of(point);
  const int stages = point.pp * point.virtual_stages, between = stages - 2;
  if (layers_ % stages == 0 || between <= 0 || layers[Middle] <= layers[Last]) return 0;
  const double more = layers_ - layers[First] - layers[Last] - between * layers[Last];
  return between - static_cast<int>(more);
}

Screen::RankMemory Screen::rank_memory(const Point& point, const ShapeCosts& shape, double microbatches, int kind, double rank,
                                       double layers) const {
  const double p = point.pp, v = point.virtual_stages, shards = shards_of(point);
  const double grad = static_cast<double>(size_of(types_.grad).value), param = static_cast<double>(size_of(types_.param).value);
  const double states =
      static_cast<double>(size_of(types_.state).value) * ((types_.master ? 1 : 0) + (base_.optimizer == OptimizerKind::Adam ? 2
                                                                                     : base_.momentum > 0                   ? 1
                                                                                                          : 0));
  const double each =
      param / (point.cuts().parameters ? shards : 1) + grad / (point.cuts().gradients ? shards : 1) + states / shards;
  RankMemory memory{.flight = schedule_entry(point.schedule).in_flight({.p = p, .m = microbatches, .v = v, .rank = rank})};
  double elements = shape.parameters.of(kind, layers);
  if (v > 1) elements += (v - 1) * shape.parameters.of(Middle, layers);
  memory.fixed = elements * each;
  // Each chunk has places of its own: for what is gathered and reduced, of the size of a layer or, gathered, of the embedding or the
  // head, whose gradient has one more; and beside those of a shape for what it sends and receives.
  const double layer = shape.parameters.layer, end = std::max(0.0, shape.parameters.of(kind, layers) - layers * layer);
  if (point.cuts().gradients) memory.fixed += grad * (v * layer * (point.overlap_gradients ? 2 : 1) + end);
  if (point.cuts().parameters)
    memory.fixed += param * (point.overlap_parameters ? 2 : 1) * (v * layer + std::max(0.0, end - layer));
  memory.fixed += (v - 1) * kPlaces * shape.hop_bytes;
  return memory;
}

double Screen::framework(const Point& point) const {
  Strategy s;
  s.tp = point.tp, s.cp = point.cp, s.pp = point.pp, s.dp = point.dp;
  s.framework_memory = base_.framework_memory;
  return static_cast<double>(framework_memory(s).value);
}

// Of chunks in flight on one rank, of which only one can be of a stage at an end.
static double activations_of(const ShapeCosts& shape, int kind, double layers, double flight, bool chunks) {
  const double own = shape.activations.of(kind, layers);
  return chunks ? own + (flight - 1) * shape.activations.of(Middle, layers) : own * flight;
}

// The first rank holds most activations, the others may hold more parameters: the largest of the kinds.
double Screen::memory(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const {
  const Layers all = layers_of(point);
  double most = 0;
  for (const int kind : {First, Middle, Last}) {
    if (kind == Middle && point.pp < 3) continue;
    const int at = point.pp == 1 ? Only : kind;
    const double rank = kind == First || point.pp == 1 ? 0 : kind == Middle ? 1 : point.pp - 1;
    const double layers = all[static_cast<std::size_t>(at)];
    const RankMemory memory = rank_memory(point, shape, microbatches(point), at, rank, layers);
    most = std::max(most, memory.fixed + activations_of(shape, at, layers, memory.flight, point.virtual_stages > 1) +
                              shape.scratch.of(at, layers));
  }
  return most + grid.framework;
}

bool Screen::fits_for_sure(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const {
  const double needs = grid.by_gpu.empty() ? memory(point, shape, grid) : mixed(point, shape, shape, grid).needs;
  return !grid.torn && needs * kMemorySlack <= capacity_;
}

// Each layer that is redone frees the same bytes of every chunk in flight, so the number that makes room is a quotient. Ranks
// between the ends count with their mean, those that have a layer less with theirs; with several chunks, where the busiest rank sets
// the pace, with the first one's number.
Screened Screen::filled(const Point& point, const ShapeCosts& none, const ShapeCosts& full, const GridCosts& grid) const {
  if (!grid.by_gpu.empty()) return mixed(point, none, full, grid);
  const double m = microbatches(point);
  const Layers all = layers_of(point);
  const bool chunks = point.virtual_stages > 1;
  const double outside = grid.framework, freed = none.activations.layer - full.activations.layer;
  std::array<double, 4> redone = {};
  const int thin = chunks || all[Middle] <= 1 ? 0 : thinner(point);
  double most = 0, middles = 0, thin_middles = 0, all_fewer = 0, fewest = all[Middle], thin_fewest = fewest;
  for (int rank = 0; rank < point.pp; ++rank) {
    const int kind = point.pp == 1 ? Only : rank == 0 ? First : rank + 1 == point.pp ? Last : Middle;
    const auto at = static_cast<std::size_t>(kind);
    const bool is_thin = kind == Middle && rank <= thin;
    const double layers = all[at] - (is_thin ? 1 : 0), scratch = none.scratch.of(kind, layers);
    const RankMemory memory = rank_memory(point, none, m, kind, rank, layers);
    const double kept = memory.fixed + outside + activations_of(none, kind, layers, memory.flight, chunks);
    double count = 0, bytes = kept + scratch;
    if (bytes > capacity_) {
      const double more = std::max(scratch, full.scratch.of(kind, layers));
      count = freed > 0 ? std::clamp(std::ceil((kept + more - capacity_) / (freed * memory.flight)), 1.0, layers) : layers;
      bytes = kept + more - count * freed * memory.flight;
    }
    most = std::max(most, bytes);
    if (rank > 0) all_fewer += redone[First] - count;
    if (kind == Middle || chunks) (is_thin ? thin_fewest : fewest) = std::min(is_thin ? thin_fewest : fewest, count);
    if (kind == Middle)
      (is_thin ? thin_middles : middles) += count;
    else
      redone[at] = count;
  }
  if (chunks) redone[Last] = redone[First];
  redone[Middle] = chunks ? redone[First] : point.pp > 2 ? middles / (point.pp - 2 - thin) : 0;
  const double thin_redone = thin > 0 ? thin_middles / thin : 0, each = full.backward.layer - none.backward.layer;
  ShapeCosts mixed = partly_redone(none, full, all[point.pp == 1 ? Only : Middle], redone);
  mixed.thinner_redo_less = thin > 0 ? (redone[Middle] - thin_redone) * each : 0;
  const Timed found = timed(point, mixed, grid);
  Screened screened{.time = found.time, .bound = found.bound, .peak = most, .needs = most};
  // The bound holds for the rank that redoes the fewest layers; what fills a pipeline of chunks goes through each rank's own.
  const double fewer = std::max({0.0, redone[Middle] - fewest, thin > 0 ? thin_redone - thin_fewest : 0.0});
  screened.bound -= (m * point.virtual_stages + point.pp) * fewer * each;
  if (chunks) screened.time -= all_fewer * each;
  return screened;
}

Dense::Dense(const GridCosts& grid, double alone, double own, double over_groups) {
  const auto mixed = [&](double shards, double groups) { return shards + (groups - shards) * over_groups; };
  const double computes = (alone - own) / (1 - grid.share);
  const double talks = own / mixed(grid.tensor_speed, grid.tensor_beside_replicas);
  time = computes + talks, carried = computes + talks * mixed(grid.shards_speed, grid.replicas_speed);
}

double beside(const GridCosts& grid, double time, double own, double talk) {
  if (talk <= 0 || time <= 0) return time;
  const Dense dense(grid, time, own);
  return talk < dense.carried ? time + (dense.time - time) * talk / dense.carried : dense.time + talk - dense.carried;
}

// ZeRO 2 and 3 communicate in every micro-batch, layer by layer. With two places for what is gathered or reduced that runs beside
// the computes. With one place the next gather waits for the last use of the weights before, and the next weight gradient for the
// last reduction. Gathers and reductions take turns: with two places the next gather goes before the reduction of a layer, with one
// behind it; and the first gather of a forward goes behind the reductions of the backward before it. Chunks have places of their
// own, so the first gather of a backward is hidden behind another chunk.
// `ahead`: the gathers of so many layers are there already when an action begins.
void Screen::shard(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const Layers& all, PipelineTimes& times,
                   double ahead) const {
  const bool prefetches = point.cuts().parameters && point.overlap_parameters,
             waits = point.cuts().parameters && !point.overlap_parameters;
  for (int kind = First; kind <= Only; ++kind) {
    const auto i = static_cast<std::size_t>(kind);
    const double layers = all[i], layer = shape.parameters.layer;
    const double own_forward = shape.forward_communication.of(kind, layers);
    const double own_backward = shape.communication.of(kind, layers) - own_forward;
    const auto scattered = [&](double elements) {
      return grid.collective_time(CollectiveKind::ReduceScatter, elements * static_cast<double>(size_of(types_.grad).value));
    };
    const auto gathered = [&](double elements) {
      return !point.cuts().parameters
                 ? 0
                 : grid.collective_time(CollectiveKind::AllGather, elements * static_cast<double>(size_of(types_.param).value));
    };
    const double scatter = scattered(layer), gather = gathered(layer);
    // What the ends have beside their layers. A tied head on the rank of the embedding gathers that, and adds to its gradient.
    const double embedding = kind == First || kind == Only ? shape.parameters.one[First] - layer : 0;
    const double head = kind == Last || kind == Only ? shape.parameters.one[Last] - layer : 0;
    const double head_gather = gathered(head), head_scatter = kind == Only && tied_ ? 0 : scattered(head);
    const double waiting = point.virtual_stages > 1 ? layers - 1 : layers, hidden = layers - waiting;
    const double exposed = waits ? gather + scatter : 0;  // per layer of the backward
    const double early = std::min(ahead, layers) * gather;
    double next_to = prefetches ? gather + scatter : waits ? 0 : scatter, held_up = 0;
    if (!point.overlap_gradients && !waits) {
      held_up = std::max(0.0, scatter - shape.head);
      next_to = std::max(0.0, next_to - held_up);
    }
    // After a backward its last reductions come first, that of the embedding too, then the parameters of the next action's first layer.
    const double behind =
        point.cuts().parameters ? (scattered(layer) + scattered(embedding)) * (1 - 1 / times.microbatches) : 0;
    const double first = point.cuts().parameters && ahead <= 0 ? behind + gathered(layer) + gathered(embedding) : 0;
    const bool in_forward = !schedule_entry(point.schedule).forwards_first;  // there backwards come one after the other
    const double said = ahead > 0 ? early : in_forward ? gather : 0;
    const double gathers = prefetches ? layers * gather - said + head_gather : 0;
    times.forward[i] = beside(grid, times.forward[i], own_forward, gathers) + (in_forward ? first : 0);
    if (waits) times.forward[i] += (layers - 1) * std::max(0.0, gather - shape.rest) + head_gather;
    // The last reduction of ZeRO 2 has the next forward to hide behind.
    const bool trails = point.cuts().gradients && !point.cuts().parameters && in_forward;
    const double last = trails ? std::min(held_up, times.forward[i]) : 0;
    const double ends = head_gather + head_scatter;
    times.backward[i] = beside(grid, times.backward[i], own_backward,
                               std::max(0.0, layers * next_to - (waits ? 0 : early)) + hidden * exposed + (waits ? 0 : ends)) +
                        waiting * exposed + layers * held_up + (waits ? ends - std::min(early, waiting * exposed) : 0) - last;
    if (prefetches && !in_forward) times.backward[i] += behind;
    const double meanwhile = trails ? std::min(scatter, times.forward[i]) : in_forward ? behind : 0;
    times.backward[i] = std::max(times.backward[i], layers * (gather + scatter) - early + ends - meanwhile);
  }
}

// A rank that waits for its input has gathered ahead what its places take by then, so on the ways of micro-batches through the
// pipeline that costs nothing: only a rank that runs without a pause waits for it, once for each micro-batch. How much sooner than
// as if it always did.
double Screen::gathered_ahead(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const PipelineTimes& plain,
                              const PipelineTimes& times) const {
  PipelineTimes ways = plain;
  shard(point, shape, grid, layers_of(point), ways, point.overlap_parameters ? 2 : 1);
  double more = 0;  // of a micro-batch on the busiest rank
  for (const int kind : {First, Middle, Last}) {
    const auto i = static_cast<std::size_t>(kind);
    const double chunks = kind == Middle ? point.virtual_stages : 1;
    more = std::max(more, chunks * (times.forward[i] + times.backward[i] - ways.forward[i] - ways.backward[i]));
  }
  const double always = pipeline_time(schedule_entry(point.schedule), times);
  return std::max(0.0, always - pipeline_time(schedule_entry(point.schedule), ways) - times.microbatches * more);
}

// Transfers that do not overlap hold the sender up as long as the receiver.
void stand_still(PipelineTimes& times) {
  for (const int kind : {First, Middle, Last}) {
    if (kind != Last) times.forward[static_cast<std::size_t>(kind)] += times.hop;
    if (kind != First) times.backward[static_cast<std::size_t>(kind)] += times.hop;
  }
  times.hop = 0;
}

Screened Screen::at(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const {
  if (!grid.by_gpu.empty()) return mixed(point, shape, shape, grid);
  const double peak = memory(point, shape, grid);
  const Timed found = timed(point, shape, grid);
  return {.time = found.time, .bound = found.bound, .peak = peak, .needs = peak};
}

// Of each kind of stage, without what ZeRO 2 and 3 send.
PipelineTimes Screen::moving(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const Layers& layers) const {
  PipelineTimes times{.ranks = point.pp, .chunks = point.virtual_stages, .microbatches = microbatches(point)};
  times.hop = point.pp > 1 ? grid.hop + grid.hop_per_byte * shape.hop_bytes : 0;
  for (int kind = First; kind <= Only; ++kind) {
    const auto i = static_cast<std::size_t>(kind);
    times.forward[i] = shape.forward.of(kind, layers[i]), times.backward[i] = shape.backward.of(kind, layers[i]);
    times.weights[i] = shape.weights.of(kind, layers[i]);
  }
  if (const double beside = 1 - 1 / grid.tensor_probed; beside > 0)
    for (int kind = First; kind <= Only; ++kind) {  // what other stages send is added below
      const auto i = static_cast<std::size_t>(kind);
      const double forward = shape.forward_communication.of(kind, layers[i]);
      times.forward[i] -= beside * forward, times.backward[i] -= beside * (shape.communication.of(kind, layers[i]) - forward);
    }
  times.fewer = thinner(point);
  times.forward_less = shape.forward.layer, times.backward_less = shape.backward.layer + shape.thinner_redo_less;
  return times;
}

// Each flow of a rank as if it had its links for itself (docs/search.md, "Screen").
double Screen::link_time(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const Layers& layers) const {
  if (grid.loads.links.empty()) return 0;
  const double m = microbatches(point), chunks = point.virtual_stages, shards = shards_of(point);
  const auto grad = static_cast<double>(size_of(types_.grad).value), param = static_cast<double>(size_of(types_.param).value);
  const bool alone = point.dp * point.cp == 1,
             groups = point.cuts().optimizer && point.zero_group > 0 && point.zero_group < point.dp;
  FlowSeconds seconds = {};
  const auto add = [&](Flow flow, std::size_t end, double more) { seconds[static_cast<std::size_t>(flow)][end] += more; };
  const auto add_chunk = [&](std::size_t end, int kind, double count) {
    const double own = layers[static_cast<std::size_t>(kind)], elements = shape.parameters.of(kind, own);
    add(Flow::Tensor, end, count * m * shape.communication.of(kind, own) / grid.tensor_probed);
    if (alone) return;
    const double sum = grid.collective_time(!point.cuts().optimizer ? CollectiveKind::AllReduce : CollectiveKind::ReduceScatter,
                                            elements * grad);
    const double gather = !point.cuts().optimizer ? 0 : grid.collective_time(CollectiveKind::AllGather, elements * param);
    add(!point.cuts().optimizer ? Flow::Sums : Flow::Shards, end,
        count * (sum * (point.cuts().gradients ? m : 1) + gather * (point.cuts().parameters ? 2 * m : 1)));
    if (groups) add(Flow::Replicas, end, count * grid.replicas_time(elements * grad / shards));
  };
  add_chunk(0, point.pp == 1 ? Only : First, 1);
  if (point.pp > 1) {
    add_chunk(2, Last, 1);
    for (const std::size_t end : {0, 2})
      if (chunks > 1) add_chunk(end, Middle, chunks - 1);
    if (point.pp > 2) add_chunk(1, Middle, chunks);
  }
  return grid.loads.busy(seconds, m * chunks * shape.hop_bytes, m * (chunks - 1) * shape.hop_bytes);
}

Screen::Timed Screen::timed(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const {
  const Layers layers = layers_of(point);
  const PipelineTimes moving = this->moving(point, shape, grid, layers);
  PipelineTimes times = moving;
  if (!point.overlap_p2p) stand_still(times);
  const PipelineTimes plain = times;
  const bool sharded = point.cuts().gradients && point.dp * point.cp > 1;
  if (sharded) shard(point, shape, grid, layers, times);
  const double ahead =
      sharded && point.cuts().parameters && point.pp > 1 ? gathered_ahead(point, shape, grid, plain, times) : 0;
  const double closed = finished(point, shape, grid, times) - ahead;
  // Without transfers: a rank can compute while another one sends.
  return {.time = std::max(closed, link_time(point, shape, grid, layers)),
          .bound = pipeline_bound(schedule_entry(point.schedule), moving)};
}

}  // namespace foreshard
