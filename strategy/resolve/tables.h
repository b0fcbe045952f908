// The five tables between a strategy and its plan, and what stands beside them. `resolve` makes them; `lower` obeys them and asks for
// no technique by name, so a new one is a row (docs/decisions/five-tables.md). They name kinds of axes, not axes, so a row holds for every
// role whatever its degrees, and are printed by `foreshard show policies`.
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
enum class Tensors : std::uint8_t {
  All,
  Tied,     // the token embedding and its copy at the head, where they are summed apart from the rest
  Experts,  // of the routed experts: their replicas are those of the expert grid
  Whole,    // what every tensor-parallel rank holds all of: its gradients may be partial, and count once in the norm
  Vectors
};
inline constexpr const char* kTensorsWords[] = {"all", "tied embedding", "experts", "not cut over tensor",
                                                "of one dimension"};           // as in the enum
bool belongs(const Parameter& parameter, bool is_embedding, Tensors tensors);  // is_embedding: the first one of a tied pair
enum class Processor : std::uint8_t { Device, Host };
enum class Unit : std::uint8_t { Bucket, Layer, Tensor };  // what is summed, gathered and updated together; never of two rows

// How a sum goes whose numbers are sent as codes (core/op/codec.h).
struct Coding {
  ops::Encode encode = {};  // parts, kept numbers and ranks follow from the array and the group
  double kept = 0;          // Largest: share of the numbers
  bool of_moment = false;   // gradients: the first moment of Adam is sent
  // The ranks exchange codes of parts, add them and gather codes of the sums; else they gather the codes of all and add these.
  bool exchanged = true;
};

// One sum of gradients. Over what the optimizer states are cut by it is a reduce-scatter, and every sum behind it is of the shard.
struct GradientSum {
  enum class When : std::uint8_t { EachMicrobatch, LastMicrobatch, AtEnd };  // AtEnd: when all backwards are done
  std::string name = {};
  Kinds over = {};  // axes of data: and the replicas of the stage
  When when = When::LastMicrobatch;
  bool tied_stages = false;  // over the stages that hold the tied copies instead
  std::optional<Coding> coding = {};
};

struct StateRow {  // the first row that a tensor belongs to holds; the last one is for All
  Tensors tensors = Tensors::All;
  Unit unit = Unit::Bucket;
  Bytes bucket = {};  // of gradients; 0: no limit. It limits only what is summed over replicas
  struct Parameters {
    Kinds cut_by = {};               // empty: whole on every rank
    ParameterStays stays = {};       // cut or away: when the whole of a layer is on the device
    bool gathered_next_run = false;  // not cut, but the optimizer is: gathered beside the next forwards, not after the update
    DType dtype = DType::BF16;
    Space home = Space::Device;  // else copied into the same places, cut ones before they are gathered
  } parameters = {};
  struct Gradients {
    Kinds cut_by = {};
    std::vector<GradientSum> sums = {};  // in the order in which they run
    int slots = 1;                       // cut: places of whole gradients that wait for their sum; 0: one for each unit
    DType dtype = DType::BF16;
    Space home = Space::Device;  // else the backward writes them to such places, and they are copied out
    bool kept = true;            // else they live in such places until the update, which runs with the backward
    Kinds measured_alike = {};   // ranks that add the same squares to the norm, so each adds its share
  } gradients = {};
  struct Optimizer {
    Kinds cut_by = {};
    bool master = false, momentum = false, variance = false;
    DType dtype = DType::F32;
    Space home = Space::Device;     // where the states lie between steps
    double kept = 0;                // share of the elements whose states stay on the device, those of the last units
    std::int64_t frozen_after = 0;  // steps: then the variance stays, and the gradient is the next first moment; 0: never
    bool with_backward = false;     // of the last micro-batch: when the backward of the next layer is done
    bool beside_forward = false;    // on a stream of its own: each layer of the next forward waits for its units alone
    Processor updated_by = Processor::Device;  // what of the step's operands is not in its memory is copied there, and back
  } optimizer = {};

  bool is_away(Space space) const { return parameters.home == space || gradients.home == space || optimizer.home == space; }
  bool moves_states() const {
    return is_away(Space::PinnedHost) || is_away(Space::PageableHost) || is_away(Space::Nvme) ||
           optimizer.updated_by != Processor::Device;
  }
  // They are not read where they lie between steps, but from places that layers take in turn.
  bool brings_parameters() const { return !parameters.cut_by.empty() || parameters.home != Space::Device; }
  bool takes_gradients_away() const { return !gradients.cut_by.empty() || gradients.home != Space::Device || !gradients.kept; }
  // The next run's first forwards have to wait for them: they are gathered, or copied back, after the update, or updated meanwhile.
  bool parameters_arrive() const { return !optimizer.cut_by.empty() || moves_states() || optimizer.beside_forward; }
};
using StatePolicy = std::vector<StateRow>;

// What the stages of ZeRO cut (Rajbhandari et al. 2020); no other code compares the number of the stage.
struct StateCuts {
  bool parameters = false, gradients = false, optimizer = false;
};
constexpr StateCuts cuts_of_zero(int stage) {
  return {.parameters = stage >= 3, .gradients = stage >= 2, .optimizer = stage >= 1};
}

// ---- ActivationPolicy: what lives from the forward to the backward -----------------------------------------------------------------
struct LayerRange {
  int first = 0, last = 0;  // of the op graph, both included
};
struct ActivationRow {
  std::vector<LayerRange> layers = {};
  Redone redone = {};
  Space home = Space::Device;  // of what is kept for the backward
  bool inputs_only = false;    // ... of the layers' inputs; the rest of it on the device
};
struct ActivationPolicy {
  std::vector<ActivationRow> rows = {};       // layers of no row keep what their backward reads
  std::vector<ValueMove> moves = {};          // of what rows keep, in the order in which backwards read them
  std::vector<StageRuns> runs_of_stage = {};  // of a recomputation schedule, instead of rows
  bool shared_by_chunks = true;               // equal chunks of a rank keep their values in common places

  // One place that a micro-batch keeps until its backward may share its bytes with what lives at other times.
  bool shares_kept() const { return !runs_of_stage.empty() || !moves.empty(); }

  int row_of(int layer) const;  // -1: none
};

// ---- CommunicationPolicy: how, and on which stream -------------------------------------------------------------------------------
enum class Purpose : std::uint8_t {
  GradientSum,
  ParameterGather,
  Operator,  // between the operators of a layer: tensor and context parallelism
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
struct CommunicationRow {  // the first one that matches holds
  Purpose purpose = Purpose::Operator;
  int chunk = -1;  // of the rank; -1: any
  StreamId stream = {};
  std::optional<Algorithm> algorithm = Algorithm::Ring;  // of collectives; empty: chosen when the plan is made
  SumOrder order = SumOrder::Ready;                      // of sums of gradients
  Bytes partition = {}, credit = {};  // ... their parts, what may be under way at once; 0: whole units, one part
  bool overlaps = true;               // sends: computes go on before the other side has the data
  std::optional<Coding> coding = {};  // of sums of activations and their gradients
};
struct CommunicationPolicy {
  std::vector<Stream> streams = {};  // of every role; the first one computes
  std::vector<CommunicationRow> rows = {};
  // Of each operation of a layer, in the order of the forward: parts along the samples of a micro-batch, each with its own sum between
  // tensor-parallel ranks. An operation: the operators up to such a sum. Empty: whole.
  std::vector<int> parts = {};

  int sample_groups() const;  // the least common multiple of `parts`
  const CommunicationRow& row(Purpose purpose, int chunk = 0) const;
  void add_host_ways();   // streams to and from host memory, and of its processor: where a row moves something
  void add_drive_ways();  // streams to and from its drives: where a row keeps something there
};

// Which operation of its layer an operator belongs to: sums over ranks before it, in the order of the forward.
int operation_of(const LayerGraph& layer, std::size_t op);

// ---- beside them -------------------------------------------------------------------------------------------------------------------
// The optimizer's step.
struct Update {
  OptimizerKind optimizer = OptimizerKind::Adam;
  double momentum = 0;              // of SGD
  double clip_norm = 0;             // 0: no clipping
  bool scales_dynamically = false;  // the loss scale follows overflows
  bool waits_for_all_sums = false;  // as the optimizers of frameworks do; ours updates each unit as soon as its own are there

  bool clips() const { return clip_norm > 0; }
  bool measures() const { return clips() || scales_dynamically; }  // the global norm of all gradients
};

struct StrategyTables {
  Layout layout = {};
  ScheduleTable schedule = {};
  StatePolicy state = {};
  ActivationPolicy activations = {};
  CommunicationPolicy communication = {};
  Update update = {};
  Sharding sharding = {};  // what the model's local shapes follow from
};

// Of a resolved strategy; of what it leaves open the tables say nothing. Stages with degrees of their own have tables each, of the
// strategy that says their tensor degree, and no order (lower_stages.cpp).
std::variant<StrategyTables, Infeasible> tables_of(const Model& model, const Strategy& strategy, const OpGraph& graph,
                                                   const TunedRows& tuned = {});

// The rows that say which layers run again; `layers` are those of the stages.
ActivationPolicy activation_policy(const Strategy& strategy, const OpGraph& graph, const StageLayout& layers);
// What of a layer runs again: of the whole model where `recompute` names one way for all, in full for those that count among `full`.
Redone redone_by(const Recompute& recompute, bool in_full_range, bool stops = false);
Redone redone_by(const LayerRecompute& layer);

}  // namespace foreshard
