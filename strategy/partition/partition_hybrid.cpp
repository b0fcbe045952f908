#include "strategy/partition/partition_hybrid.h"

#include <algorithm>
#include <limits>

#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/never.h"

namespace foreshard {

namespace {

// Sums over layers from .. to - 1 for one tensor degree, by prefix sums.
class Sums {
 public:
  Sums(const HybridJob& job, const TensorDegree& degree) : job_(job), degree_(degree) {
    for (const ChainLayer& layer : degree.layers) {
      work_.push_back(work_.back() + layer.forward + layer.backward);
      weights_.push_back(weights_.back() + layer.weights);
      bytes_.push_back(bytes_.back() + layer.states + job.in_flight * layer.kept);
    }
  }
  int degree() const { return degree_.degree; }
  double work(int from, int to) const { return work_[at(to)] - work_[at(from)]; }
  bool fits(int from, int to) const { return bytes_[at(to)] - bytes_[at(from)] <= job_.capacity; }
  // Seconds of the slower of the two links of a stage with one replica.
  double ports(int from, int to) const {
    const double in = from > 0 ? degree_.layers[at(from - 1)].output : 0;
    const double out = at(to) < degree_.layers.size() ? degree_.layers[at(to - 1)].output : 0;
    return 2 * std::max(in, out) / job_.link;
  }
  double sync(int from, int to, int replicas) const {
    const double bandwidth = replicas <= degree_.inside ? degree_.near : degree_.far;
    return 2.0 * (replicas - 1) / replicas * (weights_[at(to)] - weights_[at(from)]) / bandwidth / job_.microbatches;
  }
  int inside() const { return degree_.inside; }
  double own(int from, int to, int replicas) const { return work(from, to) / replicas + sync(from, to, replicas); }
  double cost(int from, int to, int replicas) const { return std::max(own(from, to, replicas), ports(from, to) / replicas); }

 private:
  const HybridJob& job_;
  const TensorDegree& degree_;
  std::vector<double> work_ = {0}, weights_ = {0}, bytes_ = {0};
};

std::vector<Sums> sums_of(const HybridJob& job) {
  std::vector<Sums> all;
  for (const TensorDegree& degree : job.degrees) {
    FS_ASSERT(degree.layers.size() == job.degrees.front().layers.size());
    all.emplace_back(job, degree);
  }
  return all;
}

struct Choice {
  int from = 0, replicas = 0, tensor = 0;
};

// best[n][k]: the least cost of the first n layers on at most k devices.
struct Table {
  std::vector<std::vector<double>> best = {};
  std::vector<std::vector<Choice>> choices = {};
  Table(int layers, int devices)
      : best(at(layers) + 1, std::vector<double>(at(devices) + 1, kNever)),
        choices(at(layers) + 1, std::vector<Choice>(at(devices) + 1)) {
    std::fill(best[0].begin(), best[0].end(), 0.0);
  }
};

// Tries the best number d of replicas of a last stage [from, n) from `least` to `most`, all of one bandwidth (near or far). With more
// replicas fewer devices are left for the stages before, so their cost grows; the time of the links falls; and the stage's own work
// either falls or grows. So the larger of the growing terms crosses the larger of the falling terms once, and the best d is on one
// side of that crossing.
void last_stage(const Sums& sums, int from, int n, int k, int least, int most, Table& table) {
  const std::vector<double>& before = table.best[at(from)];
  const double ports = sums.ports(from, n);
  const bool grows = sums.own(from, n, most) > sums.own(from, n, least);
  const auto growing = [&](int d) { return std::max(before[at(k - d * sums.degree())], grows ? sums.own(from, n, d) : 0); };
  const auto falling = [&](int d) { return std::max(ports / d, grows ? 0 : sums.own(from, n, d)); };
  double& best = table.best[at(n)][at(k)];
  const auto offer = [&](int d) {
    const double cost = std::max(growing(d), falling(d));
    if (cost < best) best = cost, table.choices[at(n)][at(k)] = {from, d, sums.degree()};
  };
  int low = least, high = most;  // the first d at which the growing terms are larger is in [low, high], if there is one
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (growing(middle) >= falling(middle))
      high = middle;
    else
      low = middle + 1;
  }
  offer(low);
  if (low > least) offer(low - 1);
}

// The same for a given list of numbers of replicas.
void last_stage(const Sums& sums, int from, int n, int k, const std::vector<int>& allowed, Table& table) {
  double& best = table.best[at(n)][at(k)];
  for (const int d : allowed) {
    if (d * sums.degree() > k) break;
    const double cost = std::max(table.best[at(from)][at(k - d * sums.degree())], sums.cost(from, n, d));
    if (cost < best) best = cost, table.choices[at(n)][at(k)] = {from, d, sums.degree()};
  }
}

// Tries a last stage [from, n) for the first n layers on k devices. Skips numbers of replicas that cannot be better than the best so far:
// too few for the stage's own work, or so many that too few devices are left.
void last_stage(const HybridJob& job, const Sums& sums, int from, int n, int k, Table& table) {
  const bool end = from == 0 || at(n) == job.degrees.front().layers.size();
  if (end && job.ends > 0 && sums.degree() != job.ends) return;
  const double best = table.best[at(n)][at(k)], slowest = std::max(sums.work(from, n), sums.ports(from, n));
  const int most = k / sums.degree();
  const double enough = best < kNever ? slowest / best : 1;
  if (most < 1 || enough > most || !sums.fits(from, n)) return;
  if (!job.replicas.empty()) return last_stage(sums, from, n, k, job.replicas, table);
  const int least = std::max(1, static_cast<int>(enough)), near = std::min(most, sums.inside());
  if (table.best[at(from)][at(k - least * sums.degree())] >= best) return;
  if (near >= least) last_stage(sums, from, n, k, least, near, table);
  if (most > near) last_stage(sums, from, n, k, std::max(least, near + 1), most, table);
}

}  // namespace

double hybrid_cost(const HybridJob& job, const HybridStage& stage) {
  for (const TensorDegree& degree : job.degrees)
    if (degree.degree == stage.tensor) return Sums(job, degree).cost(stage.first, stage.last, stage.replicas);
  return kNever;
}

HybridPartition partition_hybrid(const HybridJob& job) {
  const int layers = job.degrees.empty() ? 0 : static_cast<int>(job.degrees.front().layers.size());
  if (layers == 0 || job.devices < 1) return {.cost = kNever};
  const std::vector<Sums> sums = sums_of(job);
  Table table(layers, job.devices);
  for (int n = 1; n <= layers; ++n)
    for (int k = 1; k <= job.devices; ++k) {
      table.best[at(n)][at(k)] = table.best[at(n)][at(k - 1)];  // one device stays idle
      table.choices[at(n)][at(k)] = table.choices[at(n)][at(k - 1)];
      for (int from = n - 1; from >= 0; --from)
        for (const Sums& degree : sums) last_stage(job, degree, from, n, k, table);
    }
  HybridPartition result{.cost = table.best[at(layers)][at(job.devices)]};
  if (result.cost == kNever) return result;
  for (int k = job.devices, n = layers; n > 0;) {
    const Choice& choice = table.choices[at(n)][at(k)];
    result.stages.insert(result.stages.begin(), {choice.from, n, choice.replicas, choice.tensor});
    // The choice may use fewer than k devices. Then the table for the layers before it has more devices than it needs, which does no harm.
    k -= choice.replicas * choice.tensor, n = choice.from;
  }
  return result;
}

HybridPartition partition_uniform(const HybridJob& job, int tensor, int replicas, int stages) {
  const std::vector<Sums> all = sums_of(job);
  const auto sums = std::find_if(all.begin(), all.end(), [&](const Sums& each) { return each.degree() == tensor; });
  if (job.ends > 0 && tensor != job.ends) return {.cost = kNever};
  if (!job.replicas.empty() && std::ranges::find(job.replicas, replicas) == job.replicas.end()) return {.cost = kNever};
  if (sums == all.end() || stages < 1 || stages * replicas * tensor > job.devices) return {.cost = kNever};
  const int layers = static_cast<int>(job.degrees.front().layers.size());
  std::vector<std::vector<double>> best(at(stages) + 1, std::vector<double>(at(layers) + 1, kNever));
  std::vector<std::vector<int>> cut(at(stages) + 1, std::vector<int>(at(layers) + 1, -1));
  best[0][0] = 0;
  for (int s = 1; s <= stages; ++s)
    for (int n = s; n <= layers; ++n)
      for (int from = n - 1; from >= s - 1 && sums->fits(from, n); --from) {
        const double cost = std::max(best[at(s - 1)][at(from)], sums->cost(from, n, replicas));
        if (cost < best[at(s)][at(n)]) best[at(s)][at(n)] = cost, cut[at(s)][at(n)] = from;
      }
  HybridPartition result{.cost = best[at(stages)][at(layers)]};
  if (result.cost == kNever) return result;
  for (int s = stages, n = layers; s > 0; --s) {
    const int from = cut[at(s)][at(n)];
    result.stages.insert(result.stages.begin(), {from, n, replicas, tensor});
    n = from;
  }
  return result;
}

}  // namespace foreshard
