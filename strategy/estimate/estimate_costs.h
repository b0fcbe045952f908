// What the screen computes with: a point of the space, what was measured for its shape and for its grid of ranks (docs/search-estimates.md, "Screen").
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

// One of the points that a search looks at; everything else is in the search's base strategy.
struct Point {
  int tp = 1, cp = 1, pp = 1, virtual_stages = 1, dp = 1;
  int ep = 1, etp = 1;
  std::int64_t micro_batch = 1;
  bool sequence_parallel = false, overlap_gradients = true, overlap_parameters = false, overlap_p2p = true;
  std::int8_t zero = 0;
  int zero_group = 0;     // ranks that share a ZeRO shard set; 0: all replicas
  std::int8_t order = 0;  // index into rank_orders(); 0: the placement of the base strategy
  RecomputeKind recompute = RecomputeKind::None;
  int recompute_layers =
      0;  // Full: the number of layers at the begin of each stage; 0: all; -1: on each rank the fewest that fit
  Schedule schedule = Schedule::OneFOneB;
  StateCuts cuts() const { return cuts_of_zero(zero); }
  int expert_replicas() const { return tp * cp * dp / (ep * etp); }
  bool operator==(const Point&) const = default;
};
// `layers`: of the model, for a layer split where the stages do not divide them; 0: the base's split.
Strategy strategy_at(const Strategy& base, const Point& point, int layers = 0);
// By stage_kind, layers of the first stage, one between, the last, the only one. Where they cannot be equal the ends have fewer (they have the
// embedding and the loss) and later stages more (they keep fewer micro-batches).
std::array<int, 4> layers_by_kind(int layers, int stages);
std::string nearly_even_split(int layers, int stages);  // the same as Strategy::layer_split

// Ways to lay ranks on the GPUs, fastest axis first (Strategy::placement); the first is the default.
const std::vector<RankOrder>& rank_orders();
bool gpus_differ(const Cluster& cluster);
// Distance in GPUs between neighbouring ranks of a tensor or context group.
int stride_of(const Point& point);
// Where stages stand between two of a tensor group: how many of a kind as one in the probe of a shape.
int roles_between(const Point& point);

namespace stage_kind {
enum Kind { First, Middle, Last, Only };
}

// A number that grows with the layers of a stage: of the first stage, one between, the last one, the only one.
struct PerStage {
  std::array<double, 4> one = {};  // with one layer
  double layer = 0;                // each further layer
  double of(int kind, double layers) const { return one[static_cast<std::size_t>(kind)] + layer * (layers - 1); }
};

struct ShapeCosts {                                          // of (tp, cp, ep, etp, stride, micro-batch, sequence parallel, recompute)
  PerStage forward = {}, backward = {}, communication = {};  // seconds of one micro-batch
  PerStage forward_communication = {};                       // of the forward alone
  double head = 0;                                           // seconds of a layer's backward before its first weight gradient
  double rest = 0;                                           // seconds of a layer's forward after its weights were last read
  PerStage weights = {};                                     // of backward: kernels of weight gradients
  PerStage parameters = {};                                  // elements on one rank, without routed experts
  PerStage experts = {};                                     // elements of routed experts on one rank
  PerStage activations = {};                                 // bytes of one micro-batch in flight
  PerStage scratch = {};                                     // bytes: everything else that is not model state
  double thinner_redo_less = 0;                              // seconds of backward, of stages that have a layer less
  double hop_bytes = 0;
  std::vector<ShapeCosts> by_gpu = {};  // where GPUs differ: of each, the first one's above
};

// The first `redone` of `layers` layers as `full` has them, the others as `none` has them; by kind of stage.
ShapeCosts partly_redone(const ShapeCosts& none, const ShapeCosts& full, double layers, const std::array<double, 4>& redone);

struct GridCosts {  // of (tp, cp, pp, dp, ep, etp, ZeRO group, order)
  static constexpr int kSizes = 18;
  static constexpr double kLeast = 4096, kStep = 4;
  using Ladder = std::array<double, kSizes>;  // seconds for kLeast * kStep^i bytes
  std::array<Ladder, 3> collective = {};      // all-reduce over the data ranks, reduce-scatter and all-gather over the shards
  Ladder replicas = {};                       // all-reduce of equal shards of different ZeRO groups
  std::array<Ladder, 3> experts = {};         // as `collective`, over the replicas of an expert
  Ladder tied = {};                           // all-reduce of first and last stage
  double hop = 0, hop_per_byte = 0;           // to the next stage
  double share = 0;                           // of the compute units that a large collective over the data ranks takes
  // Speeds of a tensor collective and one over the shards while both are under way: 1 where they meet on no link.
  double tensor_speed = 1, shards_speed = 1;
  double tensor_beside_replicas = 1, replicas_speed = 1;  // likewise of one over equal shards
  // How many times as long each takes when all stages that share a NIC send at once.
  double tensor_crowd = 1, shards_crowd = 1, replicas_crowd = 1;
  double tensor_probed = 1;  // likewise of as many stages as count as one in the probe of a shape
  LinkLoads loads = {};      // where stages share a NIC
  double framework = 0;      // bytes outside the arena
  // Where GPUs differ: collectives of stages on each of them, which of these each rank's stages stand on, and whether a stage would
  // stand on several, which `lower` refuses.
  std::vector<GridCosts> by_gpu = {};
  std::vector<int> gpu = {};  // [rank]
  bool torn = false;
  double collective_time(CollectiveKind kind, double bytes) const;
  double experts_time(CollectiveKind kind, double bytes) const;
  double replicas_time(double bytes) const;
  double tied_time(double bytes) const;
};

struct Screened {
  double time = 0, bound = 0;  // seconds; no schedule is faster than `bound`
  double peak = 0;             // bytes of the largest rank, framework included
  // As a GPU of the largest memory sees it: where GPUs differ, with what a rank's own has less.
  double needs = 0;
};

// Ranks that share what ZeRO cuts: of dense parameters, of experts.
double shards_of(const Point& point);
double expert_shards_of(const Point& point);
// A compute phase of `time` seconds, of which `own` are tensor collectives, while collectives over the ZeRO shards run throughout:
// their kernels take compute units, and where both cross the same links they share them. `time`: its duration then; `carried`: the
// isolated seconds of shard collectives that fit in it. `over_groups`: the share of these that is between ZeRO groups.
struct SaturatedOverlap {
  double time = 0, carried = 0;
  SaturatedOverlap(const GridCosts& grid, double time, double own, double over_groups = 0);
};
// Its duration beside `communication` seconds of collectives; what cannot overlap is added behind.
double time_beside(const GridCosts& grid, double time, double own, double communication);

}  // namespace foreshard
