// The five tables between a strategy and its plan: layout, schedule, state policy, activation policy, communication policy; and the
// optimizer step and shapes that go with them. `resolve` makes them, and `lower` compiles a plan from them without asking which technique
// they stand for, so a new technique is a new row (docs/decisions/five-tables.md). Rows name kinds of axes instead of axes, so they hold
// for every role, whatever its degrees. `foreshard show policies` prints them.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/graph/op_graph.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "strategy/recompute/keep_rule.h"
#include "strategy/recompute/recompute_runs.h"
#include "strategy/residency/parameter_stays.h"
#include "strategy/resolve/layout.h"
#include "strategy/resolve/schedule_table.h"
#include "strategy/resolve/value_move.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

// ---- StatePolicy: parameters, gradients and optimizer states ---------------------------------------------------------------------
// Which parameters a row is for.
enum class Tensors : std::uint8_t {
  All,
  Frozen,   // only read; they belong to no other row
  Tied,     // the token embedding and its copy at the head (tied weights), where their gradients are summed apart from the rest
  Experts,  // parameters of routed experts: their replicas are those of the expert grid
  Whole,    // not split over tensor-parallel ranks: gradients may be partial sums, and count once in the gradient norm
  Vectors   // of one dimension
};
inline constexpr const char* kTensorsWords[] = {
    "all", "frozen", "tied embedding", "experts", "not cut over tensor", "of one dimension"};  // as in the enum
bool belongs(const Parameter& parameter, bool is_embedding, Tensors tensors);  // is_embedding: the first one of a tied pair
enum class Processor : std::uint8_t { Device, Host };                          // GPU or CPU
enum class Unit : std::uint8_t {
  Bucket,
  Layer,
  Tensor
};  // parameters that are summed, gathered and updated together, all of one row

// A sum over ranks that is sent compressed (core/op/codec.h).
struct Coding {
  ops::Encode encode = {};  // its `parts`, `kept` and number of ranks are set later, from the array and the group
  double kept = 0;          // Code::Largest: share of the elements
  bool of_moment = false;   // for gradients: Adam's first moment is sent instead of the gradient
  // true: an all-to-all of encoded parts, each rank adds its part, and an all-gather of the encoded sums.
  // false: an all-gather of every rank's codes, and each rank adds them all.
  bool exchanged = true;
};

// One sum of gradients over ranks: a reduce-scatter if it is over the axes that the optimizer states are sharded over (every later sum then
// adds shards), else an all-reduce.
struct GradientSum {
  enum class When : std::uint8_t { EachMicrobatch, LastMicrobatch, AtEnd };  // AtEnd: after all backwards
  std::string name = {};
  Kinds over = {};  // with OuterData among them also over the other roles that hold the same stage
  When when = When::LastMicrobatch;
  bool tied_stages = false;  // instead of `over`: over the group of the stages that hold the copies of a tied embedding
  std::optional<Coding> coding = {};  // empty: not compressed
  // With a coding: ranks along these of its axes add their gradients as they are, each a part, and gather the sum. Only between them codes
  // are sent. Empty: all send codes.
  Kinds first = {};
  Kinds codes_over() const;  // the other axes
};

// How the states of some parameters are sharded, summed, stored and updated. A parameter follows the first row that it belongs to; the last
// row is for All.
struct StateRow {
  Tensors tensors = Tensors::All;
  Unit unit = Unit::Bucket;
  bool trained = true;  // false: parameters are only read; there are no gradients and states, whatever the members below say
  // Largest size of a gradient bucket; 0: no limit. Gradients that are not summed over replicas are limited only if servers share them.
  Bytes bucket = {};
  bool served = false;  // several asynchronous servers share the units
  struct Parameters {
    Kinds cut_by = {};          // axes that they are sharded over (ZeRO 3); empty: every rank holds all
    ParameterStays stays = {};  // sharded or with another home: when a whole unit is on the device
    // If only the optimizer is sharded: whether they are gathered during the next forwards, not right after the update.
    bool gathered_next_run = false;
    DType dtype = DType::BF16;
    Space home = Space::Device;  // elsewhere: copied to the device before a unit is used, shards before they are gathered
  } parameters = {};
  struct Gradients {
    Kinds cut_by = {};                   // axes that they are sharded over (ZeRO 2)
    std::vector<GradientSum> sums = {};  // in the order in which they run
    int slots = 1;  // blocks that units take in turn for their whole gradients until these are summed; 0: one per unit
    DType dtype = DType::BF16;
    // If their home is elsewhere, the backward writes them into these slots, and a copy takes them to their home.
    Space home = Space::Device;
    bool kept = true;  // false: gradients lie only in these slots, since the update runs during the backward
    // Axes whose ranks hold equal gradients: each adds its share of the squares to the gradient norm.
    Kinds measured_alike = {};
  } gradients = {};
  struct Optimizer {
    Kinds cut_by = {};                                        // axes that the states are sharded over (ZeRO 1)
    bool master = false, momentum = false, variance = false;  // which states there are
    DType dtype = DType::F32;
    Space home = Space::Device;  // where the states lie between steps
    double kept = 0;  // with another home: share of the elements whose states stay on the device, those of the last units
    // 1-bit Adam: after this number of steps the variance is frozen, and the summed gradient is the next first moment; 0: never.
    std::int64_t frozen_after = 0;
    // Units are updated during the last micro-batch's backward, after the backward of the next layer.
    bool with_backward = false;
    // Updates run on their own stream, and each layer of the next forward waits only for its units.
    bool beside_forward = false;
    Processor updated_by = Processor::Device;  // operands of the update that lie elsewhere are copied to its memory and back
  } optimizer = {};

  bool is_away(Space space) const {
    return parameters.home == space || (trained && (gradients.home == space || optimizer.home == space));
  }
  bool moves_states() const {
    return is_away(Space::PinnedHost) || is_away(Space::PageableHost) || is_away(Space::Nvme) ||
           (trained && optimizer.updated_by != Processor::Device);
  }
  // Whether layers read parameters from slots that units take in turn, not from where the parameters lie between steps.
  bool brings_parameters() const { return !parameters.cut_by.empty() || parameters.home != Space::Device; }
  // Whether backwards write gradients to slots that units take in turn, not to where the gradients lie until the update.
  bool writes_gradients_to_slots() const {
    return trained && (!gradients.cut_by.empty() || gradients.home != Space::Device || !gradients.kept);
  }
  // Whether forwards of the next run have to wait for parameters, which are gathered or copied after the update, or still being updated.
  bool parameters_arrive() const {
    return trained && (!optimizer.cut_by.empty() || moves_states() || optimizer.beside_forward);
  }
};
using StatePolicy = std::vector<StateRow>;

// Which states a stage of ZeRO shards (Rajbhandari et al. 2020). The only place where the number of the stage is compared.
struct StateCuts {
  bool parameters = false, gradients = false, optimizer = false;
};
constexpr StateCuts cuts_of_zero(int stage) {
  return {.parameters = stage >= 3, .gradients = stage >= 2, .optimizer = stage >= 1};
}

// ---- ActivationPolicy: activations that live from the forward to the backward ------------------------------------------------------
struct LayerRange {
  int first = 0, last = 0;  // layers of the op graph, both included
};
struct ActivationRow {
  std::vector<LayerRange> layers = {};
  Redone redone = {};          // what the backward recomputes
  Space home = Space::Device;  // where activations lie between forward and backward
  bool inputs_only = false;    // only the layers' inputs lie in `home`, other activations on the device
};
struct ActivationPolicy {
  std::vector<ActivationRow> rows = {};  // layers in no row keep all that their backward reads, on the device
  std::vector<ValueMove> moves = {};     // single values that are offloaded, in the order in which backwards read them
  // [stage]: the order of operators of a recomputation schedule; then there are no rows.
  std::vector<StageRuns> runs_of_stage = {};
  bool shared_by_chunks = true;  // chunks of a rank with equal layers use the same buffers for their activations

  // Whether the buffer of an activation that is kept until the backward may share its bytes with blocks that live at other times.
  bool shares_kept() const { return !runs_of_stage.empty() || !moves.empty(); }

  int row_of(int layer) const;  // index of the row for a layer of the op graph; -1: none
};

// ---- CommunicationPolicy: stream and algorithm of each communication and copy ----------------------------------------------------
enum class Purpose : std::uint8_t {
  GradientSum,
  ParameterGather,
  Operator,  // between the operators of a layer: tensor and context parallelism
  Experts,   // between ranks that share experts: rows of tokens on their way there and back
  NormSum,
  SendForward,
  ReceiveForward,
  SendBackward,
  ReceiveBackward,
  CopyToHost,  // of states, activations
  CopyFromHost,
  HostUpdate,
  WriteDrive,
  ReadDrive,
  UpdateBesideForward
};
struct CommunicationRow {  // a communication follows the first row with its purpose and chunk
  Purpose purpose = Purpose::Operator;
  int chunk = -1;  // of the rank; -1: any
  StreamId stream = {};
  std::optional<Algorithm> algorithm = Algorithm::Ring;  // of collectives; empty: chosen when the plan is made
  SumOrder order = SumOrder::Ready;                      // of gradient sums
  // Of gradient sums in SumOrder::Priority: size of the parts that a unit is summed in (0: whole units), and the most bytes in flight at
  // once (0: one part).
  Bytes partition = {}, credit = {};
  bool overlaps = true;  // of sends: the compute stream does not wait until the data has arrived
  // Of transfers between stages: ranks that hold the same value. Each sends its part, and the receiving ranks gather the parts; empty: each
  // sends the whole.
  Kinds cut_by = {};
  std::optional<Coding> coding = {};  // of sums of activations and of their gradients; empty: not compressed
  std::optional<Coding> dispatch =
      {};  // of rows of tokens on their way to experts, and of gradients of results; empty: not compressed
};
// Parts along the samples of a micro-batch, each with its own sum between tensor-parallel ranks. An operation: the operators up to such a
// sum.
struct PartsRow {
  LayerRange layers = {};
  std::vector<int> counts =
      {};  // of each operation of a layer, in the order of the forward; the last one is of all that follow
};
struct CommunicationPolicy {
  std::vector<Stream> streams = {};  // the same for every role; the first is the compute stream
  std::vector<CommunicationRow> rows = {};
  std::vector<PartsRow> parts = {};  // operations of layers without a row run whole

  int parts_of(int layer, int operation) const;  // into how many parts the operation of this layer of the op graph is cut
  int sample_groups() const;  // the least common multiple of all counts: into how many equal groups samples must be divisible
  const CommunicationRow& row(Purpose purpose, int chunk = 0) const;  // asserts that there is one
  void add_host_ways();   // adds streams and rows for copies to and from host memory, and for computes on the host
  void add_drive_ways();  // adds streams and rows for writes to and reads from NVMe drives
};

// Index of the operation of the layer that the operator belongs to: the number of such sums before it, in the order of the forward.
int operation_of(const LayerGraph& layer, std::size_t op);

// ---- besides the tables ------------------------------------------------------------------------------------------------------------
// The optimizer step.
struct Update {
  OptimizerKind optimizer = OptimizerKind::Adam;
  double momentum = 0;              // of SGD
  double clip_norm = 0;             // largest norm of all gradients together; 0: no clipping
  bool scales_dynamically = false;  // the loss scale changes when gradients overflow
  // Updates over which the learning rate of a stage grows from 1/delay of the rate to the rate (PipeMare); 0: the rate from the first one.
  std::int64_t delay_annealing = 0;
  bool waits_for_all_sums = false;  // updates begin when all gradients are summed (as in frameworks), not unit by unit

  bool clips() const { return clip_norm > 0; }
  bool measures() const { return clips() || scales_dynamically; }  // whether the norm of all gradients is computed
};

struct StrategyTables {
  Layout layout = {};
  ScheduleTable schedule = {};
  StatePolicy state = {};
  ActivationPolicy activations = {};
  CommunicationPolicy communication = {};
  Update update = {};
  Sharding sharding = {};  // degrees, batch and number formats that the shapes of the op graph follow from
};

// The tables of a resolved strategy. `runs` [stage]: the order of operators of a recomputation schedule; empty without one. If the stages
// have degrees of their own, lower_stages calls this once for each stage, with a strategy that has the stage's tensor degree; the tables
// then have no axes and no order. Infeasible: the layers cannot be split into these stages, recomputation names layers that are not there,
// or the degrees of the expert grid do not fit those of the dense grid.
std::variant<StrategyTables, Infeasible> tables_of(const Model& model, const Strategy& strategy, const OpGraph& graph,
                                                   const TunedRows& tuned = {});

// The rows for a strategy without a recomputation schedule. `layers`: of each stage.
ActivationPolicy activation_policy(const Strategy& strategy, const OpGraph& graph, const StageLayout& layers);
// What `recompute` recomputes of one layer. `in_full_range`: the layer is among those that full recomputation covers; `stops`: with early
// stop (Redone::stops).
Redone recomputed_by(const Recompute& recompute, bool in_full_range, bool stops = false);
Redone recomputed_by(const LayerRecompute& layer);  // for a choice of one layer

}  // namespace foreshard
