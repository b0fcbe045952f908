#include "strategy/recompute/recompute_chain.h"

#include <limits>

#include "core/base/at.h"
#include "core/base/never.h"

namespace foreshard {

namespace {

// best(s, t, m): the least seconds of all forwards and backwards of stages s .. t with m units free, when the input of s is kept already.
//   keep all     f(s) + best(s+1, t, m - everything(s)) + b(s)
//   keep inputs  f(s) + ... + f(c-1) + best(c, t, m - input(c)) + best(s, c-1, m)
class Chain {
 public:
  Chain(const std::vector<RecomputeStage>& stages, int memory)
      : stages_(stages), count_(static_cast<int>(stages.size())), memory_(memory) {
    const auto cells =
        static_cast<std::size_t>(count_) * static_cast<std::size_t>(count_) * static_cast<std::size_t>(memory + 1);
    best_.assign(cells, kNever);
    cut_.assign(cells, -1);
    for (int length = 1; length <= count_; ++length)
      for (int s = 0; s + length <= count_; ++s)
        for (int m = 0; m <= memory_; ++m) solve(s, s + length - 1, m);
  }

  double best(int s, int t, int m) const { return s > t ? 0 : best_[cell(s, t, m)]; }

  void write(int s, int t, int m, std::vector<RecomputeStep>& steps) const {
    if (s > t) return;
    const int cut = cut_[cell(s, t, m)];
    if (cut == s) {
      steps.push_back({RecomputeWork::ForwardKeepAll, s});
      write(s + 1, t, m - stages_[at(s)].everything, steps);
      steps.push_back({RecomputeWork::Backward, s});
      return;
    }
    for (int i = s; i < cut; ++i) steps.push_back({i + 1 < cut ? RecomputeWork::Forward : RecomputeWork::ForwardKeepInput, i});
    write(cut, t, m - stages_[at(cut)].input, steps);
    write(s, cut - 1, m, steps);
  }

 private:
  std::size_t cell(int s, int t, int m) const { return (at(s) * at(count_) + at(t)) * at(memory_ + 1) + at(m); }

  void solve(int s, int t, int m) {
    const RecomputeStage& first = stages_[at(s)];
    double& best_here = best_[cell(s, t, m)];
    int& cut = cut_[cell(s, t, m)];
    if (first.everything <= m) {
      best_here = first.forward + best(s + 1, t, m - first.everything) + first.backward;
      cut = s;
    }
    double forward = 0;
    for (int c = s + 1; c <= t; ++c) {
      forward += stages_[at(c - 1)].forward;
      if (stages_[at(c)].input > m) continue;
      const double seconds = forward + best(c, t, m - stages_[at(c)].input) + best(s, c - 1, m);
      if (seconds < best_here) best_here = seconds, cut = c;
    }
  }

  const std::vector<RecomputeStage>& stages_;
  int count_, memory_;
  std::vector<double> best_ = {};
  std::vector<int> cut_ = {};  // the best c > s whose input is kept; s: all of s is kept; -1: not possible
};

}  // namespace

static RecomputePlan plan_of(const Chain& chain, int last, int memory) {
  RecomputePlan plan{.seconds = chain.best(0, last, memory)};
  if (plan.seconds < kNever) chain.write(0, last, memory, plan.steps);
  return plan;
}

RecomputePlan recompute_chain(const std::vector<RecomputeStage>& stages, int memory) {
  if (stages.empty()) return {};
  if (memory < 0) return {.seconds = kNever};
  return plan_of(Chain(stages, memory), static_cast<int>(stages.size()) - 1, memory);
}

std::vector<RecomputePlan> recompute_chains(const std::vector<RecomputeStage>& stages, int memory) {
  std::vector<RecomputePlan> plans;
  if (stages.empty() || memory < 0) return plans;
  const Chain chain(stages, memory);
  for (int m = 0; m <= memory; ++m) plans.push_back(plan_of(chain, static_cast<int>(stages.size()) - 1, m));
  return plans;
}

}  // namespace foreshard
