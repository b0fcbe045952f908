#include "strategy/partition_model.h"

#include <algorithm>

#include "core/memory_timeline.h"
#include "strategy/estimate.h"
#include "strategy/estimate_screen.h"
#include "strategy/framework_memory.h"
#include "strategy/lower.h"
#include "strategy/partition.h"
#include "strategy/schedule.h"

namespace foreshard {

namespace {

// Bytes that a forward sends to the next stage.
double sent(const Plan& plan, const Role& role) {
  for (const Action& action : role.actions)
    if (!action.does.empty() && action.does.front().work == Work::F)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions)
        if (const auto* what = std::get_if<Exchange>(&run.what); what && what->to && what->to->role_shift != 0)
          return static_cast<double>(what->bytes.value);
  return 0;
}

void forget_transfers(Plan& plan) {
  for (CostTable& table : plan.costs)
    for (std::size_t s = 0; s < plan.segments.size(); ++s)
      for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i)
        if (const auto* what = std::get_if<Exchange>(&plan.segments[s].instructions[i].what);
            what && (what->to ? what->to : what->from)->role_shift != 0)
          table.by_segment[s][i] = {.wire_factor = 0};
}

}  // namespace

std::vector<ChainLayer> layer_chain(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers, Hops hops,
                                    const MachineProfile* profile) {
  Strategy single = strategy;
  single.pp = layers, single.virtual_stages = 1, single.schedule = Schedule::OneFOneB;
  single.layer_split.clear();
  const Recompute& recompute = strategy.recompute;  // of other stages, or of chains: not of one layer
  if (recompute == Recompute{.kind = RecomputeKind::Each}) single.recompute = {};  // to be chosen
  if (recompute.layers < 0 || !recompute.per_stage.empty() || recompute.kind >= RecomputeKind::Rotor) single.recompute = {};
  single.dp = 1, single.zero = 0, single.zero_group = 0;
  single.global_batch = single.micro_batch * 2;
  const int gpus = layers * single.tp * single.cp, per_node = cluster.nodes.front().shape.gpus;
  Cluster large = cluster;
  if (gpus > gpu_count(cluster)) {
    if (cluster.nodes.size() != 1) return {};
    large = with_nodes(cluster, static_cast<int>(ceil_div(gpus, per_node)));
  }
  auto answer = lower(model, large, single, {.ignore_memory = true, .profile = profile});
  if (std::holds_alternative<Infeasible>(answer)) return {};
  Plan& plan = std::get<Lowered>(answer).plan;
  if (hops == Hops::Free) forget_transfers(plan);
  const std::vector<StageDurations> times = stage_durations(plan, large);
  const double shards = strategy.zero > 0 ? static_cast<double>(strategy.dp) * strategy.cp : 1;
  std::vector<ChainLayer> chain;
  for (std::size_t i = 0; i < times.size(); ++i) {
    ChainLayer layer{.forward = times[i].forward, .backward = times[i].backward};
    for (const Buffer& buffer : plan.roles[i].buffers) {
      const auto bytes = static_cast<double>(buffer.bytes.value);
      const bool sharded = (buffer.category == Category::Optimizer && strategy.zero >= 1) ||
                           (buffer.category == Category::Gradients && strategy.zero >= 2) ||
                           (buffer.category == Category::Parameters && strategy.zero >= 3);
      if (buffer.resident) layer.states += bytes / (sharded ? shards : 1);
      if (buffer.resident && buffer.category == Category::Gradients) layer.weights += bytes;
      if (!buffer.resident && buffer.category == Category::Activations) layer.kept += bytes;
    }
    layer.output = sent(plan, plan.roles[i]);
    chain.push_back(layer);
  }
  return chain;
}

namespace {

// What the stages stand on, with the ranks of a stage on neighbouring GPUs: nodes may differ. Slowdowns are against the first node.
std::vector<StagePlace> places_of(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers) {
  const auto all = [](const std::vector<ChainLayer>& chain) {
    double seconds = 0;
    for (const ChainLayer& layer : chain) seconds += layer.forward + layer.backward;
    return seconds;
  };
  std::vector<StagePlace> groups;
  double first = 0;
  for (const NodeGroup& group : cluster.nodes) {
    const double capacity = static_cast<double>(gpu_of(cluster, group.shape.gpu).memory.value) * (1 - strategy.reserve) -
                            static_cast<double>(framework_memory(strategy).value);
    groups.push_back({1, capacity});
    if (cluster.nodes.size() == 1) break;
    Cluster alone = cluster;
    alone.nodes = {group};
    const double seconds = all(layer_chain(model, alone, strategy, layers));
    if (first == 0) first = seconds;
    if (first > 0) groups.back().slowdown = seconds / first;
  }
  const std::int64_t each = static_cast<std::int64_t>(strategy.tp) * strategy.cp * strategy.dp;
  std::vector<StagePlace> places;
  for (int stage = 0; stage < strategy.pp; ++stage) {
    std::size_t group = 0;
    std::int64_t device = stage * each;
    while (group + 1 < groups.size() &&
           device >= static_cast<std::int64_t>(cluster.nodes[group].count) * cluster.nodes[group].shape.gpus)
      device -= static_cast<std::int64_t>(cluster.nodes[group].count) * cluster.nodes[group].shape.gpus, ++group;
    places.push_back(groups[group]);
  }
  return places;
}

double makespan(const std::vector<ChainLayer>& chain, const std::vector<ChainStage>& stages,
                const std::vector<StagePlace>& places, const ScheduleLists& lists) {
  ScheduleTimes<double> times;
  for (const ChainStage& stage : stages) {
    const double slowdown = places[times.forward.size()].slowdown;
    double forward = 0, backward = 0;
    for (int i = stage.first; i < stage.last; ++i)
      forward += chain[static_cast<std::size_t>(i)].forward, backward += chain[static_cast<std::size_t>(i)].backward;
    times.forward.push_back(forward * slowdown), times.input_grad.push_back(backward * slowdown),
        times.weight_grad.push_back(0);
  }
  return evaluate(lists, times)->makespan;
}

std::vector<ChainStage> nearly_even(int layers, int stages) {
  const std::vector<int> counts = parse_layer_split(nearly_even_split(layers, stages), "layer_split");
  std::vector<ChainStage> result;
  int first = 0;
  for (const int count : counts) result.push_back({first, first + count, 1}), first += count;
  return result;
}

}  // namespace

std::string balanced_split(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers) {
  const int stages = strategy.pp * strategy.virtual_stages;
  if (stages == 1 || stages > layers) return "";
  const std::vector<ChainStage> even = nearly_even(layers, stages);
  Cluster first = cluster;
  first.nodes.resize(1);
  const std::vector<ChainLayer> chain = layer_chain(model, first, strategy, layers);
  if (strategy.virtual_stages > 1 || static_cast<int>(chain.size()) != layers) return split_text(even);
  const auto m = static_cast<int>(strategy.global_batch / (strategy.micro_batch * strategy.dp));
  const int flights = strategy.schedule == Schedule::GPipe ? m : 0;  // GPipe keeps all of them everywhere
  std::vector<ChainLayer> weighed = chain;
  if (flights > 0)
    for (ChainLayer& layer : weighed) layer.states += flights * layer.kept, layer.kept = 0;
  const ScheduleLists lists = schedule_entry(*strategy.schedule).lists({.p = strategy.pp, .m = m, .v = 1, .g = 0});
  const std::vector<StagePlace> tight = places_of(model, cluster, strategy, layers);
  std::vector<StagePlace> roomy = tight;
  for (StagePlace& place : roomy) place.capacity = StagePlace{}.capacity;
  std::vector<std::vector<ChainStage>> found = {partition_pipeline(weighed, tight, m).stages};
  if (found.front().empty()) found = {partition_pipeline(weighed, roomy, m).stages, even};  // lower tells what does not fit
  if (makespan(chain, even, tight, lists) <= makespan(chain, found.front(), tight, lists)) {
    bool fits = true;  // the even split
    for (std::size_t r = 0; r < even.size(); ++r) {
      double bytes = 0;
      for (int i = even[r].first; i < even[r].last; ++i)
        bytes += weighed[static_cast<std::size_t>(i)].states +
                 std::min(m, stages - static_cast<int>(r)) * weighed[static_cast<std::size_t>(i)].kept;
      fits &= bytes <= tight[r].capacity;
    }
    if (fits) return split_text(even);
  }
  return split_text(found.front());
}

}  // namespace foreshard
