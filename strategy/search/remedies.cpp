#include "strategy/search/remedies.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "core/result/memory_timeline.h"
#include "strategy/estimate/estimate.h"
#include "strategy/search/search_framework.h"
#include "strategy/tune/tune.h"
#include "strategy/verdict/verdict.h"

namespace foreshard {

namespace {

struct Change {
  std::string option = {};
  std::function<bool(Strategy&)> apply = {};  // false: changes nothing here
};

// The changes that are tried, in the order of the time that they usually cost, least first.
std::vector<Change> changes() {
  return {
      {"--sequence-parallel", [](Strategy& s) { return s.tp > 1 && !s.sequence_parallel && (s.sequence_parallel = true); }},
      {"--zero 1", [](Strategy& s) { return s.dp * s.cp > 1 && s.zero.stage < 1 && (s.zero.stage = 1); }},
      {"--micro-batch 1",
       [](Strategy& s) {
         if (s.batch.micro == 1) return false;
         s.batch.micro = 1;
         return true;
       }},
      {"--recompute selective",
       [](Strategy& s) {
         if (s.recompute.kind != RecomputeKind::None || s.attention == AttentionKernel::Flash) return false;
         s.recompute = {.kind = RecomputeKind::Selective};
         return true;
       }},
      {"--recompute full",
       [](Strategy& s) {
         if (s.recompute == Recompute{.kind = RecomputeKind::Full}) return false;
         s.recompute = {.kind = RecomputeKind::Full};
         return true;
       }},
      {"--zero 2", [](Strategy& s) { return s.dp * s.cp > 1 && s.zero.stage < 2 && (s.zero.stage = 2); }},
      {"--zero 3", [](Strategy& s) { return s.dp * s.cp > 1 && s.zero.stage < 3 && (s.zero.stage = 3); }},
      {"--offload-optimizer host",
       [](Strategy& s) {
         if (s.offload.optimizer != Space::Device) return false;
         s.offload.optimizer = Space::PinnedHost;
         return true;
       }},
      {"--offload-optimizer host --offload-parameters host --offload-gradients host",
       [](Strategy& s) {
         if (s.offload.parameters != Space::Device || s.offload.gradients != Space::Device) return false;
         s.offload.parameters = s.offload.gradients = Space::PinnedHost;
         if (s.offload.optimizer == Space::Device) s.offload.optimizer = Space::PinnedHost;
         return true;
       }},
  };
}

// Twice as many tensor or pipeline ranks and half as many replicas; the text contains the new degree.
std::vector<Change> larger_degrees(const Strategy& strategy) {
  std::vector<Change> more;
  if (strategy.dp % 2 != 0) return more;
  const std::string tp = std::to_string(strategy.tp * 2), pp = std::to_string(strategy.pp * 2);
  more.push_back({"--tp " + tp, [](Strategy& s) { return s.tp *= 2, s.dp /= 2, s.zero.group = 0, true; }});
  more.push_back({"--pp " + pp, [](Strategy& s) { return s.pp *= 2, s.dp /= 2, s.zero.group = 0, true; }});
  return more;
}

std::string gib(Bytes bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", in_gib(bytes));
  return text;
}

// "24 % slower"; a tenth of a percent is as fast.
std::string price(double seconds, double before) {
  const double more = seconds / before - 1;
  if (std::abs(more) < 0.001) return "as fast";
  char text[32];
  std::snprintf(text, sizeof text, std::abs(more) < 0.0995 ? "%.1f %% %s" : "%.0f %% %s", 100 * std::abs(more),
                more > 0 ? "slower" : "faster");
  return text;
}

// "41.3 GiB on stage 0 of 80.0 GiB, 24 % slower" when it fits. `before`: seconds of the strategy that does not.
std::optional<std::string> fits(const Model& model, const Cluster& cluster, const Strategy& strategy, double before) {
  const auto answer = tuned_plan(model, cluster, strategy, {.explain = false, .check = false});
  const auto* lowered = std::get_if<Lowered>(&answer);
  if (!lowered) return {};
  if (const auto runner = find_runner(strategy.framework); runner && !why_not_run_by(*runner, lowered->strategy).empty())
    return {};
  const Verdict judged = verdict(model, cluster, *lowered);
  if (judged.kind != Verdict::Kind::Fits) return {};  // what may fit is no advice
  std::string where = " in " + judged.holder + "'s allocator";
  if (judged.holder.empty())
    where = " on " + std::ranges::max_element(lowered->plan.roles, {}, [](const Role& role) {
                       return arena_bytes(role, Space::Device);
                     })->name;
  return gib(judged.needs) + where + " of " + gib(judged.capacity) + ", " + price(refine(*lowered, cluster).time.value, before);
}

}  // namespace

std::vector<std::string> remedies(const Model& model, const Cluster& cluster, const Strategy& strategy, std::size_t most) {
  const auto resolved = resolve(model, cluster, strategy);
  if (!std::holds_alternative<Strategy>(resolved)) return {};
  const Strategy& base = std::get<Strategy>(resolved);
  std::vector<Change> all = changes();
  for (Change& change : larger_degrees(base)) all.push_back(std::move(change));
  const auto wanted = tuned_plan(model, cluster, base, {.ignore_memory = true, .pack_by_order = false, .check = false});
  if (!std::holds_alternative<Lowered>(wanted)) return {};
  const double before = refine(std::get<Lowered>(wanted), cluster).time.value;
  std::vector<std::string> found;
  const auto attempt = [&](const std::string& option, const Strategy& changed) {
    if (const auto memory = fits(model, cluster, changed, before)) found.push_back(option + ": " + *memory);
  };
  std::vector<std::pair<std::string, Strategy>> single;
  for (const Change& change : all) {
    Strategy changed = base;
    if (found.size() >= most || !change.apply(changed)) continue;
    attempt(change.option, changed);
    single.emplace_back(change.option, changed);
  }
  for (std::size_t i = 0; i < single.size() && found.empty(); ++i)
    for (const Change& change : all) {
      Strategy changed = single[i].second;
      if (found.size() >= most || change.option == single[i].first || !change.apply(changed)) continue;
      attempt(single[i].first + " " + change.option, changed);
    }
  return found;
}

}  // namespace foreshard
