// What the screen says of the ends of an iteration: parameters that are gathered beside the first forwards, and what comes after the
// last backwards: what is left of the reductions, updates, all-gathers of parameters, the sum of a tied embedding.
#include <algorithm>
#include <cmath>

#include "strategy/estimate_screen.h"
#include "strategy/schedule.h"

namespace foreshard {

namespace {

enum Kind { First, Middle, Last, Only };

}  // namespace

// Of one chunk, seconds; `one_...` of a unit: a bucket, or with ZeRO 2 and 3 a layer.
struct Screen::ChunkTail {
  double sum = 0, one_sum = 0;        // reductions that belong to the last backward, or follow it
  double behind = 0;                  // of these, what is left after that backward when they run beside it
  double slowed = 0;                  // by so much they make it longer
  double gather = 0, one_gather = 0;  // of updated parameters
  double update = 0, one_update = 0;
};

// Seconds on one rank, from the end of its last backward.
struct Screen::Tail {
  double slowed = 0;  // by so much its last backwards took longer
  double all = 0;     // until all is done, when no embedding is tied
  double tied = 0;    // until the sum of the tied embedding could begin
  double after = 0;   // from the end of that sum until all is done
};

Screen::ChunkTail Screen::chunk_tail(const Point& point, const ShapeCosts& shape, const GridCosts& grid, int kind,
                                     double layers, double backward) const {
  const double replicas = static_cast<double>(point.dp) * point.cp, shards = shards_of(point);
  const double grad = static_cast<double>(size_of(types_.grad).value), param = static_cast<double>(size_of(types_.param).value);
  const double elements = shape.parameters.of(kind, layers), layer = shape.parameters.layer;
  const bool layered = point.zero >= 2;
  const double default_bucket = std::max(40e6, 1e6 * point.dp);
  const double bucket = base_.bucket.value > 0 ? static_cast<double>(base_.bucket.value) / grad : default_bucket;
  const double units = layered ? layers : replicas > 1 ? std::max(1.0, std::floor(elements / bucket)) : 1;
  const double unit = layered ? layer : elements / units;
  ChunkTail tail;
  tail.update = adam_per_element_ * elements / shards + units * launch_;
  tail.one_update = tail.update / units;
  if (replicas <= 1) return tail;
  const auto how = point.zero == 0 ? CollectiveKind::AllReduce : CollectiveKind::ReduceScatter;
  const bool groups = point.zero > 0 && point.zero_group > 0 && point.zero_group < point.dp;
  const auto summed = [&](double of) {
    return grid.collective_time(how, of * grad) + (groups ? grid.replicas_time(of * grad / shards) : 0);
  };
  const auto gathered = [&](double of) { return grid.collective_time(CollectiveKind::AllGather, of * param); };
  // With ZeRO 2 and 3 the embedding or the head is a unit of its own.
  const double end = layered ? std::max(0.0, elements - layers * layer) : 0, end_sum = end > 0 ? summed(end) : 0;
  tail.one_sum = summed(unit);
  tail.sum = units * tail.one_sum + end_sum;
  if (point.zero == 1 || point.zero == 2) {
    tail.one_gather = gathered(unit);
    tail.gather = units * tail.one_gather + (end > 0 ? gathered(end) : 0);
  }
  const double own = shape.communication.of(kind, layers) - shape.forward_communication.of(kind, layers);
  if (layered) {  // in every backward; in the last one with the sums over the groups, which hold it up
    const double talk = units * (tail.one_sum + (point.zero == 3 ? gathered(unit) : 0));
    if (groups) {
      const double more = units * grid.replicas_time(unit * grad / shards);
      tail.slowed = std::max({0.0, beside(grid, backward, own, more) - backward, talk - backward});
    }
    const double most = (point.overlap_gradients ? 2 : 1) * tail.one_sum;
    tail.behind = std::clamp(units * tail.one_sum - (backward + tail.slowed) * (1 - 1 / units), tail.one_sum, most);
    if (kind == First || kind == Only) tail.behind += end_sum;
  } else if (!point.overlap_gradients) {
    tail.behind = tail.sum;
  } else {
    const Dense dense(grid, backward, own);
    tail.slowed = std::min(1.0, (tail.sum - tail.one_sum) / dense.carried) * (dense.time - backward);
    tail.behind = std::max(tail.one_sum, tail.sum - dense.carried * (1 - 1 / units));
  }
  return tail;
}

// On a rank the chunks end one after the other, the first of them first: what is left of its sums, its updates, each as soon as
// its gradients are there, and its gathers behind all sums that were said before. The embedding is the last unit of the first
// chunk, its tied copy the first unit of the last one.
Screen::Tail Screen::tail(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const PipelineTimes& times,
                          int kind) const {
  const Layers layers = layers_of(point);
  const auto chunk = [&](int of) {
    const auto i = static_cast<std::size_t>(of);
    return chunk_tail(point, shape, grid, of, layers[i], times.backward[i]);
  };
  const bool several = point.virtual_stages > 1;
  const ChunkTail first = chunk(several && kind == Last ? Middle : kind);
  const ChunkTail other = several ? chunk(Middle) : ChunkTail{};
  const ChunkTail last = !several ? first : kind == Last ? chunk(Last) : other;
  const double between = std::max(0, point.virtual_stages - 2), rest = several ? 1 : 0;
  const bool gathers = !point.overlap_parameters && (point.zero == 1 || point.zero == 2);
  Tail tail;
  tail.slowed = first.slowed + between * other.slowed + rest * last.slowed;
  if (point.zero < 2 && !point.overlap_gradients) {
    // The sums of a chunk begin when the updates of the one before are done, behind its gathers.
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
  const double updates = between * other.update + rest * last.update,
               all_gathers = gathers ? first.gather + between * other.gather + rest * last.gather : 0;
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

// Parameters that are gathered beside the first forwards, chunk by chunk: how much later these are. A forward waits for the
// parameters of its layers, and those of a later chunk are wanted when all ranks have run the chunks before.
double Screen::late_start(const Point& point, const ShapeCosts& shape, const GridCosts& grid,
                          const PipelineTimes& times) const {
  if (!point.overlap_parameters || (point.zero != 1 && point.zero != 2) || point.dp * point.cp <= 1) return 0;
  const Layers layers = layers_of(point);
  const int kind = point.pp == 1 ? Only : First;
  const auto i = static_cast<std::size_t>(kind);
  const ChunkTail first = chunk_tail(point, shape, grid, kind, layers[i], times.backward[i]);
  const ChunkTail other = chunk_tail(point, shape, grid, Middle, layers[Middle], times.backward[Middle]);
  const double forward = times.forward[i], own = shape.forward_communication.of(kind, layers[i]), v = point.virtual_stages;
  const double share = first.one_gather / std::max(first.gather, 1e-30);
  double late = std::max(first.one_gather + beside(grid, forward, own, first.gather - first.one_gather) - forward,
                         first.gather - forward * (1 - share));
  if (v > 1) {
    const double turn = point.pp * times.forward[Middle];
    late = std::max(late, first.gather + (v - 1) * (other.gather - turn) - times.forward[Middle] * (1 - share));
  }
  return std::max(0.0, late);
}

// The first rank is the last to end its backwards; rank r ends when r backwards and transfers are still to come. Reductions beside
// the last backwards slow them one after the other. The two copies of a tied embedding are summed when both ends are there.
double Screen::finished(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const PipelineTimes& times) const {
  const double end = pipeline_time(point.schedule, times) + late_start(point, shape, grid, times);
  if (point.pp == 1) {
    const Tail only = tail(point, shape, grid, times, Only);
    return end + only.slowed + only.all;
  }
  const Tail first = tail(point, shape, grid, times, First), last = tail(point, shape, grid, times, Last);
  const Tail middle = point.pp > 2 ? tail(point, shape, grid, times, Middle) : Tail{};
  double first_end = end + first.slowed, middle_end = end + middle.slowed, last_end = end + last.slowed;
  if (!schedule_entry(point.schedule).splits) {  // else all ranks end together
    const double second = times.backward[First] + times.hop;
    const double before = second + (point.pp - 2) * (times.backward[Middle] + times.hop);
    last_end -= before;
    middle_end = std::max(middle_end, end + last.slowed + (point.pp - 2) * middle.slowed) - second;
    first_end += last.slowed + (point.pp - 2) * middle.slowed;
  }
  double done = std::max(first_end + first.all, last_end + last.all);
  if (point.pp > 2) done = std::max(done, middle_end + middle.all);
  if (!tied_) return done;
  const double bytes = tied_elements_ / point.tp * static_cast<double>(size_of(types_.grad).value);
  const double both = grid.tied_time(point.zero >= 2 ? bytes / shards_of(point) : bytes);
  const double summed = std::max(first_end + first.tied, last_end + last.tied) + both;
  return std::max(done, summed + std::max(first.after, last.after));
}

}  // namespace foreshard
