#include "strategy/search/search_space.h"

#include <algorithm>
#include <utility>

#include "core/base/divisors.h"
#include "core/strategy/strategy_options.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/schedule/schedule.h"
#include "strategy/schedule/schedule_read.h"

namespace foreshard {

namespace {

constexpr int kMostVirtualStages = 64;
constexpr std::int64_t kLeastTokensPerContextRank = 4096;  // below it a split of the sequence has nothing to win
constexpr std::int64_t kLeastExpertColumns = 1024;         // below it the products of a part of an expert lose too much

std::vector<std::int64_t> only_or(bool fixed, std::int64_t value, std::vector<std::int64_t> all) {
  return fixed ? std::vector<std::int64_t>{value} : std::move(all);
}

// Whether every stage is on GPUs of one kind when the ranks of a stage are on neighbouring GPUs; always true where nodes are equal.
bool one_kind_per_stage(const Cluster& cluster, std::int64_t stages) {
  const std::int64_t each = gpu_count(cluster) / stages;
  std::int64_t first = 0;
  for (std::size_t i = 0; i + 1 < cluster.nodes.size(); ++i) {
    first += static_cast<std::int64_t>(cluster.nodes[i].count) * cluster.nodes[i].shape.gpus;
    if (first % each != 0 && cluster.nodes[i].shape.gpu != cluster.nodes[i + 1].shape.gpu) return false;
  }
  return true;
}

// Not with a framework: they recompute whole layers, or the same modules in all layers. Not for the least memory: `best` fills the memory.
bool tries_best(const SearchOptions& options) {
  const Recompute& recompute = options.base.recompute;
  if (is_fixed(options, "recompute")) return recompute.kind == RecomputeKind::Each && recompute.each.empty();
  return options.best && options.base.framework == "foreshard" && options.objective != Objective::Memory;
}

// How the experts of a layer lie on the ranks of a stage: whole, or each cut over the ranks of a tensor group.
void add_expert_grids(const Model& model, const SearchOptions& options, Point grid, SearchSpace& space) {
  grid.ep = options.base.experts.ep, grid.etp = options.base.experts.etp;
  if (!space.experts || options.base.communication.asynchronous) return space.grids.push_back(grid);
  const Experts& experts = std::get<Transformer>(model.shape).block.experts;
  const std::int64_t ranks = std::int64_t{1} * grid.tp * grid.cp * grid.dp;
  std::vector<std::int64_t> cuts = {1};
  if (grid.tp > 1 && experts.width % grid.tp == 0 && experts.width / grid.tp >= kLeastExpertColumns && !experts.biases)
    cuts.push_back(grid.tp);
  for (const std::int64_t etp : only_or(is_fixed(options, "etp"), grid.etp, cuts))
    for (const std::int64_t ep : only_or(is_fixed(options, "ep"), grid.ep, divisors(experts.count))) {
      const std::int64_t together = etp * ep, inner = std::int64_t{1} * grid.tp * grid.cp;
      const bool nests = ranks % together == 0 && (together % inner == 0 || inner % together == 0);
      if (!nests) continue;
      Point point = grid;
      point.ep = static_cast<int>(ep), point.etp = static_cast<int>(etp);
      space.grids.push_back(point);
    }
}

// Degrees whose product is the number of GPUs, or, when GPUs cost, divides it.
void add_grids(const Model& model, const Cluster& cluster, const SearchOptions& options, SearchSpace& space) {
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  const Strategy& base = options.base;
  const bool whole = base.communication.asynchronous;  // replicas, beside the GPUs of the servers
  const std::int64_t gpus = gpu_count(cluster) - serving_gpus(base);
  if (gpus < 1) return;
  const RuntimePolicy* policy = find_policy(base.policy);
  const bool keeps = policy && policy->keeps();
  const bool fewer = options.objective == Objective::Cost || options.objective == Objective::Energy;
  const std::int64_t seq = base.batch.seq > 0 ? base.batch.seq : transformer ? transformer->max_positions : 1;
  for (const std::int64_t tp : only_or(is_fixed(options, "tp"), base.tp, divisors(gpus))) {
    if (!is_fixed(options, "tp") && tp > 1 &&
        (!transformer || whole || transformer->heads % tp != 0 || (options.max_tp > 0 && tp > options.max_tp)))
      continue;
    for (const std::int64_t cp : only_or(is_fixed(options, "cp"), base.cp, divisors(gpus / std::max<std::int64_t>(1, tp)))) {
      if (!is_fixed(options, "cp") && cp > 1 && (!transformer || whole || seq / cp < kLeastTokensPerContextRank)) continue;
      const std::int64_t rest = gpus / (tp * cp);
      if (rest * tp * cp != gpus) continue;
      for (const std::int64_t pp : only_or(is_fixed(options, "pp"), base.pp, divisors(rest))) {
        if ((keeps || whole) && pp > 1 && !is_fixed(options, "pp"))
          continue;  // a policy that keeps parameters is for one stage
        if (pp < 1 || rest % pp != 0 || !one_kind_per_stage(cluster, pp)) continue;
        if (!base.recompute.per_stage.empty() && static_cast<std::int64_t>(base.recompute.per_stage.size()) % pp != 0) continue;
        if (space.layers > 0 && (space.uneven ? pp > space.layers : space.layers % pp != 0)) continue;
        const std::vector<std::int64_t> all = fewer && !whole ? divisors(rest / pp) : std::vector<std::int64_t>{rest / pp};
        for (const std::int64_t dp : only_or(is_fixed(options, "dp") && base.dp > 0, base.dp, all)) {
          if (dp > rest / pp || space.batch % dp != 0) continue;
          add_expert_grids(
              model, options,
              {.tp = static_cast<int>(tp), .cp = static_cast<int>(cp), .pp = static_cast<int>(pp), .dp = static_cast<int>(dp)},
              space);
        }
      }
    }
  }
}

}  // namespace

bool is_fixed(const SearchOptions& options, const char* path) {
  return std::find(options.fixed.begin(), options.fixed.end(), path) != options.fixed.end();
}

SearchSpace search_space(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  const Strategy& base = options.base;
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  SearchSpace space{.batch = base.batch.global, .layers = transformer ? transformer->layers : 0};
  space.uneven = transformer && (base.pipeline.layer_split.empty() || base.pipeline.layer_split == "auto") &&
                 base.framework != "deepspeed";
  space.experts = transformer && transformer->block.experts.count > 0;
  add_grids(model, cluster, options, space);
  space.recomputes = {RecomputeKind::None, RecomputeKind::Selective, RecomputeKind::Full};
  const bool fill = transformer && base.recompute.layers < 0;  // auto: as few layers as make room
  if (is_fixed(options, "recompute") || !transformer) space.recomputes = {base.recompute.kind};
  if (is_fixed(options, "recompute") && fill) space.recomputes = {RecomputeKind::None, RecomputeKind::Full};
  space.best = transformer && tries_best(options);
  if (space.best && !is_fixed(options, "recompute")) space.recomputes.push_back(RecomputeKind::Each);
  space.zeros = {0, 1, 2, 3};
  if (is_fixed(options, "zero")) space.zeros = {static_cast<std::int8_t>(base.zero.stage)};
  if (const RuntimePolicy* policy = find_policy(base.policy)) space.zeros = {static_cast<std::int8_t>(policy->zero)};
  if (is_fixed(options, "zero_group") || is_fixed(options, "zero") || !transformer) space.zero_groups = {base.zero.group};
  space.sequence_parallels = {false, true};
  if (is_fixed(options, "sequence_parallel") || !transformer) space.sequence_parallels = {base.sequence_parallel};
  space.orders = transformer && base.placement.empty() && !is_fixed(options, "placement");
  space.some_layers = transformer && (fill || !is_fixed(options, "recompute"));
  space.recompute_layers = space.some_layers ? 0 : base.recompute.layers;
  const Overlap usual = overlap_of(framework_preset(base.framework), 1, true);
  for (const bool gradients : {true, false})
    for (const bool parameters : {false, true})
      for (const bool p2p : {true, false})
        space.overlaps.push_back({.gradients = gradients,
                                  .parameters = parameters,
                                  .p2p = p2p,
                                  .tp = base.communication.overlap.value_or(usual).tp});
  if (is_fixed(options, "overlap")) space.overlaps = {base.communication.overlap.value_or(Overlap{})};
  if (is_fixed(options, "micro_batch")) space.micro_batches = {base.batch.micro};
  if (is_fixed(options, "virtual_stages") || !transformer) space.virtual_stages = {base.virtual_stages};
  if (is_fixed(options, "schedule") && base.pipeline.schedule) space.schedules = {*base.pipeline.schedule};
  // Where GPUs differ the screen does not know what a cell hides.
  space.cells = space.experts && space.overlaps.size() > 1 && !gpus_differ(cluster) && !base.communication.asynchronous;
  space.only_cells = base.pipeline.delay_wgrad;
  if (base.communication.asynchronous)  // no sums, and all states on the server
    space.zeros = {0}, space.zero_groups = {0}, space.overlaps.resize(1), space.some_layers = false, space.recompute_layers = 0;
  space.microbatch_group = base.pipeline.microbatch_group;
  if (base.pipeline.schedule == Schedule::Listed && base.pipeline.order != std::vector<std::string>{kBestOrder})
    space.lists = parse_order(base.pipeline.order);
  return space;
}

std::vector<std::int64_t> micro_batches(const SearchSpace& space, const Point& grid) {
  const std::int64_t replica = space.batch / grid.dp;
  if (space.micro_batches.empty()) return divisors(replica);
  return replica % space.micro_batches.front() == 0 ? space.micro_batches : std::vector<std::int64_t>{};
}

std::vector<int> virtual_stages(const SearchSpace& space, const Point& grid) {
  if (!space.virtual_stages.empty()) {
    const int stages = grid.pp * space.virtual_stages.front();
    return space.layers > 0 && stages > space.layers ? std::vector<int>{} : space.virtual_stages;
  }
  if (space.layers % grid.pp != 0) return {1};
  std::vector<int> all;
  for (const std::int64_t v : divisors(space.layers / grid.pp))
    if (v == 1 || (grid.pp > 1 && v <= kMostVirtualStages)) all.push_back(static_cast<int>(v));
  return all;
}

std::vector<std::int8_t> rank_orders_for(const SearchSpace& space, const Point& grid, const Cluster& cluster) {
  std::vector<std::int8_t> all = {0};
  const int model = grid.tp * grid.cp, node = cluster.nodes.front().shape.gpus;
  if (!space.orders || space.experts) return all;
  const bool groups = model > 1, replicas = grid.dp > 1, pipeline = grid.pp > 1;
  if (cluster.nodes.size() > 1 && pipeline)
    return all;  // stages between the ranks of other stages would be on several kinds of GPU
  if (replicas && pipeline && model < node) all.push_back(1);
  if (groups && replicas && grid.dp < node) all.push_back(2);
  if (groups && pipeline && grid.pp < node) all.push_back(3);
  return all;
}

std::vector<int> recompute_layers(const SearchSpace& space, const Point& point) {
  std::vector<int> all = {space.recompute_layers};
  if (!space.some_layers || point.recompute != RecomputeKind::Full) return all;
  for (int layers = 1; layers < space.layers / (point.pp * point.virtual_stages); ++layers) all.push_back(layers);
  if (point.pp > 1) all.push_back(-1);  // on one rank that is one of the others
  return all;
}

std::vector<Overlap> overlaps_for(const SearchSpace& space, const Point& point) {
  if (space.overlaps.size() == 1) return space.overlaps;
  const bool replicas = point.dp * point.cp > 1, hides = space.cells && point.ep > 1 && schedule_entry(point.schedule).cells;
  std::vector<Overlap> all;
  for (const Overlap& overlap : space.overlaps)
    if ((overlap.gradients || replicas) && (!overlap.parameters || (replicas && point.zero > 0)) &&
        (overlap.p2p || point.pp > 1)) {
      all.push_back(overlap);
      all.back().tp |= hides;
    }
  return all;
}

std::vector<int> zero_groups_for(const SearchSpace& space, const Point& grid) {
  std::vector<int> all;
  for (const int group : space.zero_groups)
    if (group == 0 || grid.dp % group == 0) all.push_back(group);
  if (!space.zero_groups.empty()) return all;
  all = {0};
  if (space.experts) return all;  // groups below dp do not say which replicas of an expert they hold
  for (const std::int64_t group : divisors(grid.dp))
    if (group > 1 && group < grid.dp) all.push_back(static_cast<int>(group));
  return all;
}

std::vector<std::int8_t> zeros_for(const SearchSpace& space, const Point& point) {
  const ScheduleEntry& entry = schedule_entry(point.schedule);
  if (space.zeros.size() > 1 && entry.backwards_per_update) return {0};  // whole states
  if (space.zeros.size() > 1 && (entry.splits || entry.routes > 1))      // whole gradients only
    return point.dp * point.cp > 1 ? std::vector<std::int8_t>{0, 1} : std::vector<std::int8_t>{0};
  if (space.zeros.size() == 1 || point.dp * point.cp > 1) return space.zeros;
  return {0};
}

std::vector<Schedule> schedules_for(const SearchSpace& space, const Point& point) {
  std::vector<Schedule> all;
  const auto m = static_cast<int>(space.batch / (point.micro_batch * point.dp));
  const bool hides = point.ep > 1 && (space.cells || space.overlaps.front().tp);  // all-to-alls of experts, in cells
  for (const ScheduleEntry& entry : schedules()) {
    const bool cells = entry.cells && hides;
    if (!space.schedules.empty() && space.schedules.front() != entry.id) continue;
    if (space.only_cells && !entry.cells) continue;
    if (space.schedules.empty() && entry.on_request && !cells) continue;
    const ScheduleShape shape = {.p = point.pp, .m = m, .v = point.virtual_stages, .g = space.microbatch_group};
    if (entry.chunks == Chunks::Any) {  // a file, or the best order of one stage per rank
      if (space.lists.empty() ? shape.v == 1 : !wrong_size(space.lists, shape)) all.push_back(entry.id);
      continue;
    }
    const bool chunks = entry.chunks != Chunks::One;
    if (chunks != (point.virtual_stages > 1) || (chunks && point.pp == 1)) continue;
    if (point.pp == 1 && space.schedules.empty() && entry.id != Schedule::OneFOneB && !cells) continue;  // all the same
    if (!entry.refuse(shape)) all.push_back(entry.id);
  }
  return all;
}

}  // namespace foreshard
