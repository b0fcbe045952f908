#include "strategy/verdict/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/result/memory_timeline.h"

namespace foreshard {

bool names_framework(const Strategy& strategy) { return strategy.framework != Strategy{}.framework; }

namespace {

struct LogNormal {
  double mean = 0, deviation = 0;  // of log(measured / predicted)
};
LogNormal of(const Spread& errors) {
  const double low = std::log(errors.low), high = std::log(errors.high);
  return {(low + high) / 2, std::max(0.0, (high - low) / (2 * kNinetyPercent))};
}

std::string gib(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", bytes / (1 << 30));
  return text;
}
std::string percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

// Of a framework's allocator.
void judge(Verdict& verdict, const FrameworkAllocation& allocation, const Spread& errors) {
  using enum Verdict::Kind;
  const double device = static_cast<double>(verdict.capacity.value), most = allocation.largest();
  verdict.needs = {static_cast<std::int64_t>(most)};
  verdict.probability = probability_of_fitting(most, device, errors);
  verdict.kind = verdict.probability >= kFits ? Fits : verdict.probability >= kMayFit ? MayFit : DoesNotFit;
  if (verdict.kind == Fits) return;
  verdict.reason = verdict.holder + " takes " + gib(most) + " of " + gib(device) + " per GPU by our prediction";
  if (verdict.kind == DoesNotFit && most > device) {
    verdict.reason += ", " + gib(most - device) + " too much";
    if (allocation.shortage(verdict.capacity) == Shortage::Reserved)
      verdict.reason +=
          ", although allocated memory fits: blocks of other sizes lie free, and "
          "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would help";
    return;
  }
  verdict.reason += "; measured runs took " + percent(errors.low) + " to " + percent(errors.high) +
                    " of what was predicted, so that it fits with a probability of " + percent(verdict.probability);
}

}  // namespace

double probability_of_fitting(double predicted, double capacity, const Spread& errors) {
  if (!(predicted > 0)) return 1;
  const LogNormal error = of(errors);
  const double room = std::log(capacity / predicted) - error.mean;
  if (error.deviation == 0) return room >= 0 ? 1 : 0;
  return 0.5 * std::erfc(-room / error.deviation / std::sqrt(2.0));
}

double margin_of(double probability, const Spread& errors) {
  double low = 1e-3, high = 1e3;  // predicted bytes, of a capacity of 1: the more, the less probable
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (probability_of_fitting(middle, 1, errors) >= probability ? low : high) = middle;
  }
  return 1 / low;
}

Verdict verdict(const Plan& plan, const Cluster& cluster, const Strategy& strategy,
                const std::optional<FrameworkAllocation>& allocation) {
  Verdict verdict{.capacity = gpu_of(cluster, cluster.nodes.front().shape.gpu).memory};
  for (const Role& role : plan.roles)
    verdict.needs = std::max(verdict.needs, arena_bytes(role, Space::Device) + plan.framework);
  const auto refuse = [&](const std::string& reason) {
    verdict.kind = Verdict::Kind::DoesNotFit, verdict.probability = 0, verdict.reason = reason;
  };
  const std::optional<Infeasible> own = does_not_fit(plan, cluster);
  if (!allocation) {
    if (own) refuse(own->reason);
    return verdict;
  }
  verdict.holder = strategy.framework;
  judge(verdict, *allocation, memory_spread(shipped_comparisons(), strategy.framework, strategy.optimizer.lora.any()));
  if (const auto host = host_does_not_fit(plan, cluster))
    refuse(host->reason);
  else if (own)
    verdict.beneath = "in this program's own executor: " + own->reason;
  return verdict;
}

Verdict verdict(const Model& model, const Cluster& cluster, const Lowered& lowered) {
  std::optional<FrameworkAllocation> allocation;
  if (names_framework(lowered.strategy)) {
    auto held = framework_allocation(model, cluster, lowered.strategy);
    if (auto* known = std::get_if<FrameworkAllocation>(&held)) allocation = std::move(*known);
  }
  return verdict(lowered.plan, cluster, lowered.strategy, allocation);
}

}  // namespace foreshard
