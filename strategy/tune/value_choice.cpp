#include "strategy/tune/value_choice.h"

#include <algorithm>
#include <optional>

#include "core/base/at.h"
#include "core/base/count_text.h"
#include "replay/replay.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/resolve/held_values.h"
#include "strategy/tune/role_trial.h"
#include "strategy/tune/stage_job.h"

namespace foreshard {

namespace {

using Moves = std::vector<ValueMove>;

constexpr int kLevels = 16;                // budgets between the peaks of keeping and of moving everything
constexpr int kBelow = 8;                  // ... and below, each a tenth smaller
constexpr std::int64_t kTimings = 20'000;  // of one call of the planner

class ValueChoice {
 public:
  ValueChoice(const Model& model, const Cluster& cluster, const Strategy& strategy, const LowerOptions& options,
              const Lowering& base, std::vector<HeldValues> stages)
      : model_(model),
        cluster_(cluster),
        strategy_(strategy),
        options_(options),
        base_(base),
        trial_(base, options.pack_by_order),
        stages_(std::move(stages)) {
    options_.ignore_memory = true;
  }

  std::variant<Moves, Infeasible> best() {
    std::vector<int> ranks;  // that do not fit as they are
    for (int rank = 0; rank < strategy_.pp; ++rank)
      if (arena(rank, {}) > room(rank)) ranks.push_back(rank);
    if (ranks.empty()) return Moves{};
    std::vector<std::vector<Moves>> ways(3);  // [way][rank]
    for (const int rank : ranks) {
      ways[0].push_back(planned(rank));
      ways[1].push_back(everything(rank, false)), ways[2].push_back(everything(rank, true));
    }
    const Moves* fastest = nullptr;
    double least = 0;
    std::vector<Moves> whole;
    for (const std::vector<Moves>& way : ways) {
      whole.emplace_back();
      for (const Moves& moves : way) whole.back().insert(whole.back().end(), moves.begin(), moves.end());
    }
    for (const Moves& moves : whole) {
      if (!std::ranges::all_of(ranks, [&](int rank) { return arena(rank, moves) <= room(rank); })) continue;
      const double taken = seconds(moves);
      if (!fastest || taken < least) fastest = &moves, least = taken;
    }
    if (fastest) return *fastest;
    return smallest(ranks, whole);
  }

 private:
  Bytes room(int rank) const {
    return strategy_.offload.budget.value > 0 ? std::min(strategy_.offload.budget, trial_.room(rank)) : trial_.room(rank);
  }
  Bytes arena(int rank, const Moves& moves) {
    trial_.lowering.tables.activations.moves = moves;
    return trial_.arena(rank, room(rank));
  }
  double seconds(const Moves& moves) const {
    const auto answer = lower(model_, cluster_, strategy_, options_, {.moves = moves});
    const auto* lowered = std::get_if<Lowered>(&answer);
    FS_ASSERT(lowered != nullptr);
    return makespan_of(lowered->plan, cluster_, {.granularity = Granularity::Op, .memory = false});
  }

  std::variant<Moves, Infeasible> smallest(const std::vector<int>& ranks, const std::vector<Moves>& ways) {
    const Moves* best = nullptr;
    Bytes least = {}, allowed = {};
    for (const Moves& moves : ways) {
      Bytes most = {};
      for (const int rank : ranks) most = std::max(most, arena(rank, moves)), allowed = room(rank);
      if (!best || most < least) best = &moves, least = most;
    }
    if (strategy_.offload.budget.value == 0) return *best;
    return Infeasible{.reason = "--offload-activations free-time reaches an arena of " + in_size(least) + ", the budget is " +
                                in_size(allowed),
                      .would_help = {budget_that_fits(least), "--micro-batch 1", "--recompute full"}};
  }

  template <typename Plan>
  Moves of_stages(int rank, Plan plan) const {
    Moves moves;
    for (int stage = 0; stage < base_.stages(); ++stage) {
      if (base_.tables.schedule.rank_of(stage) != rank) continue;
      const HeldValues& held = stages_[at(stage)];
      const std::optional<TensorPlan> chosen = plan(held.job);
      if (!chosen) return {};
      const Moves of_stage = moves_of(held, *chosen, strategy_.offload.activation_home);
      moves.insert(moves.end(), of_stage.begin(), of_stage.end());
    }
    return moves;
  }

  Moves everything(int rank, bool waits) const {
    return of_stages(rank, [&](const TensorJob& job) -> std::optional<TensorPlan> {
      TensorPlan plan = vdnn_offload(job, VdnnScope::All);
      plan.waits_for_copies = waits;
      plan.timing = tensor_timing(job, plan.choices, waits);
      return plan;
    });
  }

  // Within the part of the values' peak that a level leaves; none: the planner finds no such plan.
  Moves at_level(int rank, int level) const {
    return of_stages(rank, [&](const TensorJob& job) -> std::optional<TensorPlan> {
      const Bytes kept = tensor_timing(job, std::vector<TensorChoice>(job.tensors.size()), false).peak;
      const Bytes away = std::min(kept, vdnn_offload(job, VdnnScope::All).timing.peak);
      Bytes budget = {kept.value - (kept.value - away.value) * std::min(level, kLevels) / kLevels};
      for (int below = kLevels; below < level; ++below) budget = {budget.value * 9 / 10};
      auto found = free_time_offload(job, budget, {.timings = kTimings});
      if (auto* plan = std::get_if<TensorPlan>(&found)) return std::move(*plan);
      return {};
    });
  }

  // The level with most room that fits when the program is built.
  Moves planned(int rank) {
    int few = -1, enough = kLevels + kBelow;
    Moves best;
    while (enough - few > 1) {
      const int middle = (few + enough) / 2;
      Moves moves = at_level(rank, middle);
      const bool found = !moves.empty(), fits = found && arena(rank, moves) <= room(rank);
      if (fits || best.empty()) best = std::move(moves);
      (fits || !found ? enough : few) = middle;
    }
    return best;
  }

  const Model& model_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  LowerOptions options_;
  const Lowering& base_;
  RoleTrial trial_;
  std::vector<HeldValues> stages_;
};

}  // namespace

std::variant<Moves, Infeasible> moves_by_free_time(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                                   const LowerOptions& options) {
  auto begun = begin_lowering(model, cluster, strategy, {.moves = Moves{}});
  if (auto* refused = std::get_if<Infeasible>(&begun)) return *refused;
  const Space home = strategy.offload.activation_home;
  std::vector<HeldValues> stages;
  Moves all;
  {
    const Lowering& lowering = std::get<Lowering>(begun);
    for (int stage = 0; stage < lowering.tables.layout.layers.stages(); ++stage) {
      stages.push_back(held_values(lowering.graph, lowering.tables.layout.layers, lowering.tables.activations, stage));
      for (const ValueMove& move : moves_of(stages.back(), vdnn_offload(stages.back().job, VdnnScope::All), home))
        all.push_back(move);
    }
  }
  if (all.empty()) return all;
  LowerOptions anyway = options;
  anyway.ignore_memory = true;
  const auto again = begin_lowering(model, cluster, strategy, {.moves = all});
  const auto moved = lower(model, cluster, strategy, anyway, {.moves = all});
  if (const auto* refused = std::get_if<Infeasible>(&moved)) return *refused;
  const Lowering& lowering = std::get<Lowering>(again);
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage)
    time_job(stages[at(stage)], std::get<Lowered>(moved).plan, cluster, lowering.graph, stage, home);
  return ValueChoice(model, cluster, strategy, options, lowering, std::move(stages)).best();
}

}  // namespace foreshard
