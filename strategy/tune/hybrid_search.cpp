#include "strategy/tune/hybrid_search.h"

#include <algorithm>
#include <utility>

#include "strategy/estimate/estimate_screen.h"
#include "strategy/tune/hybrid_steps.h"

namespace foreshard {

namespace {

// The best strategies, no two of which have the same number of stages and the same micro-batch: their walks would meet.
std::vector<std::size_t> begins(const std::vector<HybridFound>& found, int walks) {
  std::vector<std::size_t> all;
  const auto kind = [&](std::size_t i) { return std::pair(found[i].strategy.stages.size(), found[i].strategy.batch.micro); };
  for (std::size_t i = 0; i < found.size() && static_cast<int>(all.size()) < walks; ++i)
    if (std::ranges::find(all, kind(i), kind) == all.end()) all.push_back(i);
  return all;
}

}  // namespace

std::optional<HybridFound> improve_stages(const std::vector<Strategy>& proposals, const HybridSearch& how,
                                          const JudgeStrategies& judge) {
  std::vector<HybridFound> found;
  const std::vector<std::optional<double>> seconds = judge(proposals);
  for (std::size_t i = 0; i < proposals.size(); ++i)
    if (seconds[i]) found.push_back({proposals[i], *seconds[i]});
  if (found.empty()) return {};
  std::ranges::stable_sort(found, {}, &HybridFound::seconds);
  HybridFound best = found.front();
  best.judged = static_cast<int>(found.size());
  for (const std::size_t walk : begins(found, how.walks)) {
    const Strategy& strategy = found[walk].strategy;
    const JudgeStages judge_stages = [&](const std::vector<std::vector<StageDegrees>>& steps) {
      std::vector<Strategy> all;
      for (const std::vector<StageDegrees>& stages : steps) all.push_back(strategy), all.back().stages = stages;
      return judge(all);
    };
    const auto microbatches = static_cast<double>(strategy.batch.global / strategy.batch.micro);
    const double steps = how.cells / how.walks / (microbatches * static_cast<double>(strategy.stages.size()));
    const StepLimits limits{
        .devices = how.devices, .most = static_cast<int>(std::min<double>(how.steps, steps)), .at_once = how.at_once};
    const Stepped walked = step_by_step(strategy.stages, found[walk].seconds, limits, judge_stages);
    best.judged += walked.judged;
    if (walked.seconds >= best.seconds) continue;
    best.strategy = strategy, best.strategy.stages = walked.stages, best.seconds = walked.seconds;
  }
  return best;
}

std::vector<StageDegrees> stages_of(const Strategy& strategy, int layers) {
  if (!strategy.stages.empty()) return strategy.stages;
  std::vector<StageDegrees> stages;
  std::string split = strategy.pipeline.layer_split;
  if (split.empty()) split = nearly_even_split(layers, strategy.pp);
  if (split.empty()) split = std::to_string(layers / strategy.pp) + "x" + std::to_string(strategy.pp);
  for (const int count : parse_layer_split(split, "layer_split")) stages.push_back({count, strategy.dp, strategy.tp});
  return stages;
}

}  // namespace foreshard
