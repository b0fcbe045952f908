// The begin and the end of an iteration in the screen: parameters that are gathered beside the first forwards; and, after the last
// backwards, the rest of the reductions, updates, all-gathers of parameters, and the sum of a tied embedding.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/never.h"
#include "strategy/estimate/estimate_times.h"
#include "strategy/resolve/compression.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

using enum stage_kind::Kind;

// Of one chunk, seconds; `one_...` of a unit: a bucket, or with ZeRO 2 and 3 a layer.
struct PointTimes::ChunkTail {
  double sum = 0, one_sum = 0;        // reductions that belong to the last backward, or follow it
  double over_groups = 0;             // the part of `sum` between ZeRO groups (over equal shards)
  double behind = 0;                  // the part of `sum` that is left after that backward when they overlap
  double slowed = 0;                  // by which the reductions make that backward longer
  double gather = 0, one_gather = 0;  // of updated parameters
  double update = 0, one_update = 0;
};

PointTimes::ChunkTail PointTimes::chunk_tail(int kind, double layers, double backward) const {
  const double replicas = static_cast<double>(point_.dp) * point_.cp, shards = shards_of(point_);
  const double grad = static_cast<double>(size_of(model_.types.grad).value),
               param = static_cast<double>(size_of(model_.types.param).value);
  const double elements = shape_.parameters.of(kind, layers), layer = shape_.parameters.layer;
  const bool layered = point_.cuts().gradients;
  const double default_bucket = std::max(40e6, 1e6 * point_.dp);
  const double wanted = model_.base.communication.bucket.value > 0
                            ? static_cast<double>(model_.base.communication.bucket.value) / grad
                            : default_bucket;
  // Whole parameters: the two products of the MLP are about a third of a layer each, and so are those of the attention together.
  const double bucket = std::ceil(wanted / (layer / 3)) * (layer / 3);
  const double units = layered ? layers : replicas > 1 ? std::max(1.0, std::ceil(elements / bucket)) : 1;
  const double unit = layered ? layer : units > 1 ? bucket : elements;
  ChunkTail tail;
  const double experts = shape_.experts.of(kind, layers);
  tail.update = model_.adam_per_element * (elements / shards + experts / expert_shards_of(point_)) + units * model_.launch;
  tail.one_update = tail.update / units;
  if (replicas <= 1 && (experts == 0 || point_.expert_replicas() == 1)) return tail;
  const auto how = !point_.cuts().optimizer ? CollectiveKind::AllReduce : CollectiveKind::ReduceScatter;
  const bool groups = point_.cuts().optimizer && point_.zero_group > 0 && point_.zero_group < point_.dp;
  const auto over_groups = [&](double of) { return groups ? grid_.replicas_time(of * grad / shards) : 0; };
  const bool coded = gradient_coding(model_.base).has_value();  // in bytes that this screen does not know: it counts none
  const auto summed = [&](double of) { return coded ? 0.0 : grid_.collective_time(how, of * grad) + over_groups(of); };
  const auto gathered = [&](double of) { return grid_.collective_time(CollectiveKind::AllGather, of * param); };
  // Experts have units of their own, as many to a layer as the rest or in buckets of the same size.
  const double expert_units = layered ? layers : std::max(1.0, std::ceil(experts / bucket));
  const auto of_experts = [&](CollectiveKind kind, double size) {
    return experts > 0 ? expert_units * grid_.experts_time(kind, experts / expert_units * size) : 0;
  };
  // The last bucket has the remaining elements; with ZeRO 2 and 3 the embedding or the head is a unit of its own.
  const double end = layered ? std::max(0.0, elements - layers * layer) : elements - (units - 1) * unit;
  const double equal = layered ? units : units - 1, end_sum = end > 0 ? summed(end) : 0,
               unit_sum = summed(unit) + (layered ? of_experts(how, grad) / units : 0);
  tail.one_sum = layered ? unit_sum : end_sum;
  tail.sum = equal * unit_sum + end_sum + (layered ? 0 : of_experts(how, grad));
  tail.over_groups = equal * over_groups(unit) + over_groups(end);
  if (point_.cuts().optimizer && !point_.cuts().parameters) {
    tail.one_gather = gathered(unit);
    tail.gather = equal * tail.one_gather + (end > 0 ? gathered(end) : 0) + of_experts(CollectiveKind::AllGather, param);
  }
  const double own = shape_.communication.of(kind, layers) - shape_.forward_communication.of(kind, layers);
  if (layered) {  // in every backward; in the last one with the sums over the groups, which hold it up
    const double head = kind == Last ? end : 0, more = units * over_groups(unit) + over_groups(head);
    const double communication = units * (unit_sum + (point_.cuts().parameters ? gathered(unit + shape_.frozen.layer) : 0)) +
                                 (head > 0 ? end_sum : 0) +
                                 (point_.cuts().parameters ? of_experts(CollectiveKind::AllGather, param) : 0);
    if (groups && point_.cuts().parameters && !point_.overlap_parameters) {
      tail.slowed = more;  // the next gather is queued after them
    } else if (groups) {
      const SaturatedOverlap dense(grid_, backward, own, 1);
      const double carried = std::min(more, dense.carried);
      tail.slowed = std::max(carried / dense.carried * (dense.time - backward) + more - carried, communication - backward);
    }
    const double most = (point_.overlap_gradients ? 2 : 1) * unit_sum;
    tail.behind = std::clamp(units * unit_sum - (backward + tail.slowed) * (1 - 1 / units), unit_sum, most);
    if (kind == First || kind == Only) tail.behind += end_sum;
  } else if (!point_.overlap_gradients) {
    tail.behind = tail.sum;
  } else {
    const SaturatedOverlap dense(grid_, backward, own, tail.over_groups / tail.sum);
    const double carried = dense.carried * (1 - unit / elements);  // from when the first bucket is full
    tail.slowed = std::min(carried, tail.sum - tail.one_sum) / dense.carried * (dense.time - backward);
    tail.behind = std::max(tail.one_sum, tail.sum - carried);
  }
  return tail;
}

// The chunks of a rank end one after the other, beginning with its first chunk: the rest of the sums, the update of each unit as soon as
// its gradients are summed, and the gathers after all sums that were issued before them. The embedding is the last unit of the first
// chunk, its tied copy the first unit of the last one.
PointTimes::Tail PointTimes::tail(const PipelineTimes& times, int kind) const {
  const auto chunk = [&](int of) {
    const auto i = static_cast<std::size_t>(of);
    return chunk_tail(of, layers_[i], times.backward[i]);
  };
  const bool several = point_.virtual_stages > 1;
  const ChunkTail first = chunk(several && kind == Last ? Middle : kind);
  const ChunkTail other = several ? chunk(Middle) : ChunkTail{};
  const ChunkTail last = !several ? first : kind == Last ? chunk(Last) : other;
  const double between = std::max(0, point_.virtual_stages - 2), rest = several ? 1 : 0;
  const bool gathers = !point_.overlap_parameters && (point_.cuts().optimizer && !point_.cuts().parameters);
  const double all_gathers = gathers ? first.gather + between * other.gather + rest * last.gather : 0;
  Tail tail;
  tail.slowed = first.slowed + between * other.slowed + rest * last.slowed;
  tail.behind = first.behind;
  tail.over_groups = first.over_groups + between * other.over_groups + rest * last.over_groups;
  if (!point_.cuts().gradients) tail.sums = first.sum + between * other.sum + rest * last.sum - tail.over_groups;
  tail.gathers = all_gathers;
  if (!point_.cuts().gradients && !point_.overlap_gradients) {
    // The sums of a chunk begin when the updates and gathers of the chunk before are done.
    const auto ends = [&](const ChunkTail& of) {
      const double updated = std::max(of.sum + of.one_update, of.one_sum + of.update);
      return gathers ? std::max(of.sum + of.gather, updated + of.one_gather) : updated;
    };
    const double before = ends(first) + between * ends(other);
    tail.all = several ? before + ends(last) : ends(first);
    tail.tied = kind == First ? first.sum : (several ? before : 0) + last.one_sum;
    const double left = kind == First ? first.one_update + (gathers ? first.gather : 0) : ends(last) - last.one_sum;
    tail.after = left + (kind == First && several ? between * ends(other) + ends(last) : 0);
    return tail;
  }
  const double updates = between * other.update + rest * last.update;
  const double updated = std::max(first.behind + first.one_update, first.update) + updates;
  tail.all = std::max(updated + (gathers ? last.one_gather : 0), std::max(first.behind, first.one_update) + all_gathers);
  if (kind == First) {
    tail.tied = first.behind;
    tail.after = std::max(first.one_update + updates + (gathers ? last.one_gather : 0), all_gathers);
  } else {
    const double before =
        several ? std::max(updated - last.update, first.behind + all_gathers - (gathers ? last.gather : 0)) : 0;
    tail.tied = std::max(first.behind, before);
    tail.after = last.update + (gathers ? last.one_gather : 0);
    if (gathers) tail.after = std::max(tail.after, last.one_update + last.gather);
  }
  return tail;
}

// The delay of the first forwards by parameters that are gathered beside them, chunk by chunk. A forward waits for the parameters of its
// layers; those of a later chunk are needed when all ranks have run the chunks before.
double PointTimes::late_start(const PipelineTimes& times) const {
  if (!point_.overlap_parameters || !(point_.cuts().optimizer && !point_.cuts().parameters) || point_.dp * point_.cp <= 1)
    return 0;
  const int kind = point_.pp == 1 ? Only : First;
  const auto i = static_cast<std::size_t>(kind);
  ChunkTail first = chunk_tail(kind, layers_[i], times.backward[i]);
  ChunkTail other = chunk_tail(Middle, layers_[Middle], times.backward[Middle]);
  first.gather *= grid_.shards_contention, first.one_gather *= grid_.shards_contention, other.gather *= grid_.shards_contention;
  const double forward = times.forward[i], own = shape_.forward_communication.of(kind, layers_[i]), v = point_.virtual_stages;
  const double share = first.one_gather / std::max(first.gather, 1e-30);
  double late = std::max(first.one_gather + time_beside(grid_, forward, own, first.gather - first.one_gather) - forward,
                         first.gather - forward * (1 - share));
  if (v > 1) {
    const double turn = point_.pp * times.forward[Middle];
    late = std::max(late, first.gather + (v - 1) * (other.gather - turn) - times.forward[Middle] * (1 - share));
  }
  return std::max(0.0, late);
}

// Sums and gathers of several stages share a link, beginning with the stage whose last backward ends first. The tail of the first stage,
// which ends last, becomes longer by the time that they still take then. A rank's own traffic is that of all its chunks.
PointTimes::Tail PointTimes::among_others(const PipelineTimes& times, const Tail& middle, const Tail& last, Tail first) const {
  const bool shards = grid_.shards_contention > 1, groups = grid_.replicas_contention > 1;
  const double together =
      std::min<double>(point_.pp, std::max(1.0, std::round(std::max(grid_.shards_contention, grid_.replicas_contention))));
  const auto sums_of = [&](const Tail& of) { return (shards ? of.sums : 0) + (groups ? of.over_groups : 0); };
  const auto gathers_of = [&](const Tail& of) { return shards ? of.gathers : 0; };
  const bool overlapped = point_.overlap_gradients || point_.cuts().gradients;
  // The last stage's sums and gathers after the sum of the tied embedding come after those of the first stage.
  const double until = model_.tied && !overlapped ? last.tied : kNever;
  const auto others = [&](auto of) {
    return together >= point_.pp ? (together - 2) * of(middle) + std::min(of(last), until) : (together - 1) * of(middle);
  };
  const double own = first.sums + first.over_groups, sums = own + others(sums_of);
  const bool splits = schedule_entry(point_.schedule).splits;
  const int kind = point_.pp > 2 ? Middle : First;
  const double turn = times.backward[static_cast<std::size_t>(kind)] + times.hop;
  const double apart = splits ? 0 : turn + (point_.pp > 2 ? middle : last).slowed / point_.virtual_stages;
  const double before = overlapped ? ((point_.virtual_stages - 1.0) * point_.pp + together) * apart : (together - 1) * apart;
  const double reached = overlapped ? first.behind : own;
  const double late_sums = std::max(0.0, sums - before - reached);
  const double late = std::max(0.0, sums + others(gathers_of) - before - reached);
  first.all += late, first.tied += late_sums, first.after += late - late_sums;
  return first;
}

double PointTimes::tied_sum() const {
  const double bytes = model_.tied_elements(point_.tp) * static_cast<double>(size_of(model_.types.grad).value);
  return grid_.tied_time(point_.cuts().gradients ? bytes / shards_of(point_) : bytes);
}

// Runs overlap: in the steady period every stage has its micro-batches and its updates, each with a tail of its own, and the busiest one
// waits for no other.
double PointTimes::steady(const PipelineTimes& times) const {
  const ScheduleShape shape{
      .p = point_.pp, .m = static_cast<int>(times.microbatches), .g = model_.base.pipeline.microbatch_group};
  const double updates = times.microbatches / static_cast<double>(schedule_entry(point_.schedule).backwards_per_update(shape));
  double most = 0;
  const auto add = [&](int kind) {
    const auto i = static_cast<std::size_t>(kind);
    const Tail own = tail(times, kind);
    most = std::max(most, times.microbatches * (times.forward[i] + times.backward[i]) + updates * (own.slowed + own.all));
  };
  if (point_.pp == 1) return add(Only), most;
  add(First), add(Last);
  if (point_.pp > 2) add(Middle);
  return most;
}

// The first rank ends its backwards last; rank r ends r backwards and transfers earlier. Reductions beside the last backwards of the ranks
// slow these one after the other. The two copies of a tied embedding are summed when both end stages are ready.
double PointTimes::finished(const PipelineTimes& times) const {
  if (schedule_entry(point_.schedule).backwards_per_update) return steady(times);
  const double end = pipeline_time(schedule_entry(point_.schedule), times) + late_start(times);
  if (point_.pp == 1) {
    const Tail only = tail(times, Only);
    return end + only.slowed + only.all;
  }
  Tail first = tail(times, First);
  Tail last = tail(times, Last);
  Tail middle = point_.pp > 2 ? tail(times, Middle) : Tail{};
  if (point_.dp * point_.cp > 1) first = among_others(times, middle, last, first);
  double first_end = end + first.slowed, middle_end = end + middle.slowed, last_end = end + last.slowed;
  if (!schedule_entry(point_.schedule).splits) {  // else all ranks end together
    const double second = times.backward[First] + times.hop;
    const double before = second + (point_.pp - 2) * (times.backward[Middle] + times.hop);
    last_end -= before;
    middle_end = std::max(middle_end, end + last.slowed + (point_.pp - 2) * middle.slowed) - second;
    first_end += last.slowed + (point_.pp - 2) * middle.slowed;
  }
  double done = std::max(first_end + first.all, last_end + last.all);
  if (point_.pp > 2) done = std::max(done, middle_end + middle.all);
  if (!model_.tied) return done;
  const double summed = std::max(first_end + first.tied, last_end + last.tied) + tied_sum();
  return std::max(done, summed + std::max(first.after, last.after));
}

}  // namespace foreshard
