// Strategy: all choices of how to train a model on a cluster. A plain value; core/strategy/strategy_options.h has the table of its options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/units.h"
#include "core/op/adapters.h"
#include "core/op/dispatcher.h"
#include "core/op/expert_load.h"
#include "core/plan/plan.h"

namespace foreshard {

enum class Schedule : std::uint8_t {
  GPipe,
  OneFOneB,
  Interleaved,
  ZeroBubbleH1,
  ZeroBubbleH2,
  ZeroBubbleV,
  LoopedBfs,
  InterleavedZeroBubble,
  VHalf,
  VMin,
  Chimera,
  DualPipe,
  DualPipeV,
  OneFOneBCells,
  InterleavedCells,
  PipeDream,
  PipeDream2BW,
  PipeMare,
  ZeroBubble2p,
  Listed  // PipelineChoice::order
};
inline constexpr const char* kScheduleNames[] = {
    "gpipe",     "1f1b",          "interleaved-1f1b",  "zb-h1",      "zb-h2",
    "zb-v",      "looped-bfs",    "interleaved-zb-1p", "v-half",     "v-min",
    "chimera",   "dualpipe",      "dualpipe-v",        "1f1b-cells", "interleaved-cells",
    "pipedream", "pipedream-2bw", "pipemare",          "zb-2p",      "file"};  // as in the enum
// A codec compresses what is sent: sparsification or quantization (docs/compression.md).
enum class Codec : std::uint8_t { None, Segmented, Dgc, OneBit, EightBit, Float8 };
// Which members of a group are its parameter servers: the first ones; every (n/k)th of n members; or one after another over the nodes.
enum class ServerPlacement : std::uint8_t { First, Spread, Nodes };
enum class SumOrder : std::uint8_t {
  Ready,
  Priority
};  // order in which gradients are reduced: as they become ready, or first those that the next forward needs first
// Selective: the attention core (Korthikanti et al. 2022). Full: whole layers. Modules: named parts of layers. Each: a choice per layer.
// Rotor, Revolve, Graph: checkpointing schedules for chains of unequal and of equal layers, and for operator graphs (strategy/recompute).
enum class RecomputeKind : std::uint8_t { None, Selective, Full, Modules, Each, Rotor, Revolve, Graph };
enum class AttentionKernel : std::uint8_t { Auto, Flash, Unfused };
enum class OptimizerKind : std::uint8_t { Adam, Sgd };
enum class OffloadedActivations : std::uint8_t {
  None,
  Inputs,
  All,
  Vdnn,     // inputs of convolutions; each operator is as long as its copies (Rhu et al. 2016)
  FreeTime  // value by value: those with the longest time between their uses first, until the plan fits
};
enum class UpdatedOn : std::uint8_t { Auto, Device, Host };

// The words of files, options and output; the lists are in the order of the enums.
const char* name_of(Schedule schedule);          // gpipe, 1f1b, interleaved-1f1b
const char* name_of(RecomputeKind kind);         // none, selective, full, modules, each, rotor, ...
const char* name_of(AttentionKernel kernel);     // auto, flash, unfused
const char* name_of(OptimizerKind kind);         // adam, sgd
const char* name_of(ContextKind kind);           // all-gather, ring, all-to-all
const char* name_of(Algorithm algorithm);        // ring, tree, double-tree, ...
const char* name_of(Space home);                 // device, host, pageable, nvme
const char* name_of(UpdatedOn processor);        // auto, device, host
const char* name_of(OffloadedActivations what);  // none, inputs, all, vdnn, free-time
const std::vector<std::string>& schedule_names();
const std::vector<std::string>& recompute_modules();  // attention, norm, qkv, rope, projection, activation, mlp, dropout
const std::vector<std::string>& framework_names();    // names of frameworks/*.json
const std::vector<std::string>& policy_names();       // auto, none, and the runtime policies in these files

// Recomputation of one layer; `kind` is None, Selective, Full or Modules.
struct LayerRecompute {
  RecomputeKind kind = RecomputeKind::None;
  std::vector<std::string> modules = {};  // Modules: some of recompute_modules(), in that order
  bool operator==(const LayerRecompute&) const = default;
};

// What is recomputed in the backward. Layers are those of the transformer, or all entries of a layer list.
struct Recompute {
  RecomputeKind kind = RecomputeKind::None;
  int layers = 0;                         // Full: the first `layers` layers of each stage; 0: all; -1: as few as memory needs
  std::vector<int> per_stage = {};        // Full: instead of `layers`, [pipeline rank] (of each of its stages) or [stage]
  std::vector<int> only = {};             // Full: instead of `layers`, these layers of the model, from 0, ascending
  std::vector<std::string> modules = {};  // Modules: some of recompute_modules(), in that order
  std::vector<LayerRecompute> each = {};  // Each: one per layer of the model; empty: chosen so that memory is filled ("best")
  Bytes budget = {};                      // Rotor, Graph: the most bytes of activations on a device; 0: all that is free
  // Revolve: the most layer inputs kept at once on a stage, not counting the stage's input.
  int checkpoints = 0;
  bool operator==(const Recompute&) const = default;
};
// "none", "selective", "full", "full:2" (the first two layers of each stage), "full:8,6,4x2" (of stage 0, 1, and of the next
// two), "layers:0-7,12", "auto", "each:8xfull,4xattention+norm,none" (of every layer of the model), "best", "attention,norm", "rotor",
// "rotor:20GiB", "revolve:3", "graph:20GiB".
std::string to_text(const Recompute& recompute);
std::string to_text(const LayerRecompute& layer);                              // "full", "attention+norm"
Recompute parse_recompute(const std::string& text, const std::string& where);  // throws Error

struct Overlap {
  bool gradients = true;    // gradient buckets are reduced while the backward runs
  bool parameters = false;  // parameter all-gathers overlap the next forward (ZeRO 1-2), or are prefetched (ZeRO 3)
  bool p2p = true;          // pipeline transfers on their own streams
  bool tp = false;          // tensor-parallel collectives overlap independent computation
  bool operator==(const Overlap&) const = default;
};
struct OverlapPart {
  const char* name;
  bool Overlap::*field;
};
inline constexpr OverlapPart kOverlapParts[] = {
    {"grad", &Overlap::gradients}, {"param", &Overlap::parameters}, {"p2p", &Overlap::p2p}, {"tp", &Overlap::tp}};
// "none" or some of "grad,param,p2p,tp".
std::string to_text(const Overlap& overlap);
Overlap parse_overlap(const std::string& text, const std::string& where);  // throws Error

// The number of layers of every stage. "2,3x14,2": two on the first stage, three on each of the next fourteen, two on the last. Only the
// first and the last stage may have 0 layers, and then consist of the embedding or the head. Throws Error.
std::vector<int> parse_layer_split(const std::string& text, const std::string& where);

// One pipeline stage with degrees of its own: `dp` replicas, each a tensor-parallel group of `tp` ranks. Micro-batches go to the replicas
// in turn.
struct StageDegrees {
  int layers = 0, dp = 1, tp = 1;
  bool operator==(const StageDegrees&) const = default;
};
// "10:2x1,22:1x2": ten layers on two replicas of one rank, 22 on one replica of two. Throws Error.
std::string to_text(const std::vector<StageDegrees>& stages);
std::vector<StageDegrees> parse_stages(const std::string& text, const std::string& where);

// What a rank takes for one micro-batch, and a transfer to the next rank: relative to each other, in any unit.
struct ActionTimes {
  double forward = 1, input_grad = 1, weight_grad = 1, transfer = 0;
  bool operator==(const ActionTimes&) const = default;
};

struct PipelineChoice {
  std::string layer_split = {};           // "2,3x14,2": transformer layers (or list entries) per stage; empty: even
  std::optional<Schedule> schedule = {};  // empty: 1f1b, interleaved-1f1b when virtual_stages > 1
  int microbatch_group = 0;               // interleaved: micro-batches that a chunk takes before the next chunk runs; 0: pp
  std::vector<std::string> order = {};    // Listed: [pipeline rank]: its actions, "0F0 0F1 0B0 ..."
  std::optional<ActionTimes> times = {};  // zb-2p: those that its order is made for; empty: of a trial plan
  bool delay_wgrad = false;  // cells: weight gradients move after the next communication and overlap it (docs/schedules.md)
  bool operator==(const PipelineChoice&) const = default;
};

struct BatchSizes {
  std::int64_t micro = 1, global = 0;  // sequences; global 0: micro * dp
  std::int64_t seq = 0;                // tokens of a sequence; 0: the model's maximum
  // Each row of `seq` tokens holds sequences of this many tokens, one after another, which do not attend to each other; 0: one sequence.
  std::int64_t packed = 0;
  bool operator==(const BatchSizes&) const = default;
};

struct Zero {
  int stage = 0;  // 0..3
  int group = 0;  // ranks per sharding group; 0: all data-parallel ranks
  bool operator==(const Zero&) const = default;
};

struct StateDTypes {  // empty: decided by precision and framework (state_types)
  std::optional<DType> param = {}, grad = {}, state = {};
  bool operator==(const StateDTypes&) const = default;
};

struct OptimizerChoice {
  OptimizerKind kind = OptimizerKind::Adam;
  double momentum = 0;  // of SGD
  // Largest gradient norm; 0: no clipping; empty: the framework's default ("foreshard": no clipping).
  std::optional<double> clip_norm = {};
  // Multiplies the gradient of the loss; clipping and update divide by it; 0: dynamic, adapted to overflows.
  double loss_scale = 1;
  // Updates over which the learning rate of a stage grows from 1/delay of it to all of it, where a schedule without flushes delays its
  // gradients by more than one update; 0: all of it from the first one.
  int delay_annealing = 0;
  Adapters lora = {};  // if there are any, only they are trained
  bool operator==(const OptimizerChoice&) const = default;
};

// The codec for gradients, for activations that tensor-parallel ranks reduce, or for rows of experts, and its settings.
struct Compression {
  Codec codec = Codec::None;
  double tokens = 0;   // activations: only the rows of this share of the tokens are reduced, in any codec; 0: all rows
  double kept = 0.01;  // Dgc: share of the elements
  int bits = 8;        // Segmented: bits per element
  int segments = 0;    // Segmented: segments with equal numbers of levels; 0: a centre and two tails
  int warm_up = 0;     // updates without compression at the start of the training

  bool any() const { return codec != Codec::None || tokens > 0; }
  bool operator==(const Compression&) const = default;
};

// The shortest list with the meaning of `parts` (CommunicationChoice::parts): the last pair holds for all later layers, so repeats are cut.
std::vector<int> shortest_parts(std::vector<int> parts);

// What a tensor-parallel rank sends to the next stage of a value that all ranks of its group hold: all of it, or its part, which the
// receiving ranks gather ("scatter/gather optimization", Narayanan et al. 2021, section 4.1).
enum class Transfers : std::uint8_t { Whole, Split };
const char* name_of(Transfers transfers);  // whole, split

struct CommunicationChoice {
  Bytes bucket = {};                                     // gradient bucket; 0: framework default, max(40e6, 1e6 dp) elements
  std::optional<Overlap> overlap = {};                   // empty: the framework's default ("foreshard": Overlap{})
  std::optional<Algorithm> algorithm = Algorithm::Ring;  // empty: chosen by size and topology
  // ParameterServer: members that serve; 0: all. With `asynchronous`: serving_gpus().
  int servers = 0;
  ServerPlacement server_placement = ServerPlacement::First;
  std::optional<Transfers> transfers = {};  // empty: the framework's default ("foreshard": Whole)
  bool asynchronous = false;  // replicas do not wait for each other: parameter servers on GPUs of their own serve them in turn
  SumOrder order = SumOrder::Ready;
  Bytes partition = {};        // Priority: a reduction is cut into parts of this size; 0: whole buckets
  Bytes credit = {};           // Priority: the most bytes in flight at once; 0: one part
  Compression gradients = {};  // of gradients that are reduced over replicas
  // Replicas that first sum their gradients as they are; codes are sent between such groups. 0: the replicas of a node; 1: every replica
  // sends codes.
  int compress_group = 0;
  Compression activations = {};  // of activations that are reduced over tensor-parallel ranks
  Compression dispatch = {};     // of rows of tokens on their way to experts
  // Into how many parts, along the samples, attention and MLP are cut, so that the sum over tp of a part overlaps the next part: one number
  // for both, or one each, or a pair per layer, where the last pair holds for all later layers; {0}: tuned; empty: 1.
  std::vector<int> parts = {};
  bool operator==(const CommunicationChoice&) const = default;
};

struct DeviceMemory {
  std::optional<Bytes> framework = {};  // context, workspaces, NCCL, per GPU; empty: estimated from GPU and groups
  double reserve = 0.06;                // share of the device memory kept free
  bool exact_packing = false;           // packing by search instead of best fit
  bool operator==(const DeviceMemory&) const = default;
};

// The homes of states and activations: where they lie between two uses. Host memory is pinned.
struct OffloadChoice {
  Space optimizer = Space::Device;  // master copy and moments
  // Share of these states that stays on the device: those whose gradients are computed last.
  double optimizer_kept = 0;
  UpdatedOn updated_on = UpdatedOn::Auto;  // where the optimizer runs; auto: on the host if the states lie in its memory
  bool update_per_layer = false;           // updates a layer as soon as its gradients are summed, between the backwards
  Space parameters = Space::Device;        // of layers: copied in for each forward and backward
  Space gradients = Space::Device;         // of layers: copied out as soon as the backward of a layer has them
  // Saved activations that are offloaded until the backward: inputs of layers, or all.
  OffloadedActivations activations = OffloadedActivations::None;
  Space activation_home = Space::PinnedHost;
  int activation_layers = 0;  // of this number of first layers of each stage; 0: of all layers
  Bytes budget = {};          // FreeTime and policies of regions: what the arena may take of a device; 0: all that it has
  bool operator==(const OffloadChoice&) const = default;
};

// Choices for a mixture of experts (docs/experts.md).
struct ExpertChoice {
  int ep = 1, etp = 1;   // of the tp x cp x dp ranks: ranks that share the experts, and ranks that share each expert
  ExpertLoad load = {};  // assumed load of the most loaded rank
  // Capacity factor: an expert takes at most this times its balanced share of a rank's tokens; 0: no limit.
  double capacity = 0;
  bool unpadded =
      false;  // with a capacity: only the rows that an expert takes are sent; false: they are padded to the capacity
  Dispatcher dispatcher = Dispatcher::AllToAll;
  int node_ranks = 0;  // dispatchers by node: ranks of an expert group on one node; 0: as many as the cluster's nodes hold

  int nodes() const { return row_of(dispatcher).by_node && node_ranks > 0 ? ep / node_ranks : 1; }
  bool operator==(const ExpertChoice&) const = default;
};

struct Strategy {
  // degrees; dp 0: as many replicas as the GPUs allow
  int dp = 0, tp = 1, cp = 1, pp = 1, virtual_stages = 1;
  ExpertChoice experts = {};
  bool sequence_parallel = false;
  std::optional<ContextKind> context = {};  // empty: the framework's default ("foreshard": AllGather)
  PipelineChoice pipeline = {};
  std::vector<StageDegrees> stages = {};  // degrees of each stage; if not empty, dp, tp and pp are ignored
  BatchSizes batch = {};
  // memory
  std::string policy = "auto";  // runtime policy, one of policy_names(): residency of parameters, ZeRO stage, offload
  Zero zero = {};
  OffloadChoice offload = {};
  Recompute recompute = {};
  // numbers
  DType precision = DType::BF16;
  StateDTypes state_dtypes = {};
  AttentionKernel attention = AttentionKernel::Auto;
  std::optional<double> dropout = {};  // probability; empty: the framework's default ("foreshard": none)
  OptimizerChoice optimizer = {};
  std::int64_t vocab_multiple = 0;  // vocabulary padded to a multiple of this times tp; 0: as the framework does
  CommunicationChoice communication = {};
  // the rest
  std::string framework = "foreshard";  // preset: defaults, runtime policy, overheads
  RankOrder placement = {};             // kinds of axes and the role, fastest first; empty: default_rank_order()
  DeviceMemory device_memory = {};
  bool operator==(const Strategy&) const = default;
};

// The tensor-parallel degree; the largest if each stage has its own.
int widest_tp(const Strategy& strategy);

// GPUs that serve and do not train, beside the dp x tp x cp x pp that do. With an asynchronous server: --servers, by default one for each
// rank of a tensor-parallel group. Otherwise 0, because parameter servers of a synchronous sum are members of their group.
int serving_gpus(const Strategy& strategy);

// The number formats of parameters, gradients and optimizer states, with all defaults resolved.
struct StateTypes {
  DType compute = DType::BF16;  // activations, and factors of matrix products; with fp8, factors are rounded from this format
  DType param = DType::BF16;    // the copy that the forward reads
  DType grad = DType::BF16;     // the buffer in which gradients accumulate
  bool master = true;           // whether there is a separate copy of the parameters in format `state`
  DType state = DType::F32;     // master copy and moments
};
// Strategy::state_dtypes decide first, then the framework (megatron with bf16, and deepspeed: fp32 gradients; torchtitan: fp32 parameters
// and gradients, no master copy), then the precision. Mixed precision (bf16, fp16, fp8): 16-bit parameters and gradients, fp32 master copy
// and moments. fp32, tf32, fp64: everything in that format, no master copy.
StateTypes state_types(const Strategy& strategy);

// Strict JSON. to_json writes every field, defaults included; keys are the paths of core/strategy/strategy_options.h. A field that is
// missing in a file keeps its default. A file may write recompute and overlap as options do ("full:2", "grad,p2p"). Throw Error.
std::string to_json(const Strategy& strategy);
Strategy parse_strategy(const std::string& text, const std::string& file_name);
Strategy load_strategy(const std::string& path);

}  // namespace foreshard
