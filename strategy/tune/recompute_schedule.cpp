#include "strategy/tune/recompute_schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "strategy/kernels/op_cost.h"
#include "strategy/recompute/keep_rule.h"
#include "strategy/resolve/schedule_table.h"
#include "strategy/tune/role_trial.h"

namespace foreshard {

namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// Schedules of one stage from the fastest, which keeps everything, to the one that keeps least.
class Ladder {
 public:
  virtual ~Ladder() = default;
  virtual int levels() const = 0;
  virtual double bytes(int level) const = 0;  // of activations, with all micro-batches in flight
  virtual StageRuns at(int level) const = 0;
};

struct StageToSchedule {
  StageLayers layers = {};
  std::vector<std::vector<double>> seconds = {};  // [layer][operator], forward
  std::vector<char> counted = {};                 // [layer]
  int flight = 1;                                 // micro-batches between forward and backward, at most
};

double bytes_of(const LayerGraph& layer, int value) {
  return value < 0 ? 0 : static_cast<double>(layer.values[static_cast<std::size_t>(value)].bytes.value);
}

// Bytes of all that the backward of a layer reads, with the layer's output and without its input.
double everything_of(const LayerGraph& layer) {
  const KeepRule rule = keep_rule(layer, {});
  double bytes = bytes_of(layer, layer.output);
  for (int value = 0; value < static_cast<int>(layer.values.size()); ++value)
    if (rule.stored[index(value)] && value != layer.input && value != layer.output) bytes += bytes_of(layer, value);
  return bytes;
}

class RotorLadder final : public Ladder {
 public:
  explicit RotorLadder(const StageToSchedule& stage) : stage_(stage) {
    double all = 0;
    for (std::size_t l = 0; l < stage.layers.size(); ++l) {
      double forward = 0;
      for (const double seconds : stage.seconds[l]) forward += seconds;
      exact_.push_back({bytes_of(*stage.layers[l], stage.layers[l]->input), everything_of(*stage.layers[l])});
      chain_.push_back({.forward = forward});
      all += exact_.back().everything;
    }
    const double layers = static_cast<double>(stage.layers.size());
    const int units = static_cast<int>(std::min(2000.0, std::max(50.0, 8e6 / (layers * layers))));
    const double unit = std::max(1.0, all / units);
    for (std::size_t l = 0; l < chain_.size(); ++l) {  // rounded up
      chain_[l].input = static_cast<int>(exact_[l].input / unit) + 1;
      chain_[l].everything = static_cast<int>(exact_[l].everything / unit) + 1;
    }
    const int memory = units + static_cast<int>(chain_.size());
    for (RecomputePlan& plan : recompute_chains(chain_, memory)) offer(std::move(plan));
    std::reverse(plans_.begin(), plans_.end());
  }
  int levels() const override { return static_cast<int>(plans_.size()); }
  double bytes(int level) const override { return plans_[index(level)].bytes; }
  StageRuns at(int level) const override { return runs_of_chain(stage_.layers, plans_[index(level)].plan.steps); }

 private:
  struct Sizes {
    double input = 0, everything = 0;
  };
  struct Priced {
    RecomputePlan plan = {};
    double bytes = 0;
  };

  // Bytes of activations that a stage needs under the plan: those kept from forward to backward, for each micro-batch in flight, and those
  // that are recomputed and kept during the backward. With one micro-batch in flight the latter use memory that the former have released
  // (memory_planner.h), so the peak of both together counts; else they have buffers of their own.
  double bytes_with(const RecomputePlan& plan) const {
    double now = 0, most = 0, turned = -1, again = 0, most_again = 0;
    std::vector<double> held(chain_.size() + 1, 0), held_again = held;
    for (const RecomputeStep& step : plan.steps) {
      const std::size_t l = index(step.stage);
      if (step.work == RecomputeWork::Backward) {
        if (turned < 0) turned = now;
        now -= held[l], held[l] = 0;
        again -= held_again[l], held_again[l] = 0;
        continue;
      }
      const auto keep = [&](std::size_t layer, double bytes) {
        held[layer] += bytes, now += bytes;
        if (turned >= 0) held_again[layer] += bytes, again += bytes;
      };
      if (step.work == RecomputeWork::ForwardKeepInput) keep(l + 1, exact_[l + 1].input);
      if (step.work == RecomputeWork::ForwardKeepAll) keep(l, exact_[l].everything);
      most = std::max(most, now), most_again = std::max(most_again, again);
    }
    return exact_.front().input * stage_.flight + (stage_.flight == 1 ? most : turned * stage_.flight + most_again);
  }

  // Must be called with plans for more and more memory. Drops a plan that is not faster than the last one; a faster plan replaces earlier
  // ones that need as many bytes or more.
  void offer(RecomputePlan plan) {
    if (plan.steps.empty() || (!plans_.empty() && plan.seconds >= plans_.back().plan.seconds)) return;
    const double bytes = bytes_with(plan);
    while (!plans_.empty() && plans_.back().bytes >= bytes) plans_.pop_back();
    plans_.push_back({std::move(plan), bytes});
  }

  const StageToSchedule& stage_;
  std::vector<RecomputeStage> chain_ = {};
  std::vector<Sizes> exact_ = {};
  std::vector<Priced> plans_ = {};
};

// Revolve's schedule, which treats all layers as equal. Layers at the ends that are not counted (embedding, head) are kept whole.
class RevolveLadder final : public Ladder {
 public:
  RevolveLadder(const StageToSchedule& stage, int checkpoints) {
    std::vector<int> before, inner, after;
    for (int l = 0; l < static_cast<int>(stage.layers.size()); ++l)
      (stage.counted[index(l)] ? inner : inner.empty() ? before : after).push_back(l);
    std::vector<RecomputeStep> steps;
    for (const int l : before) steps.push_back({RecomputeWork::ForwardKeepAll, l});
    // With these sizes the memory holds one whole layer at a time beside `checkpoints` inputs, as Revolve does (tested in
    // tests/strategy/recompute/recompute_chain_test.cpp).
    const std::vector<RecomputeStage> equal(inner.size(), {1, 0, 1, checkpoints + 2});
    bool turned = false;
    for (const RecomputeStep& step : recompute_chain(equal, 2 * checkpoints + 3).steps) {
      if (step.work == RecomputeWork::Backward && !std::exchange(turned, true)) turn(after, steps);
      steps.push_back({step.work, inner[index(step.stage)]});
    }
    if (!turned) turn(after, steps);
    for (std::size_t i = before.size(); i-- > 0;) steps.push_back({RecomputeWork::Backward, before[i]});
    runs_ = runs_of_chain(stage.layers, steps);
  }
  int levels() const override { return 1; }
  double bytes(int) const override { return 0; }
  StageRuns at(int) const override { return runs_; }

 private:
  static void turn(const std::vector<int>& after, std::vector<RecomputeStep>& steps) {
    for (const int l : after) steps.push_back({RecomputeWork::ForwardKeepAll, l});
    for (std::size_t i = after.size(); i-- > 0;) steps.push_back({RecomputeWork::Backward, after[i]});
  }
  StageRuns runs_ = {};
};

// Schedules of recompute_greedy_path for each layer. The next level advances the layer whose next schedule frees the most bytes per
// additional second.
class GraphLadder final : public Ladder {
 public:
  explicit GraphLadder(const StageToSchedule& stage) : stage_(stage) {
    std::map<const LayerGraph*, std::size_t> known;
    double bytes = 0;
    for (std::size_t l = 0; l < stage.layers.size(); ++l) {
      const auto [kind, fresh] = known.try_emplace(stage.layers[l], ways_.size());
      if (fresh) ways_.push_back(way_of(*stage.layers[l], stage.seconds[l]));
      way_.push_back(kind->second);
      bytes += ways_[kind->second].kept.front() + bytes_of(*stage.layers[l], stage.layers[l]->input);
    }
    bytes_.push_back(bytes * stage.flight);
    std::vector<std::size_t> level(stage.layers.size(), 0);
    for (int l = best_step(level); l >= 0; l = best_step(level)) {
      const Way& way = ways_[way_[index(l)]];
      const std::size_t from = level[index(l)]++;
      bytes -= way.kept[from] - way.kept[from + 1];
      steps_.push_back(l), bytes_.push_back(bytes * stage.flight);
    }
  }
  int levels() const override { return static_cast<int>(bytes_.size()); }
  double bytes(int level) const override { return bytes_[index(level)]; }
  StageRuns at(int level) const override {
    std::vector<std::size_t> depth(stage_.layers.size(), 0);
    for (int i = 0; i < level; ++i) ++depth[index(steps_[index(i)])];
    std::vector<const LayerNodes*> nodes;
    std::vector<const GraphSchedule*> schedules;
    for (std::size_t l = 0; l < depth.size(); ++l) {
      nodes.push_back(&ways_[way_[l]].nodes);
      schedules.push_back(&ways_[way_[l]].path[depth[l]]);
    }
    return runs_of_graphs(stage_.layers, nodes, schedules);
  }

 private:
  struct Way {
    LayerNodes nodes = {};
    std::vector<GraphSchedule> path = {};
    std::vector<double> kept = {};  // bytes, falling
  };
  static Way way_of(const LayerGraph& layer, const std::vector<double>& seconds) {
    Way way{.nodes = nodes_of(layer, seconds)};
    const int nothing_kept = way.nodes.nodes[index(way.nodes.turn)].bytes;
    for (GraphSchedule& schedule : recompute_greedy_path(way.nodes.nodes, nothing_kept)) {
      const double kept = kept_bytes(way.nodes, schedule);
      if (!way.kept.empty() && kept >= way.kept.back()) continue;
      const int peak = schedule.peak;
      way.path.push_back(keep_longer(way.nodes.nodes, std::move(schedule), peak)), way.kept.push_back(kept);
    }
    return way;
  }
  int best_step(const std::vector<std::size_t>& level) const {
    int best = -1;
    double best_ratio = -1;
    for (std::size_t l = 0; l < level.size(); ++l) {
      const Way& way = ways_[way_[l]];
      if (level[l] + 1 >= way.path.size()) continue;
      const double freed = way.kept[level[l]] - way.kept[level[l] + 1];
      const double ratio = freed / (way.path[level[l] + 1].seconds - way.path[level[l]].seconds + 1e-12);
      if (ratio > best_ratio) best_ratio = ratio, best = static_cast<int>(l);
    }
    return best;
  }

  const StageToSchedule& stage_;
  std::vector<Way> ways_ = {};
  std::vector<std::size_t> way_ = {};  // [layer]
  std::vector<int> steps_ = {};        // layers
  std::vector<double> bytes_ = {};     // [level]
};

StageToSchedule stage_of(const Lowering& lowering, int stage) {
  StageToSchedule out;
  const Gpu& gpu = gpu_of(lowering.cluster, lowering.cluster.nodes.front().shape.gpu);
  for (int l = lowering.first_layer(stage); l < lowering.first_layer(stage) + lowering.layers_of(stage); ++l) {
    const OpGraph::Layer& layer = lowering.graph.layers[index(l)];
    out.layers.push_back(&lowering.graph.kinds[index(layer.kind)]);
    out.counted.push_back(layer.counted);
    out.seconds.emplace_back();
    for (const Operator& op : out.layers.back()->operators)
      out.seconds.back().push_back(
          op.communication
              ? 0
              : op_time(gpu, {.op = op.op, .shapes = op.shapes, .flops = op.forward.flops, .traffic = op.forward.traffic})
                    .value);
  }
  int now = 0;
  for (const ScheduleOp& op : lowering.tables.schedule.order[index(lowering.tables.schedule.rank_of(stage))]) {
    if (op.stage != stage) continue;
    now += op.work == Work::F ? 1 : -1;
    out.flight = std::max(out.flight, now);
  }
  return out;
}

std::unique_ptr<Ladder> ladder_of(const Recompute& recompute, const StageToSchedule& stage) {
  if (recompute.kind == RecomputeKind::Rotor) return std::make_unique<RotorLadder>(stage);
  if (recompute.kind == RecomputeKind::Revolve) return std::make_unique<RevolveLadder>(stage, recompute.checkpoints);
  return std::make_unique<GraphLadder>(stage);
}

class Scheduling {
 public:
  Scheduling(const Lowering& lowering, bool by_order) : lowering_(lowering), trial_(lowering, by_order) {
    const int stages = lowering.stages();
    for (int stage = 0; stage < stages; ++stage) stages_.push_back(stage_of(lowering, stage));
    for (const StageToSchedule& stage : stages_) ladders_.push_back(ladder_of(lowering.strategy.recompute, stage));
    runs_.resize(index(stages));
    trial_.lowering.tables.activations = {.runs_of_stage = std::vector<StageRuns>(index(stages)), .shared_by_chunks = false};
  }

  std::variant<std::vector<StageRuns>, Infeasible> all() {
    for (int rank = 0; rank < lowering_.strategy.pp; ++rank)
      if (auto refused = choose(rank)) return *refused;
    return runs_;
  }

 private:
  static constexpr int kPositions = 256;  // between the fastest and the smallest schedules of a rank's stages

  std::vector<int> stages_of(int rank) const {
    std::vector<int> stages;
    for (int stage = 0; stage < lowering_.stages(); ++stage)
      if (lowering_.tables.schedule.rank_of(stage) == rank) stages.push_back(stage);
    return stages;
  }
  int level_at(int stage, int position) const {
    const int last = ladders_[index(stage)]->levels() - 1;
    return (last * position + kPositions - 1) / kPositions;
  }
  double bytes_at(int rank, int position) const {
    double bytes = 0;
    for (const int stage : stages_of(rank)) bytes += ladders_[index(stage)]->bytes(level_at(stage, position));
    return bytes;
  }

  bool fits(int rank, int position) {
    const Bytes budget = lowering_.strategy.recompute.budget;
    if (budget.value > 0) return bytes_at(rank, position) <= static_cast<double>(budget.value);
    for (const int stage : stages_of(rank))
      trial_.lowering.tables.activations.runs_of_stage[index(stage)] = ladders_[index(stage)]->at(level_at(stage, position));
    return trial_.fits(rank);
  }

  // The fastest schedules that fit. From position to position less is kept.
  std::optional<Infeasible> choose(int rank) {
    int few = -1, enough = kPositions;
    if (ladders_[index(stages_of(rank).front())]->levels() == 1 && lowering_.strategy.recompute.kind == RecomputeKind::Revolve)
      few = kPositions - 1;
    while (enough - few > 1) {
      const int middle = (few + enough) / 2;
      (fits(rank, middle) ? enough : few) = middle;
    }
    const Recompute& recompute = lowering_.strategy.recompute;
    if (recompute.budget.value > 0 && !fits(rank, enough)) {
      char least[64];
      std::snprintf(least, sizeof least, "%.0fMiB", std::ceil(bytes_at(rank, kPositions) / (1 << 20)));
      return Infeasible{
          .reason = "recompute " + to_text(recompute) + " is too little: the activations of pipeline rank " +
                    std::to_string(rank) + " need at least " + least,
          .would_help = {"--recompute " + std::string(name_of(recompute.kind)) + ":" + least, "--recompute full"}};
    }
    for (const int stage : stages_of(rank)) runs_[index(stage)] = ladders_[index(stage)]->at(level_at(stage, enough));
    return {};
  }

  const Lowering& lowering_;
  RoleTrial trial_;
  std::vector<StageToSchedule> stages_ = {};  // [stage]
  std::vector<std::unique_ptr<Ladder>> ladders_ = {};
  std::vector<StageRuns> runs_ = {};
};

}  // namespace

std::variant<std::vector<StageRuns>, Infeasible> schedule_stages(const Lowering& lowering, bool by_order) {
  const Recompute& recompute = lowering.strategy.recompute;
  if (splits_backwards(lowering.strategy))
    return Infeasible{.reason = "recompute " + to_text(recompute) + " needs whole backwards, schedule " +
                                name_of(*lowering.strategy.pipeline.schedule) + " splits them",
                      .would_help = {"--schedule 1f1b", "--recompute auto"}};
  return Scheduling(lowering, by_order).all();
}

}  // namespace foreshard
