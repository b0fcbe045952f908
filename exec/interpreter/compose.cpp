#include <algorithm>

#include "core/cluster/cluster.h"
#include "exec/interpreter/measured_trace.h"
#include "replay/light_clock.h"
#include "replay/replay.h"

namespace foreshard {

Seconds transfer_time(const LinkModel& link, Bytes bytes) { return link.latency + bytes / link.bandwidth; }

Seconds transfer_time(const LinkModel& link, const Collective& collective, std::size_t members) {
  if (members < 2) return {};
  double steps = static_cast<double>(members) - 1, share = steps / static_cast<double>(members);
  switch (collective.kind) {
    case CollectiveKind::AllReduce: steps *= 2, share *= 2; break;
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather:
    case CollectiveKind::AllToAll: break;
    case CollectiveKind::Broadcast:
    case CollectiveKind::Reduce: share = 1; break;
  }
  return link.latency * steps + (collective.bytes / link.bandwidth) * share;
}

namespace {

constexpr const char* kDevice = "emulated";

// A cluster of one node with a device per rank. Its links are not used, because LinkModel gives the times of transfers.
Cluster emulated_cluster(const Ranks& ranks) {
  std::int32_t devices = 0;
  for (std::int32_t r = 0; r < ranks.count(); ++r) devices = std::max(devices, ranks.device({r}).value + 1);
  NodeShape node{.name = kDevice, .gpu = kDevice, .gpus = devices};
  for (std::int32_t d = 0; d < devices; ++d)
    node.parts.push_back({.kind = PartKind::Gpu, .name = "device" + std::to_string(d)});
  node.parts.push_back({.kind = PartKind::Cpu, .name = "cpu"});
  node.parts.push_back({.kind = PartKind::Dram, .name = "dram"});
  for (std::int32_t d = 0; d < devices; ++d) node.links.push_back({.from = d, .to = devices, .bandwidth = {1e12}});
  node.links.push_back({.from = devices, .to = devices + 1, .kind = LinkKind::DramBus, .bandwidth = {1e12}});
  return {.name = kDevice, .gpus = {{.name = kDevice}}, .nodes = {{.shape = node}}};
}

// The plan with the costs of such devices: transfers take the time of LinkModel, all other instructions the measured time.
Plan emulated_plan(const Plan& plan, const Ranks& ranks, const LinkModel& link) {
  Plan emulated = plan;
  emulated.costs = {{.device_kind = kDevice}};
  std::vector<std::vector<Cost>>& costs = emulated.costs.front().by_segment;
  for (const Segment& segment : plan.segments) costs.emplace_back(segment.instructions.size(), Cost{.wire_factor = 0});
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    emulated.roles[r].device_kind = kDevice;
    const RankId first = ranks.first({static_cast<std::int32_t>(r)});
    for (const Action& action : plan.roles[r].actions) {
      const std::vector<Instruction>& runs = plan.segments[action.segment.index()].instructions;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        Nanoseconds& busy = costs[action.segment.index()][i].busy;
        if (const auto* collective = std::get_if<Collective>(&runs[i].what))
          busy = to_nanoseconds(transfer_time(link, *collective, ranks.members(collective->group, first).size()));
        if (const auto* exchange = std::get_if<Exchange>(&runs[i].what))
          busy = to_nanoseconds(transfer_time(link, exchange->bytes));
      }
    }
  }
  return emulated;
}

// [rank][action]: index of its first step.
std::vector<std::vector<std::size_t>> first_steps(const Plan& plan, const Ranks& ranks) {
  std::vector<std::vector<std::size_t>> first(static_cast<std::size_t>(ranks.count()));
  for (std::int32_t r = 0; r < ranks.count(); ++r) {
    std::size_t steps = 0;
    for (const Action& action : plan.roles[ranks.role({r}).index()].actions) {
      first[static_cast<std::size_t>(r)].push_back(steps);
      steps += plan.segments[action.segment.index()].instructions.size();
    }
  }
  return first;
}

}  // namespace

std::vector<RankRun> compose(const Plan& plan, const Ranks& ranks, std::vector<RankRun> runs, const LinkModel& link) {
  const std::vector<std::vector<std::size_t>> first = first_steps(plan, ranks);
  const auto span_of = [&](RankId rank, std::int32_t action, std::int32_t instruction) -> StepSpan& {
    return runs[rank.index()]
        .spans[first[rank.index()][static_cast<std::size_t>(action)] + static_cast<std::size_t>(instruction)];
  };
  const Plan emulated = emulated_plan(plan, ranks, link);
  const Cluster cluster = emulated_cluster(ranks);
  player::LightClock clock;
  const Replay replay(emulated, cluster,
                      {.granularity = Granularity::Op,
                       .folding = Folding::None,
                       .memory = false,
                       .measured = [&](RankId rank, std::int32_t action, std::int32_t instruction) {
                         return to_seconds(Nanoseconds{span_of(rank, action, instruction).own});
                       }});
  const LocalReplayOutput played(replay, clock);
  for (const Span& span : played->spans) {
    StepSpan& of = span_of(replay.classes()[span.who.index()].members.front(), span.action, span.instruction);
    of.ready = span.ready.value, of.begin = span.begin.value, of.end = span.end.value;
  }
  return runs;
}

}  // namespace foreshard
