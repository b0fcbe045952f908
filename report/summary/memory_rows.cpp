#include "report/summary/memory_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace foreshard {

static Bytes static_bytes(const Role& role) {
  Bytes total = {};
  for (const Buffer& buffer : role.buffers) {
    if (!buffer.resident || buffer.space != Space::Device) continue;
    if (buffer.category != Category::Parameters && buffer.category != Category::Gradients &&
        buffer.category != Category::Optimizer)
      continue;
    total += buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
  }
  return total;
}

std::vector<StageMemory> memory_rows(const Result& result) {
  const Plan& plan = result.plan;
  std::vector<StageMemory> rows(plan.roles.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].role = plan.roles[r].name;
    rows[r].statics = static_bytes(plan.roles[r]);
    rows[r].arena = arena_bytes(plan.roles[r], Space::Device);
  }
  for (const MemoryCurve& curve : result.memory.curves) {
    if (curve.space != Space::Device || curve.who.index() >= result.trace.classes.size()) continue;
    StageMemory& row = rows[result.trace.classes[curve.who.index()].role.index()];
    if (sum(curve.peak) <= row.live_peak) continue;
    row.peak = curve.peak;
    row.live_peak = sum(curve.peak);
  }
  for (StageMemory& row : rows) {
    row.reserved = row.arena;
    row.with_framework = row.arena + plan.framework;
  }
  return rows;
}

Bytes peak_of(const Summary& summary, const StageMemory& stage) { return stage.live_peak + summary.fit.framework; }

LiveBytes peak_parts(const Summary& summary, const StageMemory& stage) {
  LiveBytes parts = stage.peak;
  parts[static_cast<std::size_t>(Category::Framework)] += summary.fit.framework;
  return parts;
}

Bytes usable(const Summary& summary) {
  return summary.fit.capacity > Bytes{} ? summary.fit.capacity - summary.fit.reserve : Bytes{};
}

const StageMemory* fullest_stage(const Summary& summary) {
  const auto fullest = std::ranges::max_element(summary.memory, {}, &StageMemory::live_peak);
  return fullest == summary.memory.end() ? nullptr : &*fullest;
}

void judge(Summary& summary, const Verdict& verdict) {
  summary.verdict = verdict;
  summary.feasible = verdict.kind != Verdict::Kind::DoesNotFit;
  summary.infeasible_reason = summary.feasible ? "" : verdict.reason;
}

void add_memory(Summary& summary, const Result& result, const Cluster& cluster) {
  summary.memory = memory_rows(result);
  summary.fit.reserve = result.plan.reserve;
  summary.fit.framework = result.plan.framework;
  const StageMemory* tightest = nullptr;
  for (std::size_t r = 0; r < summary.memory.size(); ++r) {
    const Bytes capacity = gpu_of(cluster, result.plan.roles[r].device_kind).memory;
    const Bytes margin = capacity - summary.fit.reserve - summary.memory[r].with_framework;
    if (tightest != nullptr && margin >= summary.fit.margin) continue;
    tightest = &summary.memory[r];
    summary.fit.capacity = capacity;
    summary.fit.margin = margin;
  }
  if (tightest == nullptr) return;
  summary.verdict.needs = tightest->with_framework, summary.verdict.capacity = summary.fit.capacity;
  if (summary.fit.margin >= Bytes{}) return;
  judge(summary, {.kind = Verdict::Kind::DoesNotFit,
                  .probability = 0,
                  .needs = tightest->with_framework,
                  .capacity = summary.fit.capacity,
                  .reason = fmt::format(
                      "{} needs {:.2f} GiB (arena {:.2f}, framework {:.2f}, reserve {:.2f}) of {:.2f} GiB: {:.2f} GiB too much",
                      tightest->role, in_gib(tightest->with_framework + summary.fit.reserve), in_gib(tightest->arena),
                      in_gib(summary.fit.framework), in_gib(summary.fit.reserve), in_gib(summary.fit.capacity),
                      in_gib(-summary.fit.margin))});
}

}  // namespace foreshard
