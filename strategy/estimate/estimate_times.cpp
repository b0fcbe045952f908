#include "strategy/estimate/estimate_times.h"

#include <algorithm>
#include <cmath>

namespace foreshard {

using enum stage_kind::Kind;

// ZeRO 2 and 3 communicate in every micro-batch, layer by layer. With two places for gathered parameters or for gradients, communication
// overlaps the computes. With one place the next gather waits for the last use of the weights before it, and the next weight gradient
// waits for the previous reduction. Gathers and reductions share a stream: with two places the next gather is issued before the reduction
// of a layer, with one after it; the first gather of a forward is issued after the reductions of the backward before it. Chunks have
// their own places, so the first gather of a backward overlaps another chunk.
void PointTimes::shard(PipelineTimes& times, double ahead) const {
  const bool prefetches = point_.cuts().parameters && point_.overlap_parameters,
             waits = point_.cuts().parameters && !point_.overlap_parameters;
  for (int kind = First; kind <= Only; ++kind) {
    const auto i = static_cast<std::size_t>(kind);
    const double layers = layers_[i], layer = shape_.parameters.layer;
    const double own_forward = shape_.forward_communication.of(kind, layers);
    const double own_backward = shape_.communication.of(kind, layers) - own_forward;
    const auto grad = static_cast<double>(size_of(model_.types.grad).value),
               param = static_cast<double>(size_of(model_.types.param).value);
    const auto scattered = [&](double elements) {
      return grid_.collective_time(CollectiveKind::ReduceScatter, elements * grad);
    };
    const auto gathered = [&](double elements) {
      return !point_.cuts().parameters ? 0 : grid_.collective_time(CollectiveKind::AllGather, elements * param);
    };
    const double experts = shape_.experts.layer;
    const double scatter = scattered(layer) + grid_.experts_time(CollectiveKind::ReduceScatter, experts * grad);
    const double gather = gathered(layer + shape_.frozen.layer) +
                          (point_.cuts().parameters ? grid_.experts_time(CollectiveKind::AllGather, experts * param) : 0);
    // Parameters of the end stages beside their layers. A tied head on the rank of the embedding gathers the embedding and adds to its
    // gradient.
    const double embedding = kind == First || kind == Only ? shape_.parameters.one[First] - layer : 0;
    const double head = kind == Last || kind == Only ? shape_.parameters.one[Last] - layer : 0;
    const double frozen_ends = shape_.frozen.layer > 0 ? 1 : 0;  // then the embedding and the head are frozen, too
    const double frozen_embedding =
        kind == First || kind == Only ? frozen_ends * (shape_.frozen.one[First] - shape_.frozen.layer) : 0;
    const double frozen_head = kind == Last || kind == Only ? frozen_ends * (shape_.frozen.one[Last] - shape_.frozen.layer) : 0;
    const double head_gather = gathered(head + frozen_head), head_scatter = kind == Only && model_.tied ? 0 : scattered(head);
    const double waiting = point_.virtual_stages > 1 ? layers - 1 : layers, hidden = layers - waiting;
    const double exposed = waits ? gather + scatter : 0;  // per layer of the backward
    const double early = std::min(ahead, layers) * gather;
    double next_to = prefetches ? gather + scatter : waits ? 0 : scatter, held_up = 0;
    if (!point_.overlap_gradients && !waits) {
      held_up = std::max(0.0, scatter - shape_.head);
      next_to = std::max(0.0, next_to - held_up);
    }
    // After a backward, its last reductions (that of the embedding too) come before the gather for the next action's first layer.
    const double behind = point_.cuts().parameters ? (scatter + scattered(embedding)) * (1 - 1 / times.microbatches) : 0;
    const double first = point_.cuts().parameters && ahead <= 0 ? behind + gather + gathered(embedding + frozen_embedding) : 0;
    const bool in_forward = !schedule_entry(point_.schedule).forwards_first;  // there backwards come one after the other
    const double said = ahead > 0 ? early : in_forward ? gather : 0;
    const double gathers = prefetches ? layers * gather - said + head_gather : 0;
    times.forward[i] = time_beside(grid_, times.forward[i], own_forward, gathers) + (in_forward ? first : 0);
    if (waits) times.forward[i] += (layers - 1) * std::max(0.0, gather - shape_.rest) + head_gather;
    // The last reduction of ZeRO 2 overlaps the next forward.
    const bool trails = point_.cuts().gradients && !point_.cuts().parameters && in_forward;
    const double last = trails ? std::min(held_up, times.forward[i]) : 0;
    const double ends = head_gather + head_scatter;
    times.backward[i] =
        time_beside(grid_, times.backward[i], own_backward,
                    std::max(0.0, layers * next_to - (waits ? 0 : early)) + hidden * exposed + (waits ? 0 : ends)) +
        waiting * exposed + layers * held_up + (waits ? ends - std::min(early, waiting * exposed) : 0) - last;
    if (prefetches && !in_forward) times.backward[i] += behind;
    const double meanwhile = trails ? std::min(scatter, times.forward[i]) : in_forward ? behind : 0;
    times.backward[i] = std::max(times.backward[i], layers * (gather + scatter) - early + ends - meanwhile);
  }
}

// While a rank waits for its input, it gathers parameters ahead, as many as its places hold; so gathering does not slow micro-batches on
// their way through the pipeline. Only a rank that runs without a pause waits for gathers, once per micro-batch. Returns how much shorter
// the pipeline is than if every action waited (`times`).
double PointTimes::gathered_ahead(const PipelineTimes& plain, const PipelineTimes& times) const {
  PipelineTimes ways = plain;
  shard(ways, point_.overlap_parameters ? 2 : 1);
  double more = 0;  // of a micro-batch on the busiest rank
  for (const int kind : {First, Middle, Last}) {
    const auto i = static_cast<std::size_t>(kind);
    const double chunks = kind == Middle ? point_.virtual_stages : 1;
    more = std::max(more, chunks * (times.forward[i] + times.backward[i] - ways.forward[i] - ways.backward[i]));
  }
  const double always = pipeline_time(schedule_entry(point_.schedule), times);
  return std::max(0.0, always - pipeline_time(schedule_entry(point_.schedule), ways) - times.microbatches * more);
}

// Of each kind of stage, without what ZeRO 2 and 3 send.
PipelineTimes PointTimes::moving() const {
  PipelineTimes times{.ranks = point_.pp, .chunks = point_.virtual_stages, .microbatches = model_.microbatches(point_)};
  times.hop = point_.pp > 1 ? grid_.hop + grid_.hop_per_byte * shape_.hop_bytes : 0;
  for (int kind = First; kind <= Only; ++kind) {
    const auto i = static_cast<std::size_t>(kind);
    times.forward[i] = shape_.forward.of(kind, layers_[i]), times.backward[i] = shape_.backward.of(kind, layers_[i]);
    times.weights[i] = shape_.weights.of(kind, layers_[i]);
  }
  if (const double beside = 1 - 1 / grid_.tensor_probed; beside > 0)
    for (int kind = First; kind <= Only; ++kind) {  // what other stages send is added below
      const auto i = static_cast<std::size_t>(kind);
      const double forward = shape_.forward_communication.of(kind, layers_[i]);
      times.forward[i] -= beside * forward, times.backward[i] -= beside * (shape_.communication.of(kind, layers_[i]) - forward);
    }
  times.fewer = model_.thinner(point_);
  times.forward_less = shape_.forward.layer, times.backward_less = shape_.backward.layer + shape_.thinner_redo_less;
  return times;
}

PipelineTimes PointTimes::communicating() const {
  PipelineTimes times{.ranks = point_.pp, .chunks = point_.virtual_stages, .microbatches = model_.microbatches(point_)};
  for (int kind = First; kind <= Only; ++kind) {
    const auto i = static_cast<std::size_t>(kind);
    const double forward = shape_.forward_communication.of(kind, layers_[i]);
    times.forward[i] = forward / grid_.tensor_probed;
    times.backward[i] = (shape_.communication.of(kind, layers_[i]) - forward) / grid_.tensor_probed;
  }
  times.fewer = model_.thinner(point_);
  times.forward_less = shape_.forward_communication.layer;
  times.backward_less = shape_.communication.layer - times.forward_less + shape_.thinner_redo_less;
  return times;
}

// Sums the isolated times of each kind of collective on each rank and lets LinkLoads find the fullest link (docs/search-estimates.md,
// "Screen").
double PointTimes::link_time() const {
  if (grid_.loads.links.empty()) return 0;
  const double m = model_.microbatches(point_), chunks = point_.virtual_stages, shards = shards_of(point_);
  const auto grad = static_cast<double>(size_of(model_.types.grad).value),
             param = static_cast<double>(size_of(model_.types.param).value);
  const bool alone = point_.dp * point_.cp == 1,
             groups = point_.cuts().optimizer && point_.zero_group > 0 && point_.zero_group < point_.dp;
  FlowSeconds seconds = {};
  const auto add = [&](Flow flow, std::size_t end, double more) { seconds[static_cast<std::size_t>(flow)][end] += more; };
  const auto add_chunk = [&](std::size_t end, int kind, double count) {
    const double own = layers_[static_cast<std::size_t>(kind)], elements = shape_.parameters.of(kind, own);
    add(Flow::Tensor, end, count * m * shape_.communication.of(kind, own) / grid_.tensor_probed);
    if (alone) return;
    const CollectiveKind how = !point_.cuts().optimizer ? CollectiveKind::AllReduce : CollectiveKind::ReduceScatter;
    double sum = grid_.collective_time(how, elements * grad);
    const double gathered = elements + (point_.cuts().parameters ? shape_.frozen.of(kind, own) : 0);
    double gather = !point_.cuts().optimizer ? 0 : grid_.collective_time(CollectiveKind::AllGather, gathered * param);
    const double experts = shape_.experts.of(kind, own);
    sum += grid_.experts_time(how, experts * grad);
    if (point_.cuts().optimizer) gather += grid_.experts_time(CollectiveKind::AllGather, experts * param);
    add(!point_.cuts().optimizer ? Flow::AllReplicas : Flow::Shards, end,
        count * (sum * (point_.cuts().gradients ? m : 1) + gather * (point_.cuts().parameters ? 2 * m : 1)));
    if (groups) add(Flow::BetweenZeroGroups, end, count * grid_.replicas_time(elements * grad / shards));
  };
  add_chunk(0, point_.pp == 1 ? Only : First, 1);
  if (point_.pp > 1) {
    add_chunk(2, Last, 1);
    for (const std::size_t end : {0, 2})
      if (chunks > 1) add_chunk(end, Middle, chunks - 1);
    if (point_.pp > 2) add_chunk(1, Middle, chunks);
  }
  return grid_.loads.busy(seconds, m * chunks * shape_.hop_bytes, m * (chunks - 1) * shape_.hop_bytes);
}

// The embedding and the head take as long as some layers. Of one chunk per rank: the least pace at which the stages hold all layers, each at
// least one, against the pace of the even split.
double PointTimes::balancing() const {
  if (point_.pp == 1 || point_.virtual_stages > 1) return 0;
  const auto takes = [&](std::size_t kind, double layers) {
    return shape_.forward.of(static_cast<int>(kind), layers) + shape_.backward.of(static_cast<int>(kind), layers);
  };
  const double layer = shape_.forward.layer + shape_.backward.layer, between = point_.pp - 2;
  if (!(layer > 0)) return 0;
  double even = std::max(takes(First, layers_[First]), takes(Last, layers_[Last]));
  if (between > 0) even = std::max(even, takes(Middle, layers_[Middle]));
  const auto fitting = [&](std::size_t kind, double pace) {
    return std::max(1.0, 1 + std::floor((pace - takes(kind, 1)) / layer + 1e-9));
  };
  double least = even;
  for (const std::size_t kind : {First, Middle, Last})
    for (double layers = 1; layers <= layers_[First] + 2; ++layers) {
      const double pace = takes(kind, layers);
      const double held = fitting(First, pace) + between * fitting(Middle, pace) + fitting(Last, pace);
      if (pace < least && pace >= std::max(takes(First, 1), takes(Last, 1)) && held >= model_.layers) least = pace;
    }
  return model_.microbatches(point_) * (even - least);
}

// Cells on two streams: a rank computes at least as long as it computes, and communicates at least as long as it communicates.
TimedPoint PointTimes::timed() const {
  const ScheduleEntry& schedule = schedule_entry(point_.schedule);
  PipelineTimes moving = this->moving();
  double bound = 0;  // without transfers: a rank can compute while another one sends
  if (schedule.cells && point_.overlap_tensor) {
    const PipelineTimes communicating = this->communicating();
    PipelineTimes computing = moving;
    for (std::size_t kind = First; kind <= Only; ++kind) {
      computing.forward[kind] -= communicating.forward[kind], computing.backward[kind] -= communicating.backward[kind];
      moving.hidden[kind] = std::min(computing.forward[kind] + computing.backward[kind],
                                     communicating.forward[kind] + communicating.backward[kind]);
    }
    computing.forward_less -= shape_.forward_communication.layer;
    computing.backward_less -= shape_.communication.layer - shape_.forward_communication.layer;
    bound = std::max(pipeline_bound(schedule, computing), pipeline_bound(schedule, communicating));
  } else {
    bound = pipeline_bound(schedule, moving);
  }
  PipelineTimes times = moving;
  if (!point_.overlap_p2p) block_while_sending(times);
  const PipelineTimes plain = times;
  const bool sharded = point_.cuts().gradients && point_.dp * point_.cp > 1;
  if (sharded) shard(times);
  const double ahead = sharded && point_.cuts().parameters && point_.pp > 1 ? gathered_ahead(plain, times) : 0;
  const double closed = finished(times) - ahead;
  return {.time = std::max(closed, link_time()), .bound = bound, .balanced = balancing()};
}

}  // namespace foreshard
