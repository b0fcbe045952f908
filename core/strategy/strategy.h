// Strategy: every choice of how a model is trained on a cluster. A plain value; its option table is
// core/strategy/strategy_options.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/units.h"
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
  PipeDream,
  PipeDream2BW,
  PipeMare,
  Listed  // PipelineChoice::order
};
inline constexpr const char* kScheduleNames[] = {"gpipe",    "1f1b",       "interleaved-1f1b",  "zb-h1",     "zb-h2",
                                                 "zb-v",     "looped-bfs", "interleaved-zb-1p", "v-half",    "v-min",
                                                 "chimera",  "dualpipe",   "dualpipe-v",        "pipedream", "pipedream-2bw",
                                                 "pipemare", "file"};  // as in the enum
// Communication that is made smaller (docs/compression.md).
enum class Codec : std::uint8_t { None, TokenTopK, Segmented, Dgc, OneBit, EightBit };
enum class SumOrder : std::uint8_t {
  Ready,
  Priority
};  // of gradients: as they are ready, or what the next forward needs first
enum class RecomputeKind : std::uint8_t { None, Selective, Full, Modules, Each, Rotor, Revolve, Graph };
enum class AttentionKernel : std::uint8_t { Auto, Flash, Unfused };
enum class OptimizerKind : std::uint8_t { Adam, Sgd };
enum class OffloadedActivations : std::uint8_t { None, Inputs, All };
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
const char* name_of(OffloadedActivations what);  // none, inputs, all
const std::vector<std::string>& schedule_names();
const std::vector<std::string>& recompute_modules();  // attention, norm, qkv, rope, activation, mlp, dropout
const std::vector<std::string>& framework_names();    // those of frameworks/*.json
const std::vector<std::string>& policy_names();       // auto, and the runtime policies of these files

// Of one layer: None, Selective, Full or Modules.
struct LayerRecompute {
  RecomputeKind kind = RecomputeKind::None;
  std::vector<std::string> modules = {};  // Modules: some of recompute_modules(), in that order
  bool operator==(const LayerRecompute&) const = default;
};

// Layers are those of the transformer, or all entries of a layer list.
struct Recompute {
  RecomputeKind kind = RecomputeKind::None;
  int layers = 0;                         // Full: the first `layers` layers of each stage; 0: all; -1: as few as make room
  std::vector<int> per_stage = {};        // Full: instead, of each stage, or of each stage of a pipeline rank; 0: none of it
  std::vector<int> only = {};             // Full: instead, these layers of the model, from 0, rising
  std::vector<std::string> modules = {};  // Modules: some of recompute_modules(), in that order
  std::vector<LayerRecompute> each = {};  // Each: of every layer of the model; empty: chosen so that memory is filled ("best")
  Bytes budget = {};                      // Rotor, Graph: what activations may take on a device; 0: what is free
  int checkpoints = 0;                    // Revolve: layer inputs kept at once on a stage, its own input apart
  bool operator==(const Recompute&) const = default;
};
// "none", "selective", "full", "full:2" (the first two layers of each stage), "full:8,6,4x2" (of stage 0, 1, and of the next
// two), "layers:0-7,12", "auto", "each:8xfull,4xattention+norm,none" (of every layer of the model), "best", "attention,norm", "rotor", "rotor:20GiB", "revolve:3", "graph:20GiB".
std::string to_text(const Recompute& recompute);
std::string to_text(const LayerRecompute& layer);                              // "full", "attention+norm"
Recompute parse_recompute(const std::string& text, const std::string& where);  // throws Error

struct Overlap {
  bool gradients = true;    // gradient buckets reduce while the backward runs
  bool parameters = false;  // parameter all-gather overlaps the next forward (ZeRO 1-2), prefetch (ZeRO 3)
  bool p2p = true;          // pipeline transfers on their own streams
  bool tp = false;          // tensor-parallel collectives beside independent compute
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

// "2,3x14,2": two layers on the first stage, three on each of the next fourteen, two on the last -> layers of every
// stage. Only the first and the last may have 0: embedding or head alone. Throws Error.
std::vector<int> parse_layer_split(const std::string& text, const std::string& where);

// One pipeline stage of a strategy that says its stages one by one: `dp` replicas, each a tensor group of `tp` ranks, take turns
// with the micro-batches.
struct StageDegrees {
  int layers = 0, dp = 1, tp = 1;
  bool operator==(const StageDegrees&) const = default;
};
// "10:2x1,22:1x2": ten layers on two replicas of one rank, 22 on one replica of two. Throws Error.
std::string to_text(const std::vector<StageDegrees>& stages);
std::vector<StageDegrees> parse_stages(const std::string& text, const std::string& where);

struct PipelineChoice {
  std::string layer_split = {};           // "2,3x14,2": transformer layers (or list entries) per stage; empty: even
  std::optional<Schedule> schedule = {};  // empty: 1f1b, interleaved-1f1b when virtual_stages > 1
  int microbatch_group = 0;               // interleaved: micro-batches per chunk before the next one; 0: pp
  std::vector<std::string> order = {};    // Listed: of each pipeline rank, "0F0 0F1 0B0 ..."
  bool operator==(const PipelineChoice&) const = default;
};

struct BatchSizes {
  std::int64_t micro = 1, global = 0;  // sequences; global 0: micro * dp
  std::int64_t seq = 0;                // tokens of a sequence; 0: the model's maximum
  bool operator==(const BatchSizes&) const = default;
};

struct Zero {
  int stage = 0;  // 0..3
  int group = 0;  // ranks per sharding group; 0: all data-parallel ranks
  bool operator==(const Zero&) const = default;
};

struct StateDTypes {  // empty: by precision and framework
  std::optional<DType> param = {}, grad = {}, state = {};
  bool operator==(const StateDTypes&) const = default;
};

struct OptimizerChoice {
  OptimizerKind kind = OptimizerKind::Adam;
  double momentum = 0;                   // SGD
  std::optional<double> clip_norm = {};  // 0: no clipping; empty: as the framework does, ours does not
  double loss_scale = 1;  // of the loss's gradient, until clipping and update divide; 0: dynamic, follows overflows
  bool operator==(const OptimizerChoice&) const = default;
};

// What a codec keeps of gradients, or of the activations that tensor-parallel ranks sum.
struct Compression {
  Codec codec = Codec::None;
  double kept = 0.01;  // Dgc: share of the elements; TokenTopK: of the tokens
  int bits = 8;        // Segmented: of a code
  int segments = 0;    // Segmented: with equally many levels; 0: a centre and two tails
  int warm_up = 0;     // updates before it begins
  bool operator==(const Compression&) const = default;
};

struct CommunicationChoice {
  Bytes bucket = {};                                     // gradient bucket; 0: framework default, max(40e6, 1e6 dp) elements
  std::optional<Overlap> overlap = {};                   // empty: as the framework does; ours: Overlap{}
  std::optional<Algorithm> algorithm = Algorithm::Ring;  // empty: chosen by size and topology
  int servers = 0;                                       // ParameterServer: members that serve; 0: all
  SumOrder order = SumOrder::Ready;
  Bytes partition = {};          // Priority: a sum is cut into parts of this size; 0: whole buckets
  Bytes credit = {};             // Priority: what may be under way at once; 0: one part
  Compression gradients = {};    // of their sums over replicas
  Compression activations = {};  // of the sums between tensor-parallel ranks
  std::vector<int> parts = {};   // along the samples, of each operator of a layer that ends in a sum; {0}: chosen; empty: 1
  bool operator==(const CommunicationChoice&) const = default;
};

struct DeviceMemory {
  std::optional<Bytes> framework = {};  // context, workspaces, NCCL per GPU; empty: by GPU and groups
  double reserve = 0.06;                // share of the device memory kept free
  bool exact_packing = false;           // offsets of blocks by search, not by best fit
  bool operator==(const DeviceMemory&) const = default;
};

// What lies in host memory, or on its drives, between two uses. Memory of the host is pinned.
struct OffloadChoice {
  Space optimizer = Space::Device;         // master copy and moments
  double optimizer_kept = 0;               // share of their elements that stays on the device: those whose gradients come last
  UpdatedOn updated_on = UpdatedOn::Auto;  // auto: on the host where its memory has the states
  bool update_per_layer = false;           // as soon as the gradients of a layer are summed, between the backwards
  Space parameters = Space::Device;        // of layers: copied in for each forward and backward
  Space gradients = Space::Device;         // of layers: copied out as soon as the backward of a layer has them
  OffloadedActivations activations = OffloadedActivations::None;  // that wait for the backward: layers' inputs, or all
  Space activation_home = Space::PinnedHost;
  int activation_layers = 0;  // of the first layers of each stage; 0: of all
  bool operator==(const OffloadChoice&) const = default;
};

// Of a mixture of experts (docs/experts.md).
struct ExpertChoice {
  int ep = 1, etp = 1;   // ranks of tp x cp x dp that share its experts, and ranks that share each expert
  ExpertLoad load = {};  // of the most loaded rank
  double capacity = 0;   // an expert takes so many times its balanced share of a rank's tokens; 0: all that choose it
  bool operator==(const ExpertChoice&) const = default;
};

struct Strategy {
  // degrees; dp = 0: the rest of the GPUs
  int dp = 0, tp = 1, cp = 1, pp = 1, virtual_stages = 1;
  ExpertChoice experts = {};
  bool sequence_parallel = false;
  std::optional<ContextKind> context = {};  // empty: as the framework does; our own executor gathers
  PipelineChoice pipeline = {};
  std::vector<StageDegrees> stages = {};  // each stage with degrees of its own; dp, tp and pp then say nothing
  BatchSizes batch = {};
  // memory
  std::string policy = "auto";  // one of policy_names(): when parameters are on the device, ZeRO stage, what is offloaded
  Zero zero = {};
  OffloadChoice offload = {};
  Recompute recompute = {};
  // numbers
  DType precision = DType::BF16;
  StateDTypes state_dtypes = {};
  AttentionKernel attention = AttentionKernel::Auto;
  std::optional<double> dropout = {};  // empty: as the framework does; our own executor drops nothing
  OptimizerChoice optimizer = {};
  std::int64_t vocab_multiple = 0;  // vocabulary padded to a multiple of this times tp; 0: as the framework does
  CommunicationChoice communication = {};
  // the rest
  std::string framework = "foreshard";  // preset: defaults, runtime policy, overheads
  RankOrder placement = {};             // kinds of axes and the role, fastest first; empty: default_rank_order()
  DeviceMemory device_memory = {};
  bool operator==(const Strategy&) const = default;
};

// The largest tensor-parallel degree: of all stages where each has its own.
int widest_tp(const Strategy& strategy);

// Resolved model-state dtypes.
struct StateTypes {
  DType compute = DType::BF16;  // activations and factors of products; fp8 rounds factors from here
  DType param = DType::BF16;    // the copy that the forward reads
  DType grad = DType::BF16;     // the buffer that gradients accumulate in
  bool master = true;           // a separate fp32 (or `state`) copy of the parameters
  DType state = DType::F32;     // master copy and moments
};
// Mixed precision (bf16, fp16, fp8): 16-bit parameters and gradients, fp32 master copy and moments. fp32, tf32, fp64: one
// copy in that format. Frameworks differ (megatron with bf16, deepspeed: fp32 gradients; torchtitan: fp32 parameters
// and gradients, no master copy); state_dtypes go before everything.
StateTypes state_types(const Strategy& strategy);

// Strict JSON of every field, defaults included; its keys are the paths of core/strategy/strategy_options.h. Missing fields of a
// file keep their defaults; recompute and overlap may also be written as in options ("full:2", "grad,p2p"). Throw
// Error.
std::string to_json(const Strategy& strategy);
Strategy parse_strategy(const std::string& text, const std::string& file_name);
Strategy load_strategy(const std::string& path);

}  // namespace foreshard
