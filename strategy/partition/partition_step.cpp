#include "strategy/partition/partition_step.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/never.h"

namespace foreshard {

namespace {

constexpr double kNear = 1e-3;  // relative precision of the bisection

// [n]: the sum over the first n layers.
using Prefix = std::vector<double>;
double between(const Prefix& prefix, int from, int to) { return prefix[at(to)] - prefix[at(from)]; }

struct DegreeSums {
  const TensorDegree* degree = nullptr;
  Prefix forward = {0}, backward = {0}, weights = {0}, states = {0}, kept = {0};
  explicit DegreeSums(const TensorDegree& of) : degree(&of) {
    for (const ChainLayer& layer : of.layers) {
      forward.push_back(forward.back() + layer.forward), backward.push_back(backward.back() + layer.backward);
      weights.push_back(weights.back() + layer.weights);
      states.push_back(states.back() + layer.states), kept.push_back(kept.back() + layer.kept);
    }
  }
  double work(int from, int to) const { return between(forward, from, to) + between(backward, from, to); }
  double outputs(int from, int to) const {
    const double in = from > 0 ? degree->layers[at(from - 1)].output : 0;
    const double out = at(to) < degree->layers.size() ? degree->layers[at(to - 1)].output : 0;
    return in + out;
  }
  // Seconds of the gradient sum that the stage's last backward does not hide.
  double sums(int from, int to, int replicas) const {
    const double bandwidth = replicas <= degree->inside ? degree->near : degree->far;
    const double seconds = 2.0 * (replicas - 1) / replicas * between(weights, from, to) / bandwidth;
    return std::max(0.0, seconds - between(backward, from, to));
  }
};

struct Ahead {
  double forward = 0, backward = 0;  // seconds of one micro-batch through all layers before a stage
};

double seconds_of(const HybridJob& job, const DegreeSums& sums, int from, int to, int replicas, const Ahead& ahead) {
  const double turns = job.microbatches / replicas;
  const double own = turns * std::max(sums.work(from, to), sums.outputs(from, to) / job.link);
  return ahead.forward + own + std::max(ahead.backward, sums.sums(from, to, replicas));
}

class Within {
 public:
  explicit Within(const HybridJob& job) : job_(job), replicas_(job.replicas) {
    for (const TensorDegree& degree : job.degrees) {
      FS_ASSERT(degree.layers.size() == job.degrees.front().layers.size());
      sums_.emplace_back(degree);
    }
    layers_ = sums_.empty() ? 0 : static_cast<int>(sums_.front().forward.size()) - 1;
    for (int d = 1; job.replicas.empty() && d <= job.devices; ++d) replicas_.push_back(d);
    ahead_.resize(at(layers_) + 1);
    for (int i = 0; i < layers_; ++i) {
      double forward = kNever, backward = kNever;
      for (const DegreeSums& sums : sums_)
        forward = std::min(forward, between(sums.forward, i, i + 1)),
        backward = std::min(backward, between(sums.backward, i, i + 1));
      ahead_[at(i) + 1] = {ahead_[at(i)].forward + forward, ahead_[at(i)].backward + backward};
    }
  }

  int layers() const { return layers_; }

  // A lower bound: all work spread evenly over all devices.
  double least() const {
    double work = 0;
    for (int i = 0; i < layers_; ++i) {
      double best = kNever;
      for (const DegreeSums& sums : sums_) best = std::min(best, sums.degree->degree * sums.work(i, i + 1));
      work += best;
    }
    return job_.microbatches * work / job_.devices;
  }

  // Fills need_[from], the fewest devices for the layers from `from` on, from the last layer to the first: how many micro-batches a stage
  // has in flight depends on the devices of the stages after it.
  std::optional<HybridPartition> of(double seconds) {
    need_.assign(at(layers_) + 1, {job_.devices + 1, {}});
    need_.back().devices = 0;
    for (int from = layers_ - 1; from >= 0; --from)
      for (int to = layers_; to > from; --to) {
        if (need_[at(to)].devices >= need_[at(from)].devices || (from == 0 && to == layers_)) continue;
        for (const DegreeSums& sums : sums_) look(sums, from, to, seconds);
      }
    if (layers_ == 0 || need_.front().devices > job_.devices) return {};
    HybridPartition partition;
    for (int from = 0; from < layers_; from = partition.stages.back().last) partition.stages.push_back(need_[at(from)].stage);
    partition.cost = step_cost(job_, partition.stages);
    return partition;
  }

 private:
  struct Need {
    int devices = 0;
    HybridStage stage = {};
  };

  void look(const DegreeSums& sums, int from, int to, double seconds) {
    const int tensor = sums.degree->degree, behind = need_[at(to)].devices;
    if (job_.ends > 0 && (from == 0 || to == layers_) && tensor != job_.ends) return;
    const Ahead& ahead = ahead_[at(from)];
    const double room = seconds - ahead.forward - ahead.backward;
    const double own = std::max(sums.work(from, to), sums.outputs(from, to) / job_.link);
    if (room <= 0) return;
    const double least = job_.microbatches * own / room * (1 - 1e-12);
    for (auto d = std::ranges::lower_bound(replicas_, least, {}, [](int n) { return static_cast<double>(n); });
         d != replicas_.end() && behind + *d * tensor < need_[at(from)].devices; ++d) {
      if (!fits(sums, from, to, *d, behind)) continue;
      if (seconds_of(job_, sums, from, to, *d, ahead) > seconds * (1 + 1e-12)) continue;
      need_[at(from)] = {behind + *d * tensor, {from, to, *d, tensor}};
      return;
    }
  }

  // Whether the stage fits in memory. `behind`: devices of the stages after it. Counts their replicas as if they had this tensor degree.
  bool fits(const DegreeSums& sums, int from, int to, int replicas, int behind) const {
    double flight = job_.in_flight;
    if (job_.in_flight == 0)
      flight = std::min(std::ceil(job_.microbatches / replicas),
                        std::ceil((static_cast<double>(behind) / sums.degree->degree + replicas) / replicas));
    return between(sums.states, from, to) + flight * between(sums.kept, from, to) <= job_.capacity;
  }

  const HybridJob& job_;
  std::vector<int> replicas_ = {};
  std::vector<DegreeSums> sums_ = {};
  std::vector<Ahead> ahead_ = {};  // [first layer of a stage]
  std::vector<Need> need_ = {};    // [first layer of a stage]
  int layers_ = 0;
};

}  // namespace

double step_cost(const HybridJob& job, const std::vector<HybridStage>& stages) {
  double cost = 0;
  Ahead ahead;
  for (const HybridStage& stage : stages) {
    const auto degree =
        std::ranges::find_if(job.degrees, [&](const TensorDegree& each) { return each.degree == stage.tensor; });
    if (degree == job.degrees.end()) return kNever;
    const DegreeSums sums(*degree);
    cost = std::max(cost, seconds_of(job, sums, stage.first, stage.last, stage.replicas, ahead));
    ahead.forward += between(sums.forward, stage.first, stage.last);
    ahead.backward += between(sums.backward, stage.first, stage.last);
  }
  return cost;
}

std::optional<HybridPartition> partition_within(const HybridJob& job, double seconds) { return Within(job).of(seconds); }

StepPartition partition_step(const HybridJob& job) {
  Within within(job);
  StepPartition best{.bound = within.least()};
  double slow = 0;  // an upper bound: the seconds of all layers on one device
  for (int i = 0; i < within.layers(); ++i)
    for (const TensorDegree& degree : job.degrees)
      slow += (job.microbatches + 1) *
                  (degree.layers[at(i)].forward + degree.layers[at(i)].backward + 2 * degree.layers[at(i)].output / job.link) +
              2 * degree.layers[at(i)].weights * (1 / degree.near + 1 / degree.far);
  auto found = within.of(slow);
  if (!found) return {.bound = kNever};
  for (double high = slow; high > best.bound * (1 + kNear);) {
    best.partition = *found;
    const double middle = std::sqrt(best.bound * high);
    found = within.of(middle);
    if (found)
      high = middle, best.partition = *found;
    else
      best.bound = middle, found = best.partition;
  }
  return best;
}

}  // namespace foreshard
