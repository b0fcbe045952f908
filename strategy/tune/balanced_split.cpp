// balanced_split: balances the stages of a pipeline by the times of their layers.
#include <algorithm>
#include <optional>

#include "core/base/at.h"
#include "strategy/cost/framework_memory.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/estimate/estimate_screen.h"
#include "strategy/estimate/isolated_times.h"
#include "strategy/resolve/resolve.h"
#include "strategy/schedule/schedule.h"
#include "strategy/schedule/schedule_read.h"
#include "strategy/tune/partition_model.h"

namespace foreshard {

namespace {

constexpr Bytes kSmall{std::int64_t{1} << 16}, kLarge{std::int64_t{1} << 28};
constexpr double kBetter = 0.9999;
constexpr double kEven = 3;         // micro-batches through an average stage
constexpr double kCells = 500'000;  // stages times micro-batches that steps may look at

// [stage]: the GPUs that the stage is on, when the ranks of a stage are on neighbouring GPUs; nodes may differ. Slowdowns are relative to
// the first kind of node.
std::vector<StagePlace> places_of(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers,
                                  const MachineProfile* profile) {
  const auto all = [](const std::vector<ChainLayer>& chain) {
    double seconds = 0;
    for (const ChainLayer& layer : chain) seconds += layer.forward + layer.backward;
    return seconds;
  };
  const auto graph = graph_of(model, strategy);
  const auto* operators = std::get_if<OpGraph>(&graph);
  const Bytes beside = framework_memory(strategy) + (operators ? attention_workspace(*operators, cluster, strategy) : Bytes{});
  std::vector<StagePlace> groups;
  double first = 0;
  for (const NodeGroup& group : cluster.nodes) {
    const double capacity =
        static_cast<double>(gpu_of(cluster, group.shape.gpu).memory.value) * (1 - strategy.device_memory.reserve) -
        static_cast<double>(beside.value);
    groups.push_back({1, capacity});
    if (cluster.nodes.size() == 1) break;
    Cluster alone = cluster;
    alone.nodes = {group};
    const double seconds = all(layer_chain(model, alone, strategy, layers, profile));
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

// A plan with a role per stage, all of whose ranks send to the next stage at once: a small message, and a large one.
Plan transfers(const Cluster& cluster, const Strategy& s) {
  Plan plan;
  plan.axes = {{.name = axis_name(DenseKind::Tensor), .dense = DenseKind::Tensor, .size = s.tp},
               {.name = axis_name(DenseKind::Context), .dense = DenseKind::Context, .size = s.cp},
               {.name = axis_name(DenseKind::Data), .dense = DenseKind::Data, .size = s.dp}};
  plan.placement.order = in_order(plan.axes, s.placement);
  for (int role = 0; role < s.pp; ++role) {
    Segment segment;
    for (const Bytes bytes : {kSmall, kLarge})
      if (role + 1 < s.pp)
        segment.instructions.push_back({.what = Exchange{.to = Peer{.role_shift = 1}, .bytes = bytes}, .stream = {0}});
    plan.segments.push_back(std::move(segment));
    plan.roles.push_back({.name = std::to_string(role),
                          .device_kind = cluster.nodes.front().shape.gpu,
                          .axes = {AxisId{0}, AxisId{1}, AxisId{2}},
                          .streams = {{"communication", StreamKind::Communication}},
                          .actions = {{.segment = {role}}}});
  }
  return plan;
}

void add_hops(const Cluster& cluster, const Strategy& strategy, const MachineProfile* profile,
              std::vector<StagePlace>& places) {
  Plan plan = transfers(cluster, strategy);
  cost_plan(plan, cluster, framework_preset(strategy.framework), profile);
  IsolatedTimes alone(plan, cluster);
  for (int role = 0; role + 1 < strategy.pp; ++role) {
    const auto seconds = [&](std::size_t which) {
      return alone.duration({role}, plan.segments[at(role)].instructions[which],
                            plan.costs.front().by_segment[at(role)][which]);
    };
    const double small = seconds(0), large = seconds(1);
    StagePlace& place = places[at(role)];
    place.hop_per_byte = (large - small) / static_cast<double>(kLarge.value - kSmall.value);
    place.hop = std::max(0.0, small - place.hop_per_byte * static_cast<double>(kSmall.value));
  }
}

using Stages = std::vector<ChainStage>;

class Balancing {
 public:
  Balancing(const std::vector<ChainLayer>& chain, const std::vector<StagePlace>& places, const Strategy& strategy)
      : chain_(chain), weighed_(chain), places_(places), overlapped_(strategy.communication.overlap->p2p) {
    m_ = static_cast<int>(strategy.batch.global / (strategy.batch.micro * strategy.dp));
    if (strategy.pipeline.schedule == Schedule::GPipe)  // every stage keeps the activations of all micro-batches
      for (ChainLayer& layer : weighed_) layer.states += m_ * layer.kept, layer.kept = 0;
    const ScheduleEntry& entry = schedule_entry(*strategy.pipeline.schedule);
    // In which each stage has a rank.
    const ScheduleEntry& rule = entry.routes > 1 ? schedule_entry(Schedule::OneFOneB) : entry;
    ScheduleShape shape = schedule_shape(strategy, m_);
    shape.v = 1;
    lists_ = entry.chunks == Chunks::Any ? parse_order(strategy.pipeline.order) : rule.lists(shape);
    left_ = std::max(64.0, kCells / (static_cast<double>(m_) * strategy.pp));
  }

  Stages best(const Stages& even) {
    std::vector<StagePlace> far = places_;
    for (StagePlace& place : places_) place.hop = place.hop_per_byte = 0;
    std::vector<Stages> starts = {partition_pipeline(weighed_, far, m_).stages,
                                  partition_pipeline(weighed_, places_, m_).stages};
    limited_ = !starts.front().empty();
    if (!limited_) {  // no split fits: ignores the memory, and `lower` reports what does not fit
      for (StagePlace& place : far) place.capacity = StagePlace{}.capacity;
      for (StagePlace& place : places_) place.capacity = StagePlace{}.capacity;
      starts = {partition_pipeline(weighed_, far, m_).stages, partition_pipeline(weighed_, places_, m_).stages};
    }
    places_ = far;
    if (fits(even)) starts.insert(starts.begin(), even);
    std::ranges::stable_sort(starts, {}, [&](const Stages& stages) { return seconds_of(stages); });
    Stages best = starts.front();  // which others have to be better than
    double least = seconds_of(best);
    if (splits(static_cast<int>(chain_.size()), even.size(), left_) < left_) {
      try_all(even, 0, best, least);
      return best;
    }
    for (Stages stages : starts) {
      const double seconds = improve(stages);
      if (seconds < least * kBetter) best = std::move(stages), least = seconds;
    }
    return best;
  }

 private:
  double hop(const Stages& stages, std::size_t border) const {
    const StagePlace& place = places_[border];
    return place.hop + place.hop_per_byte * chain_[at(stages[border].last - 1)].output;
  }

  // The makespan; transfers that do not overlap count in the stage that sends. A small term prefers even splits: where links decide, many
  // splits have the same makespan, and gradient sums and memory, which the schedule does not know, favour even ones. It is a small multiple
  // of the mean of the stages' times, weighted by these times.
  double seconds_of(const Stages& stages) const {
    ScheduleTimes<double> times{.in_turn = overlapped_};
    double sum = 0, squares = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      double forward = 0, backward = 0;
      for (int i = stages[s].first; i < stages[s].last; ++i)
        forward += chain_[at(i)].forward, backward += chain_[at(i)].backward;
      const double before = s > 0 ? hop(stages, s - 1) : 0, after = s + 1 < stages.size() ? hop(stages, s) : 0;
      const double work = (forward + backward) * places_[s].slowdown;
      sum += work, squares += work * work;
      times.forward.push_back(forward * places_[s].slowdown + (overlapped_ ? 0 : after));
      times.input_grad.push_back(backward * places_[s].slowdown + (overlapped_ ? 0 : before));
      times.weight_grad.push_back(0);
      times.hops.push_back(overlapped_ ? after : 0);
    }
    return evaluate(lists_, times)->makespan + (sum > 0 ? kEven * squares / sum : 0);
  }

  bool fits(const Stages& stages) const {
    for (std::size_t r = 0; r < stages.size(); ++r) {
      double bytes = 0;
      for (int i = stages[r].first; i < stages[r].last; ++i)
        bytes += weighed_[at(i)].states + std::min(m_, static_cast<int>(stages.size() - r)) * weighed_[at(i)].kept;
      if (bytes > places_[r].capacity) return false;
    }
    return true;
  }

  // The number of splits of `layers` layers into `stages` stages; counts up to `most` only.
  static double splits(int layers, std::size_t stages, double most) {
    double count = 1;
    for (std::size_t i = 1; i < stages && count < most; ++i)
      count = count * static_cast<double>(layers - static_cast<int>(i)) / static_cast<double>(i);
    return count;
  }

  bool looked_at(const Stages& stages, Stages& best, double& least) {
    if ((limited_ && !fits(stages)) || --left_ < 0) return false;
    const double seconds = seconds_of(stages);
    if (seconds >= least * kBetter) return false;
    best = stages, least = seconds;
    return true;
  }

  // All of them, from the stage `s` on.
  void try_all(Stages stages, std::size_t s, Stages& best, double& least) {
    if (s + 1 == stages.size()) {
      looked_at(stages, best, least);
      return;
    }
    const int behind = static_cast<int>(stages.size() - s) - 1;
    for (int last = stages[s].first + 1; last <= stages.back().last - behind; ++last) {
      stages[s].last = stages[s + 1].first = last;
      try_all(stages, s + 1, best, least);
    }
  }

  // Moves a border to any place between its neighbours, or a whole stage by one layer, while the schedule gets shorter. Returns its
  // seconds.
  double improve(Stages& stages) {
    double least = seconds_of(stages);
    for (bool better = true; better && left_ > 0;) {
      better = false;
      for (std::size_t border = 0; border + 1 < stages.size(); ++border) {
        Stages moved = stages;
        for (int last = moved[border].first + 1; last < moved[border + 1].last; ++last) {
          moved[border].last = moved[border + 1].first = last;
          if (last != stages[border].last) better |= looked_at(moved, stages, least);
        }
      }
      for (std::size_t s = 1; s + 1 < stages.size(); ++s)
        for (const int by : {-1, 1}) {
          Stages moved = stages;
          moved[s - 1].last += by, moved[s].first += by, moved[s].last += by, moved[s + 1].first += by;
          if (moved[s - 1].last > moved[s - 1].first && moved[s + 1].last > moved[s + 1].first)
            better |= looked_at(moved, stages, least);
        }
    }
    return least;
  }

  const std::vector<ChainLayer>& chain_;
  std::vector<ChainLayer> weighed_ = {};  // chain_ with the activations that GPipe keeps
  std::vector<StagePlace> places_ = {};
  bool overlapped_ = true, limited_ = true;
  int m_ = 1;
  double left_ = 0;  // steps
  ScheduleLists lists_ = {};
};

Stages nearly_even(int layers, int stages) {
  const std::vector<int> counts = parse_layer_split(nearly_even_split(layers, stages), "layer_split");
  Stages result;
  int first = 0;
  for (const int count : counts) result.push_back({first, first + count, 1}), first += count;
  return result;
}

}  // namespace

std::string balanced_split(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers,
                           const MachineProfile* profile) {
  const int stages = strategy.pp * strategy.virtual_stages;
  if (stages == 1 || stages > layers) return "";
  const Stages even = nearly_even(layers, stages);
  Cluster first = cluster;
  first.nodes.resize(1);
  const std::vector<ChainLayer> chain = layer_chain(model, first, strategy, layers, profile);
  if (strategy.virtual_stages > 1 || static_cast<int>(chain.size()) != layers) return split_text(even);
  std::vector<StagePlace> places = places_of(model, cluster, strategy, layers, profile);
  add_hops(cluster, strategy, profile, places);
  return split_text(Balancing(chain, places, strategy).best(even));
}

}  // namespace foreshard
