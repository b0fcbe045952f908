// The inputs of the screen: a point of the search space, and the costs of its shape and of its grid of ranks, "measured" on plans of probes
// (docs/search-estimates.md, "Screen").
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/strategy/strategy.h"
#include "strategy/estimate/estimate_loads.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

// A point of the search space; all other choices are those of the search's base strategy.
struct Point {
  int tp = 1, cp = 1, pp = 1, virtual_stages = 1, dp = 1;
  int ep = 1, etp = 1;
  std::int64_t micro_batch = 1;
  bool sequence_parallel = false, overlap_gradients = true, overlap_parameters = false, overlap_p2p = true;
  bool overlap_tensor = false;  // also where the base strategy does not overlap the communication of operators
  std::int8_t zero = 0;
  int zero_group = 0;     // ranks that share a ZeRO shard set; 0: all replicas
  std::int8_t order = 0;  // index into rank_orders(); 0: the placement of the base strategy
  RecomputeKind recompute = RecomputeKind::None;
  // Full: the number of layers at the begin of each stage; 0: all; -1: on each rank the fewest with which it fits.
  int recompute_layers = 0;
  Schedule schedule = Schedule::OneFOneB;
  StateCuts cuts() const { return cuts_of_zero(zero); }
  int expert_replicas() const { return tp * cp * dp / (ep * etp); }
  bool operator==(const Point&) const = default;
};
// The strategy of a point. `layers`: of the model, for a nearly even split where the stages do not divide them; 0: the base's split.
Strategy strategy_at(const Strategy& base, const Point& point, int layers = 0);
// [stage_kind]: layers of a stage of that kind. Where stages cannot be equal, the first and the last have fewer (they also have the
// embedding and the loss), and of the stages between, the later ones have one more (they have fewer micro-batches in flight).
std::array<int, 4> layers_by_kind(int layers, int stages);
std::string nearly_even_split(int layers, int stages);  // the same as text of --layer-split

// Orders in which ranks are placed on the GPUs, fastest axis first (Strategy::placement); the first is the default.
const std::vector<RankOrder>& rank_orders();
bool gpus_differ(const Cluster& cluster);
// Distance in GPUs between neighbouring ranks of a tensor or context group.
int stride_of(const Point& point);
// For the rank order in which the ranks of other stages lie between those of a tensor group: how many stages one stage of the probe
// (probed_shape) stands for. Other orders: 1.
int roles_between(const Point& point);

// Kinds of stages: the first of the pipeline, one between the ends, the last, and the only stage of a model without pipeline.
namespace stage_kind {
enum Kind { First, Middle, Last, Only };
}

// A quantity of a stage that is linear in its layers, for each kind of stage.
struct PerStage {
  std::array<double, 4> one = {};  // [stage_kind]: with one layer
  double layer = 0;                // added by each further layer
  double of(int kind, double layers) const { return one[static_cast<std::size_t>(kind)] + layer * (layers - 1); }
};

// Costs that depend on (tp, cp, ep, etp, stride, micro-batch, sequence parallel, recompute) only.
struct ShapeCosts {
  PerStage forward = {}, backward = {}, communication = {};  // seconds of one micro-batch, as in StageDurations
  PerStage forward_communication = {};                       // the part of `communication` in the forward
  // Seconds of a layer's backward before and after its weight gradients.
  double head = 0;
  double rest = 0;                             // seconds of a layer's forward after its weights were last read
  double rows_forward = 0, rows_backward = 0;  // the part of a layer's communication in all-to-alls of experts
  PerStage weights = {};                       // the part of `backward` in kernels of weight gradients
  PerStage parameters = {};                    // elements on one rank that are trained, without routed experts
  PerStage frozen = {};                        // elements on one rank that are only read
  PerStage experts = {};                       // elements of routed experts on one rank
  PerStage activations = {};                   // bytes of one micro-batch in flight
  PerStage scratch = {};                       // bytes of everything else but model state
  double workspace = 0;  // bytes of attention_workspace (strategy/cost/framework_memory.h), outside the arena
  // Seconds by which stages with one layer less recompute less than the other stages between the ends.
  double thinner_redo_less = 0;
  double hop_bytes = 0;  // bytes of one micro-batch from a stage to the next
  // Where GPUs differ: the costs on each kind of GPU; the members above are those of the first.
  std::vector<ShapeCosts> by_gpu = {};
};

// Costs of stages of `layers` layers of which the first redone[stage_kind] cost as in `full`, with full recomputation, and the others as
// in `none`, without.
ShapeCosts partly_redone(const ShapeCosts& none, const ShapeCosts& full, double layers, const std::array<double, 4>& redone);

struct GridCosts {  // costs that depend on (tp, cp, pp, dp, ep, etp, ZeRO group, order) only
  static constexpr int kSizes = 18;
  static constexpr double kLeast = 4096, kStep = 4;
  using Ladder = std::array<double, kSizes>;  // [i]: isolated seconds of a collective of kLeast * kStep^i bytes
  std::array<Ladder, 3> collective = {};      // all-reduce over the data ranks, reduce-scatter and all-gather over the shards
  Ladder replicas = {};                       // all-reduce over equal shards of different ZeRO groups
  std::array<Ladder, 3> experts = {};         // as `collective`, over the replicas of an expert
  Ladder tied = {};                           // all-reduce of the first and the last stage
  double hop = 0, hop_per_byte = 0;           // transfer to the next stage: seconds, and seconds per byte
  double share = 0;                           // share of the compute units that a large collective over the data ranks takes
  // Speeds of a tensor collective and a collective over the shards while both run, relative to their isolated speeds: 1 where they share
  // no link.
  double tensor_speed = 1, shards_speed = 1;
  double tensor_beside_replicas = 1, replicas_speed = 1;  // the same of a tensor collective and one over equal shards
  // NIC contention: factor on the isolated time of each when all stages that share a NIC send at once.
  double tensor_contention = 1, shards_contention = 1, replicas_contention = 1;
  // The same of tensor collectives for roles_between() stages, a factor that the measured ShapeCosts already contain.
  double tensor_probed = 1;
  LinkLoads loads = {};  // where stages share a NIC
  // Where a stage's width and the GPUs of a node have no common multiple soon, some groups cross more nodes than the first, which the shapes
  // are measured with: factor on the time of collectives over tensor ranks, and of the all-to-alls of experts.
  double tensor_across = 1, rows_across = 1;
  double framework = 0;  // bytes of framework memory
  // Where GPUs differ: the costs on each kind of GPU, the kind on which each pipeline rank is, and whether some stage would be on several
  // kinds, which `lower` refuses.
  std::vector<GridCosts> by_gpu = {};
  std::vector<int> gpu = {};  // [pipeline rank]
  bool mixes_gpus = false;
  // Isolated seconds, read from the ladders above; linear between sizes.
  double collective_time(CollectiveKind kind, double bytes) const;
  double experts_time(CollectiveKind kind, double bytes) const;
  double replicas_time(double bytes) const;
  double tied_time(double bytes) const;
};

struct Screened {
  double time = 0, bound = 0;  // seconds of an iteration, and a lower bound on it
  double balanced = 0;         // seconds less with a balanced split of the layers (TimedPoint)
  double peak = 0;             // bytes of the largest rank, framework memory included
  // The bytes to compare with the largest GPU's memory. Where GPUs differ, a rank on a smaller GPU counts the difference as used.
  double needs = 0;
};

void measure_crossings(const Cluster& cluster, const Point& point, GridCosts& grid);  // GridCosts::tensor_across, rows_across
// The costs of a shape on the stage whose groups cross most nodes, which sets the pace of the pipeline.
ShapeCosts across_nodes(const ShapeCosts& shape, const GridCosts& grid);

// Number of ranks over which ZeRO shards dense parameters, and experts; 1 without ZeRO.
double shards_of(const Point& point);
double expert_shards_of(const Point& point);
// A compute phase of `time` isolated seconds, of which `own` are tensor collectives, while collectives over the ZeRO shards run all the
// time. The kernels of these take compute units, and both kinds of collectives share the links that both cross. `over_groups`: the share of
// the collectives that is between ZeRO groups.
struct SaturatedOverlap {
  // The duration of the phase, and the isolated seconds of shard collectives that it overlaps.
  double time = 0, carried = 0;
  SaturatedOverlap(const GridCosts& grid, double time, double own, double over_groups = 0);
};
// Duration of such a phase with `communication` isolated seconds of shard collectives; those that the phase cannot overlap follow it.
double time_beside(const GridCosts& grid, double time, double own, double communication);

}  // namespace foreshard
