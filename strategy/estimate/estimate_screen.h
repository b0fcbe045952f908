// screen: the time and memory of a strategy of a transformer in closed form (docs/search.md, "Screen"). What depends on shapes
// is measured once per shape on a small plan that `lower` makes: three stages, one and two layers each. What depends on the
// degrees is measured once per grid of ranks. A point of the space is then arithmetic only: no allocation, no lookup.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "strategy/estimate/estimate.h"
#include "strategy/estimate/estimate_loads.h"
#include "strategy/estimate/estimate_pipeline.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

// One of the points that a search looks at; everything else is in the search's base strategy.
struct Point {
  int tp = 1, cp = 1, pp = 1, virtual_stages = 1, dp = 1;
  std::int64_t micro_batch = 1;
  bool sequence_parallel = false, overlap_gradients = true, overlap_parameters = false, overlap_p2p = true;
  std::int8_t zero = 0;
  int zero_group = 0;     // ranks that share a ZeRO shard set; 0: all replicas
  std::int8_t order = 0;  // index into rank_orders(); 0: the placement of the base strategy
  RecomputeKind recompute = RecomputeKind::None;
  int recompute_layers = 0;  // Full: the first so many layers of each stage; 0: all; -1: on each rank the fewest that fit
  Schedule schedule = Schedule::OneFOneB;
  StateCuts cuts() const { return cuts_of_zero(zero); }
  bool operator==(const Point&) const = default;
};
// `layers`: of the model, for a layer split where the stages do not divide them; 0: the base's split.
Strategy strategy_at(const Strategy& base, const Point& point, int layers = 0);
// Layers of the first stage, one between, the last, the only one. Where they cannot be equal the ends have fewer (they have the
// embedding and the loss) and later stages more (they keep fewer micro-batches).
std::array<int, 4> layers_by_kind(int layers, int stages);
std::string nearly_even_split(int layers, int stages);  // the same as Strategy::layer_split

// Ways to lay ranks on the GPUs, fastest axis first (Strategy::placement); the first is the default.
const std::vector<RankOrder>& rank_orders();
bool gpus_differ(const Cluster& cluster);
// Neighbouring ranks of a tensor or context group are so many GPUs apart.
int stride_of(const Point& point);
// Where stages stand between two of a tensor group: how many of a kind as one in the probe of a shape.
int roles_between(const Point& point);

// A number that grows with the layers of a stage: of the first stage, one between, the last one, the only one.
struct PerStage {
  std::array<double, 4> one = {};  // with one layer
  double layer = 0;                // each further layer
  double of(int kind, double layers) const { return one[static_cast<std::size_t>(kind)] + layer * (layers - 1); }
};

struct ShapeCosts {                                          // of (tp, cp, stride, micro-batch, sequence parallel, recompute)
  PerStage forward = {}, backward = {}, communication = {};  // seconds of one micro-batch
  PerStage forward_communication = {};                       // of the forward alone
  double head = 0;                                           // seconds of a layer's backward before its first weight gradient
  double rest = 0;                                           // seconds of a layer's forward after its weights were last read
  PerStage weights = {};                                     // of backward: kernels of weight gradients
  PerStage parameters = {};                                  // elements on one rank
  PerStage activations = {};                                 // bytes of one micro-batch in flight
  PerStage scratch = {};                                     // bytes: everything else that is not model state
  double thinner_redo_less = 0;                              // seconds of backward, of stages that have a layer less
  double hop_bytes = 0;
  std::vector<ShapeCosts> by_gpu = {};  // where GPUs differ: of each, the first one's above
};

// The first `redone` of `layers` layers as `full` has them, the others as `none` has them; by kind of stage.
ShapeCosts partly_redone(const ShapeCosts& none, const ShapeCosts& full, double layers, const std::array<double, 4>& redone);

struct GridCosts {  // of (tp, cp, pp, dp, ZeRO group, order)
  static constexpr int kSizes = 18;
  static constexpr double kLeast = 4096, kStep = 4;
  using Ladder = std::array<double, kSizes>;  // seconds for kLeast * kStep^i bytes
  std::array<Ladder, 3> collective = {};      // all-reduce over the data ranks, reduce-scatter and all-gather over the shards
  Ladder replicas = {};                       // all-reduce of equal shards of different ZeRO groups
  Ladder tied = {};                           // all-reduce of first and last stage
  double hop = 0, hop_per_byte = 0;           // to the next stage
  double share = 0;                           // of the compute units that a large collective over the data ranks takes
  // Speeds of a tensor collective and one over the shards while both are under way: 1 where they meet on no link.
  double tensor_speed = 1, shards_speed = 1;
  double tensor_beside_replicas = 1, replicas_speed = 1;  // likewise of one over equal shards
  // How many times as long each takes when all stages that share a NIC talk at once.
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
  double replicas_time(double bytes) const;
  double tied_time(double bytes) const;
};

struct Screened {
  double time = 0, bound = 0;  // seconds; no schedule is faster than `bound`
  double peak = 0;             // bytes of the largest rank, framework included
  // As a GPU of the largest memory sees it: where GPUs differ, with what a rank's own has less.
  double needs = 0;
};

// Ranks that share what ZeRO cuts.
double shards_of(const Point& point);
// `time` seconds, of which `own` are tensor collectives, when collectives over the shards are always under way beside them: their
// kernels take compute units, and where both cross the same links each has less of them. How long that is, and for how many
// seconds' worth of them it has room. `over_groups`: the part of them that is over equal shards.
struct Dense {
  double time = 0, carried = 0;
  Dense(const GridCosts& grid, double time, double own, double over_groups = 0);
};
// What `talk` seconds of them make of it: what there is no room for comes behind.
double beside(const GridCosts& grid, double time, double own, double talk);

class Screen {
 public:
  static constexpr double kMemorySlack = 1.05;  // its memory is this far off at most; refining decides exactly
  // `base` gives what points leave open. The model must be a transformer.
  Screen(const Model& model, const Cluster& cluster, const Strategy& base, const MachineProfile* profile = nullptr);
  Screen(Screen&&) = default;
  Screen(const Screen&) = delete;

  // Empty: shapes that cannot be cut so.
  std::optional<ShapeCosts> shape(const Point& point) const;
  bool shares_nics() const { return cluster_.nodes.front().shape.nics < cluster_.nodes.front().shape.gpus; }
  GridCosts grid(const Point& point) const;
  // `point` must divide the batch evenly.
  Screened at(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const;
  // With the fewest layers redone on each rank that fit, of costs without and with full recomputation.
  Screened filled(const Point& point, const ShapeCosts& none, const ShapeCosts& full, const GridCosts& grid) const;

  // Nothing needs to be redone, whatever the screen gets wrong.
  bool fits_for_sure(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const;

  double capacity() const { return capacity_; }  // bytes that arena and framework may take; of the largest GPU
  int layers() const { return layers_; }

 private:
  using Layers = std::array<double, 4>;  // by kind
  Layers layers_of(const Point& point) const;
  PipelineTimes moving(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const Layers& layers) const;
  std::optional<ShapeCosts> measured_shape(const Point& point) const;  // of equal GPUs
  GridCosts measured_grid(const Point& point) const;
  std::vector<Axis> axes_of(const Point& point) const;
  RankOrder order_of(const Point& point) const;
  double link_time(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const Layers& layers) const;
  void shard(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const Layers& layers, PipelineTimes& times,
             double ahead = 0) const;
  double gathered_ahead(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const PipelineTimes& plain,
                        const PipelineTimes& times) const;
  struct Timed {
    double time = 0, bound = 0;
  };
  Timed timed(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const;
  // estimate_gpus.cpp: GPUs differ
  struct Part;   // ranks whose chunks take equal times
  struct Parts;  // of a pipeline
  void find_gpus();
  void find_gpus(const Point& point, GridCosts& grid) const;
  Screened mixed(const Point& point, const ShapeCosts& none, const ShapeCosts& full, const GridCosts& grid) const;
  Timed timed(const Point& point, const GridCosts& grid, Parts& parts) const;
  double finished(const Point& point, const GridCosts& grid, const Parts& parts) const;
  // estimate_tail.cpp
  struct ChunkTail;
  // Seconds on one rank, from the end of its last backward.
  struct Tail {
    double slowed = 0;  // by so much its last backwards took longer
    double all = 0;     // until all is done, when no embedding is tied
    double tied = 0;    // until the sum of the tied embedding could begin
    double after = 0;   // from the end of that sum until all is done
    // Sums and gathers of the end of the run, and what is left of the former after the last backward.
    double sums = 0, over_groups = 0, gathers = 0, behind = 0;
  };
  ChunkTail chunk_tail(const Point& point, const ShapeCosts& shape, const GridCosts& grid, int kind, double layers,
                       double backward) const;
  Tail tail(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const PipelineTimes& times, int kind) const;
  void wait_for_others(const Point& point, const GridCosts& grid, const PipelineTimes& times, const Tail& middle,
                       const Tail& last, Tail& first) const;
  double late_start(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const PipelineTimes& times) const;
  double finished(const Point& point, const ShapeCosts& shape, const GridCosts& grid, const PipelineTimes& times) const;
  double microbatches(const Point& point) const {  // of a replica
    return static_cast<double>(base_.global_batch) / static_cast<double>(point.micro_batch * point.dp);
  }
  double memory(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const;
  // Bytes of one rank: what does not depend on the micro-batches in flight, scratch apart, and how many of these there are, in
  // chunks.
  struct RankMemory {
    double fixed = 0, flight = 0;
  };
  RankMemory rank_memory(const Point& point, const ShapeCosts& shape, double microbatches, int kind, double rank,
                         double layers) const;
  int thinner(const Point& point) const;
  double framework(const Point& point) const;
  double tied_elements(int tp) const;  // of one rank's part of a tied embedding, with the rows that pad it

  const Model& model_;
  const Cluster& cluster_;
  Strategy base_;
  const MachineProfile* profile_ = nullptr;
  StateTypes types_ = {};
  int layers_ = 0;
  bool tied_ = false;
  std::int64_t vocab_multiple_ = 1;
  double capacity_ = 0, adam_per_element_ = 0, launch_ = 0;
  std::vector<Cluster> alike_ = {};  // where GPUs differ: as many of each sort
  std::vector<Screen> gpus_ = {};    // of these
};

}  // namespace foreshard
