#include "report/summary/summarize.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/plan/ranks.h"
#include "report/causes/binding.h"
#include "report/causes/bubbles.h"
#include "report/causes/occupancy.h"
#include "report/summary/memory_rows.h"

namespace foreshard {

// The number format of most of the matrix products. MFU is relative to the dense peak of this format.
static DType matrix_type(const Plan& plan) {
  std::array<double, 16> flops = {};
  for (const Segment& segment : plan.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* compute = std::get_if<Compute>(&instruction.what))
        if ((is_matrix_product(compute->op) || is<ops::Conv2d>(compute->op)) && !compute->shapes.empty())
          flops[static_cast<std::size_t>(compute->shapes.front().dtype)] += compute->flops.value;
  const auto most = std::max_element(flops.begin(), flops.end());
  return *most > 0 ? static_cast<DType>(most - flops.begin()) : DType::BF16;
}

// What fused attention of a segment does not compute: the pairs that its masks exclude.
static Flops beyond_masks(const Segment& segment) {
  Flops beyond = {};
  for (const Instruction& instruction : segment.instructions) {
    const auto* compute = std::get_if<Compute>(&instruction.what);
    const auto* attention = compute == nullptr ? nullptr : std::get_if<ops::Attention>(&compute->op);
    if (attention == nullptr || compute->shapes.size() < 2) continue;
    beyond.value += compute->flops.value * (1 - attention->share_in_mask(compute->shapes[1].dims[1]));
  }
  return beyond;
}

// Work and peak of all ranks together.
static void add_utilization(Summary& summary, const Result& result, const Cluster& cluster, const SumsByRole& sums,
                            const Ranks& ranks) {
  const Plan& plan = result.plan;
  const DType type = matrix_type(plan);
  FlopsPerSecond available = {};
  Flops beyond = {};
  std::vector<Flops> of_segment;
  for (const Segment& segment : plan.segments) of_segment.push_back(beyond_masks(segment));
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const RoleId role = {static_cast<std::int32_t>(r)};
    Flops work = {};
    Flops excluded = {};
    for (const Action& action : plan.roles[r].actions)
      work += sums[role].flops(action.segment), excluded += of_segment[action.segment.index()];
    summary.flops.hardware += work * ranks.count(role);
    beyond += excluded * ranks.count(role);
    available.value += peak(gpu_of(cluster, plan.roles[r].device_kind), type).value * ranks.count(role);
  }
  const double possible = available.value * summary.iteration_time.value;
  if (possible <= 0) return;
  summary.flops.model_utilization = summary.flops.model.value / possible;
  summary.flops.hardware_utilization = summary.flops.hardware.value / possible;
  summary.flops.masked_hardware_utilization = (summary.flops.hardware.value - beyond.value) / possible;
}

// Idle time of a class in the steady period of runs that overlap: what its computes leave of the period. The pipeline neither fills nor
// drains there. Other causes keep the time that they have in a run by itself, as far as there is so much; the rest is dependency.
static void keep_steady(std::array<Nanoseconds, kBubbleCauses>& idle, Nanoseconds makespan, Nanoseconds period) {
  Nanoseconds alone = {}, others = {};
  for (const Nanoseconds time : idle) alone += time;
  idle[static_cast<std::size_t>(BubbleCause::WarmUp)] = idle[static_cast<std::size_t>(BubbleCause::Drain)] = {};
  for (const Nanoseconds time : idle) others += time;
  const Nanoseconds left = std::max(Nanoseconds{}, period - (makespan - alone));
  const double share = std::min(1.0, static_cast<double>(left.value) / std::max(1.0, static_cast<double>(others.value)));
  Nanoseconds kept = {};
  for (Nanoseconds& time : idle) kept += time = {static_cast<std::int64_t>(share * static_cast<double>(time.value))};
  idle[static_cast<std::size_t>(BubbleCause::Dependency)] += left - kept;
}

// The time that shares refer to: the makespan, or the steady period of runs that overlap.
static Nanoseconds whole_of(const Result& result) {
  return result.period_s > 0 ? to_nanoseconds({result.period_s}) : result.trace.makespan;
}

// Shares of the makespan, mean over ranks: every class counts as often as it has members.
static void add_bubbles(Summary& summary, const Result& result, const SumsByRole& sums) {
  const Trace& trace = result.trace;
  const std::size_t roles = result.plan.roles.size();
  std::vector<std::array<Nanoseconds, kBubbleCauses>> idle(trace.classes.size());
  for (const Bubble& bubble : find_bubbles(result.plan, trace, bind_spans(result.plan, trace)))
    idle[bubble.who.index()][static_cast<std::size_t>(bubble.cause)] += bubble.end - bubble.begin;
  if (result.period_s > 0)
    for (auto& of_class : idle) keep_steady(of_class, trace.makespan, whole_of(result));
  const std::vector<Occupancy> occupied = occupancy(result.plan, trace, sums);

  summary.bubble.by_cause.assign(kBubbleCauses, 0);
  summary.bubble.per_stage.assign(roles, 0);
  summary.bubble.by_cause_per_stage.assign(roles, std::vector<double>(kBubbleCauses, 0));
  std::vector<double> members(roles, 0);
  double all = 0, exposed = 0, hidden = 0;
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const auto weight = static_cast<double>(trace.classes[c].members.size());
    const std::size_t role = trace.classes[c].role.index();
    members[role] += weight;
    all += weight;
    for (std::size_t cause = 0; cause < kBubbleCauses; ++cause)
      summary.bubble.by_cause_per_stage[role][cause] += weight * static_cast<double>(idle[c][cause].value);
    exposed += weight * static_cast<double>(occupied[c].communicating.value);
    hidden += weight * static_cast<double>(occupied[c].hidden.value);
  }
  const auto makespan = static_cast<double>(whole_of(result).value);
  if (all == 0 || makespan == 0) return;
  for (std::size_t role = 0; role < roles; ++role)
    for (std::size_t cause = 0; cause < kBubbleCauses; ++cause) {
      double& share = summary.bubble.by_cause_per_stage[role][cause];
      summary.bubble.by_cause[cause] += share / (all * makespan);
      if (members[role] > 0) share /= members[role] * makespan;
      summary.bubble.per_stage[role] += share;
    }
  for (const double share : summary.bubble.by_cause) summary.bubble.fraction += share;
  summary.communication.exposed =
      exposed / (all * makespan) + summary.bubble.by_cause[static_cast<std::size_t>(BubbleCause::ExposedCommunication)];
  summary.communication.hidden = hidden / (all * makespan);
}

static std::vector<LinkUtilization> link_rows(const Result& result) {
  std::vector<LinkUtilization> rows;
  const double makespan = to_seconds(whole_of(result)).value;
  for (const LinkClass& link : result.trace.links) {
    const double possible = link.bandwidth.value * makespan;
    rows.push_back({link.name, static_cast<int>(link.links.size()), possible > 0 ? link.bytes / possible : 0});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.utilization > b.utilization; });
  return rows;
}

static int devices(const Ranks& ranks) {
  std::vector<std::int32_t> used;
  for (std::int32_t rank = 0; rank < ranks.count(); ++rank) used.push_back(ranks.device({rank}).value);
  std::sort(used.begin(), used.end());
  return static_cast<int>(std::unique(used.begin(), used.end()) - used.begin());
}

static void add_rates(Summary& summary, const Result& result, const Cluster& cluster, const Workload& workload) {
  const double seconds = summary.iteration_time.value;
  if (seconds <= 0) return;
  const auto samples = static_cast<double>(result.plan.samples);
  const double tokens = samples * static_cast<double>(std::max<std::int64_t>(workload.tokens_per_sample, 1));
  summary.samples_per_s = samples / seconds;
  summary.tokens_per_s = tokens / seconds;
  if (summary.gpus > 0) summary.tokens_per_s_per_gpu = summary.tokens_per_s / summary.gpus;
  if (tokens <= 0) return;
  const double gpu_seconds_per_million = summary.gpus * seconds / tokens * 1e6;
  if (cluster.price_per_gpu_hour > 0)
    summary.cost_per_million_tokens = gpu_seconds_per_million / 3600 * cluster.price_per_gpu_hour;
  if (cluster.power_per_gpu_watts > 0)
    summary.energy_per_million_tokens_j = gpu_seconds_per_million * cluster.power_per_gpu_watts;
}

Summary summarize(const Result& result, const Cluster& cluster, const Workload& workload,
                  const std::vector<Bytes>& order_bounds) {
  const Ranks ranks(result.plan);
  Summary summary;
  summary.iteration_time = result.period_s > 0     ? Seconds{result.period_s}
                           : result.makespan_s > 0 ? Seconds{result.makespan_s}
                                                   : to_seconds(result.trace.makespan);
  summary.gpus = devices(ranks);
  summary.stages = result.plan.stages;
  summary.microbatches = result.plan.microbatches;
  summary.parameters = workload.parameters;
  summary.flops.model = workload.model_flops_per_sample * static_cast<double>(result.plan.samples);
  const SumsByRole sums = sums_by_role(result.plan);
  add_rates(summary, result, cluster, workload);
  add_utilization(summary, result, cluster, sums, ranks);
  if (workload.model_flops_per_sample.value > 0)
    summary.flops.masked_utilization =
        summary.flops.model_utilization * workload.masked_flops_per_sample.value / workload.model_flops_per_sample.value;
  add_bubbles(summary, result, sums);
  add_memory(summary, result, cluster);
  // With three streams or more, the order bound may exceed the bytes that can be alive together. The arena holds all blocks that can, so
  // its size limits the bound.
  FS_ASSERT(order_bounds.empty() || order_bounds.size() == summary.memory.size());
  for (std::size_t r = 0; r < order_bounds.size(); ++r)
    summary.memory[r].order_bound = std::min(order_bounds[r], summary.memory[r].arena);
  summary.stage_times = stage_times(result.plan, result.trace, sums);
  summary.links = link_rows(result);
  return summary;
}

}  // namespace foreshard
