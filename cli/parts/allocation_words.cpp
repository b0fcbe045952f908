#include "cli/parts/allocation_words.h"

#include <algorithm>
#include <cstdio>

#include "core/json/json.h"
#include "core/result/memory_timeline.h"
#include "strategy/frameworks/online_allocation.h"
#include "strategy/verdict/spread.h"

namespace foreshard {

static const char* name_of(Shortage shortage) {
  return shortage == Shortage::None ? "" : shortage == Shortage::Allocated ? "allocated" : "reserved";
}

// How far off predictions of the framework's memory are.
static Spread errors_of(const Prepared& prepared) {
  return memory_spread(shipped_comparisons(), prepared.strategy.framework, prepared.strategy.optimizer.lora.any());
}

// What is left; what is too much says the verdict.
static std::string left(const Prepared& prepared, const Spread& errors) {
  const Verdict& verdict = prepared.verdict;
  const double device = static_cast<double>(verdict.capacity.value), most = static_cast<double>(verdict.needs.value);
  if (verdict.kind == Verdict::Kind::DoesNotFit || most > device) return "";
  char line[160];
  std::snprintf(line, sizeof line, "  %.1f GiB are left; one run in twenty takes at least %.1f GiB more than predicted\n",
                (device - most) / (1 << 30), most * std::max(0.0, errors.high - 1) / (1 << 30));
  return line;
}

std::string allocation_json(const Prepared& prepared) {
  if (!prepared.allocation) return "";
  JsonWriter json(0);
  json.begin_object().field("framework", prepared.strategy.framework);
  const auto list = [&](const char* key, double RankAllocation::*bytes) {
    json.key(key).begin_array();
    for (const RankAllocation& rank : prepared.allocation->ranks) json.value(static_cast<std::int64_t>(rank.*bytes));
    json.end_array();
  };
  list("static_bytes", &RankAllocation::statics);
  list("allocated_bytes", &RankAllocation::peak);
  list("reserved_bytes", &RankAllocation::reserved);
  json.field("outside_bytes", static_cast<std::int64_t>(prepared.allocation->outside));
  json.field("largest_bytes", static_cast<std::int64_t>(prepared.allocation->largest()));
  const Gpu& gpu = gpu_of(prepared.cluster, prepared.cluster.nodes.front().shape.gpu);
  json.field("exceeded_by", name_of(prepared.allocation->shortage(gpu.memory)));
  const double filled = prepared.allocation->largest() / static_cast<double>(gpu.memory.value);
  return json.field("close", is_close(filled, errors_of(prepared))).end_object().text();
}

std::string allocation_text(const Prepared& prepared) {
  if (!prepared.allocation) return "";
  const std::vector<RankAllocation>& ranks = prepared.allocation->ranks;
  const auto most = std::max_element(ranks.begin(), ranks.end(),
                                     [](const RankAllocation& a, const RankAllocation& b) { return a.reserved < b.reserved; });
  const Gpu& gpu = gpu_of(prepared.cluster, prepared.cluster.nodes.front().shape.gpu);
  char line[256];
  std::snprintf(line, sizeof line,
                "\nIn %s's own allocator, rank %d of the pipeline, GiB per GPU\n"
                "  between steps %.1f, peak allocated %.1f, reserved %.1f, with context and connections %.1f of %.1f\n",
                prepared.strategy.framework.c_str(), static_cast<int>(most - ranks.begin()), most->statics / (1 << 30),
                most->peak / (1 << 30), most->reserved / (1 << 30), prepared.allocation->largest() / (1 << 30),
                in_gib(gpu.memory));
  return line + left(prepared, errors_of(prepared));
}

static std::vector<OnlineAllocation> of_stages(const Plan& plan) {
  std::vector<OnlineAllocation> all;
  for (std::int32_t role = 0; role < static_cast<std::int32_t>(plan.roles.size()); ++role)
    all.push_back(allocate_online(plan, {role}));
  return all;
}

std::string caching_allocator_json(const Plan& plan) {
  const std::vector<OnlineAllocation> all = of_stages(plan);
  JsonWriter json(0);
  json.begin_object();
  const auto list = [&](const char* key, const auto& number) {
    json.key(key).begin_array();
    for (const OnlineAllocation& each : all) json.value(number(each));
    json.end_array();
  };
  list("asked_bytes", [](const OnlineAllocation& each) { return each.asked_peak.value; });
  list("allocated_bytes", [](const OnlineAllocation& each) { return each.allocated_peak.value; });
  list("reserved_bytes", [](const OnlineAllocation& each) { return each.reserved.value; });
  list("fragmentation", [](const OnlineAllocation& each) { return each.fragmentation(); });
  return json.end_object().text();
}

std::string caching_allocator_text(const Plan& plan) {
  const std::vector<OnlineAllocation> all = of_stages(plan);
  const auto most = std::ranges::max_element(all, {}, [](const OnlineAllocation& each) { return each.reserved; });
  const Role& role = plan.roles[static_cast<std::size_t>(most - all.begin())];
  char line[256];
  std::snprintf(line, sizeof line,
                "\nFrom PyTorch's caching allocator, %s, GiB per GPU\n"
                "  peak asked for %.2f, allocated %.2f, reserved %.2f (fragmentation %.1f %%); laid out before the run %.2f\n",
                role.name.c_str(), in_gib(most->asked_peak), in_gib(most->allocated_peak), in_gib(most->reserved),
                100 * most->fragmentation(), in_gib(arena_bytes(role, Space::Device)));
  return line;
}

}  // namespace foreshard
