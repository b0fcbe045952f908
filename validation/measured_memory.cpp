#include "validation/measured_memory.h"

#include <algorithm>

#include "core/base/error.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/resolve/resolve.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

// Bytes of what the row calls GB: its framework's logs' where it says that these printed the number.
double unit_of(const MeasuredCase& question) {
  return question.printed && framework_preset(question.framework).memory.reports.decimal ? 1e9 : kGib;
}

const RankAllocation& rank_of(const FrameworkAllocation& allocation, MemoryRank rank) {
  FS_ASSERT(!allocation.ranks.empty());
  if (rank == MemoryRank::First) return allocation.ranks.front();
  if (rank == MemoryRank::Last) return allocation.ranks.back();
  return *std::max_element(allocation.ranks.begin(), allocation.ranks.end(),
                           [](const RankAllocation& a, const RankAllocation& b) { return a.reserved < b.reserved; });
}

}  // namespace

MemoryTraits traits_of(const MeasuredCase& question) {
  MemoryTraits traits = question.memory == MemoryKind::Analytic
                            ? MemoryTraits{}
                            : with_flags(framework_preset(question.framework).memory, question.flags);
  traits.offload = question.offload;
  return traits;
}

FrameworkAllocation allocation_of(const MeasuredCase& question, const Strategy& strategy) {
  if (chooses_times(strategy)) {
    const auto tuned = tune(question.model, question.cluster, strategy, {.ignore_memory = true, .pack_by_order = false});
    const auto* found = std::get_if<Tuned>(&tuned);
    return found ? allocation_of(question, found->strategy) : FrameworkAllocation{};
  }
  auto answer = framework_allocation(question.model, question.cluster, strategy, traits_of(question));
  if (auto* allocation = std::get_if<FrameworkAllocation>(&answer)) return std::move(*allocation);
  return {};
}

static Bytes capacity_of(const MeasuredCase& question) {
  return gpu_of(question.cluster, question.cluster.nodes.front().shape.gpu).memory;
}

bool fits(const FrameworkAllocation& allocation, const MeasuredCase& question) {
  return allocation.shortage(capacity_of(question)) == Shortage::None;
}

double filled(const FrameworkAllocation& allocation, const MeasuredCase& question) {
  return allocation.ranks.empty() ? 0 : allocation.largest() / static_cast<double>(capacity_of(question).value);
}

double memory_value(const MeasuredCase& question, const Strategy& strategy, const FrameworkAllocation& allocation) {
  const double unit = unit_of(question);
  const bool first = question.memory == MemoryKind::Unknown && framework_preset(question.framework).memory.reports.first_rank;
  const RankAllocation& rank = rank_of(allocation, first ? MemoryRank::First : question.rank);
  if (question.quantity == Quantity::StaticMemory) return rank.statics / unit;
  if (question.quantity == Quantity::ActivationMemory) return rank.activations / unit;
  if (question.quantity == Quantity::ActivationShare) {
    Strategy plain = strategy;
    plain.sequence_parallel = false, plain.recompute = {};
    const double all = rank_of(allocation_of(question, plain), question.rank).activations;
    return all > 0 ? 100.0 * rank.activations / all : 0;
  }
  switch (question.memory) {
    case MemoryKind::Analytic:
    case MemoryKind::Allocated: return rank.peak / unit;
    case MemoryKind::Reserved: return rank.reserved / unit;
    case MemoryKind::Unknown:
      return (framework_preset(question.framework).memory.reports.reserved ? rank.reserved : rank.peak) / unit;
    case MemoryKind::Device: return (rank.reserved + allocation.outside) / unit;
  }
  return 0;
}

}  // namespace foreshard
