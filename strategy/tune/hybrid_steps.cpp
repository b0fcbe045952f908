#include "strategy/tune/hybrid_steps.h"

#include <algorithm>

namespace foreshard {

namespace {

constexpr double kGain = 0.999;

using StageList = std::vector<StageDegrees>;

int ranks(const StageList& stages) {
  int sum = 0;
  for (const StageDegrees& stage : stages) sum += stage.dp * stage.tp;
  return sum;
}

// The degrees of one stage after a step.
std::vector<StageDegrees> changed(const StageDegrees& stage) {
  const bool dp = stage.dp % 2 == 0, tp = stage.tp % 2 == 0;
  std::vector<StageDegrees> all = {{stage.layers, stage.dp * 2, stage.tp}, {stage.layers, stage.dp, stage.tp * 2}};
  if (dp) all.push_back({stage.layers, stage.dp / 2, stage.tp * 2});
  if (tp) all.push_back({stage.layers, stage.dp * 2, stage.tp / 2});
  if (dp) all.push_back({stage.layers, stage.dp / 2, stage.tp});
  if (tp) all.push_back({stage.layers, stage.dp, stage.tp / 2});
  return all;
}

class Steps {
 public:
  Steps(const StageList& stages, int devices) : stages_(stages), devices_(devices) {}

  std::vector<StageList> all() {
    for (std::size_t s = 0; s + 1 < stages_.size(); ++s) move_layer(s, s + 1), move_layer(s + 1, s);
    for (std::size_t s = 0; s < stages_.size(); ++s)
      for (const StageDegrees& degrees : changed(stages_[s])) {
        StageList to = stages_;
        to[s] = degrees;
        offer(std::move(to));
      }
    for (std::size_t s = 0; s + 1 < stages_.size(); ++s) join(s);
    for (std::size_t s = 0; s < stages_.size(); ++s) cut(s);
    return std::move(found_);
  }

 private:
  void offer(StageList to) {
    if (ranks(to) <= devices_) found_.push_back(std::move(to));
  }
  void move_layer(std::size_t from, std::size_t to) {
    if (stages_[from].layers < 2) return;
    StageList moved = stages_;
    --moved[from].layers, ++moved[to].layers;
    offer(std::move(moved));
  }
  // With the degrees of either, and with the replicas of both.
  void join(std::size_t s) {
    const StageDegrees &a = stages_[s], &b = stages_[s + 1];
    std::vector<StageDegrees> as = {{a.layers + b.layers, a.dp, a.tp}, {a.layers + b.layers, b.dp, b.tp}};
    if (a.tp == b.tp) as.push_back({a.layers + b.layers, a.dp + b.dp, a.tp});
    for (const StageDegrees& one : as) {
      StageList joined = stages_;
      joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(s));
      joined[s] = one;
      offer(std::move(joined));
    }
  }
  void cut(std::size_t s) {
    const StageDegrees& one = stages_[s];
    if (one.layers < 2 || one.dp % 2 != 0) return;
    StageList halves = stages_;
    halves[s] = {one.layers - one.layers / 2, one.dp / 2, one.tp};
    halves.insert(halves.begin() + static_cast<std::ptrdiff_t>(s) + 1, {one.layers / 2, one.dp / 2, one.tp});
    offer(std::move(halves));
  }

  const StageList& stages_;
  int devices_;
  std::vector<StageList> found_ = {};
};

}  // namespace

std::vector<StageList> one_step(const StageList& stages, int devices) { return Steps(stages, devices).all(); }

Stepped step_by_step(const StageList& start, double seconds, const StepLimits& limits, const JudgeStages& judge) {
  Stepped best{.stages = start, .seconds = seconds};
  std::vector<StageList> seen = {start};
  for (bool better = true; better;) {
    better = false;
    std::vector<StageList> steps = one_step(best.stages, limits.devices), batch;
    std::erase_if(steps, [&](const StageList& step) { return std::ranges::find(seen, step) != seen.end(); });
    for (std::size_t next = 0; next < steps.size() && !better && best.judged < limits.most;) {
      batch.clear();
      for (; next < steps.size() && static_cast<int>(batch.size()) < limits.at_once; ++next)
        if (std::ranges::find(seen, steps[next]) == seen.end()) seen.push_back(steps[next]), batch.push_back(steps[next]);
      const std::vector<std::optional<double>> found = judge(batch);
      const double enough = best.seconds * kGain;
      for (std::size_t i = 0; i < batch.size(); ++i) {
        best.judged += found[i].has_value();
        if (!found[i] || *found[i] >= std::min(enough, best.seconds)) continue;
        best.stages = batch[i], best.seconds = *found[i];
        better = true;
      }
    }
  }
  return best;
}

}  // namespace foreshard
