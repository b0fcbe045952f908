// Framework presets: the defaults of a training framework, and the costs of the way in which it runs operators and communication.
// Data files frameworks/*.json, one per framework; docs/cost-model.md explains each field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/units.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/memory_traits.h"
#include "strategy/kernels/op_cost.h"

namespace foreshard {

// Bytes that the kernels of one operator move in one direction, over those of one fused kernel.
struct KernelTraffic {
  double all = 1;
  double copies = 0;        // of them, at full bandwidth: casts, fills, copies, operators on contiguous operands
  double joined = 0;        // of them, concatenations in 16 bits (OpStyles::joins)
  double unvectorized = 0;  // of them, by PyTorch's kernels that load one element at a time (unvectorized_slowdown)
  double result_bytes = 4;  // of `unvectorized`, for each result
  bool operator==(const KernelTraffic&) const = default;
};

// How a framework runs one operator of the graph, relative to one fused kernel: the number of kernels and their traffic.
struct OpStyle {
  double kernels = 1;
  KernelTraffic forward = {};
  std::optional<KernelTraffic> backward = {};  // empty: as the forward
  double backward_kernels = 0;                 // 0: as in the forward
  double elementwise = 0;  // bandwidth of these kernels where it differs from FrameworkPreset::elementwise; 0: it does not
  bool operator==(const OpStyle&) const = default;
};

// A fused softmax that works only when the number of maps (one per sample and head of a rank) is divisible by `multiple`. Otherwise the
// softmax runs as plain operators, in the style `otherwise`.
struct SoftmaxMaps {
  std::int64_t multiple = 1;
  OpStyle otherwise = {};
  bool operator==(const SoftmaxMaps&) const = default;
};

// How the shards of ZeRO are communicated: one collective per unit; one per tensor; each tensor whole with one rank as its owner, which
// receives the sum of its gradients and broadcasts the updated tensor; or (nanotron) whole sums of gradients, and gathers for which the
// host cuts each rank's slice of each tensor; or (Aleph Alpha) whole sums of gradients in fp32, copied into flat buffers and back.
enum class ShardCommunication : std::uint8_t { Unit, Tensor, Owner, Slices, WideSums };

// Whose rules say what a framework can run (strategy/search/search_framework.h).
enum class Runner : std::uint8_t { Megatron, DeepSpeed, TorchTitan, Fsdp2, Nanotron };

// How the framework counts the FLOPs of its MFU (not of TFLOP/s). Palm: 6 N + 12 L s h per token, with N parameters including
// embeddings (a tied table once for each end of a pipeline), L layers, sequence length s and hidden size h.
enum class FlopCount : std::uint8_t { Model, Palm };

// How transformer layers are distributed over pipeline stages whose number does not divide theirs: not at all, one more for each of the
// last stages, one more for each stage from the second one on, or by the cost of layers and head, also where they divide. Ends: embedding
// and head count as a layer each, and the first stages have one more.
enum class StageSplit : std::uint8_t { Even, RemainderLast, RemainderSecond, Cost, Ends };

// The values of options that a run's command line does not set.
struct RunDefaults {
  std::optional<DType> param_dtype = {}, grad_dtype = {}, state_dtype = {};  // with arithmetic in 16 or 8 bits
  std::optional<Overlap> overlap = {};
  std::optional<Overlap> overlap_whole = {};  // without ZeRO, where it differs
  AttentionKernel attention = AttentionKernel::Auto;
  ContextKind context = ContextKind::AllGather;
  Transfers transfers = Transfers::Whole;  // between pipeline stages
  double dropout = 0;                      // of models with learned positions (GPT, BERT); others have none
  double clip_norm = 0;                    // largest norm of the gradients; 0: no clipping
  int zero = 0;                            // ZeRO stage
  StageSplit split = StageSplit::Even;
  int chunk_layers = 0;             // layers of a chunk of the interleaved schedule; 0: not interleaved
  std::int64_t vocab_multiple = 1;  // the vocabulary is padded to a multiple of it
  std::int64_t vocabulary = 0;      // vocabulary size of the framework's usual tokenizer
  bool operator==(const RunDefaults&) const = default;
};

// How the parameters, gradients and states that ZeRO shards are communicated.
struct ShardRules {
  ShardCommunication communication = ShardCommunication::Unit;
  std::int64_t bucket = 0;  // elements of a message of gradients that are not cut; 0: one per unit
  std::int64_t least = 0;   // elements: smaller tensors are not sharded, so they need no collective of their own
  // Elements: in the backward a larger unit is gathered twice, for its recomputation and for its gradients; 0: every unit once.
  std::int64_t reuse_distance = 0;
  bool gathers_narrow = false;  // fp32 parameters are cast to 16 bits before they are gathered
  bool clips_whole = false;     // every rank measures and scales the gradients of all ranks, not those that it updates
  bool copies = false;          // gathered parameters are copied out, and gradients into the collective, among the computes
  bool operator==(const ShardRules&) const = default;
};

// How other messages are sent.
struct MessageRules {
  // Collectives without a stated algorithm are left to NCCL, which chooses between a ring and a double tree (settle_algorithms).
  bool nccl_chooses = true;
  bool exchanges_in_turn = false;  // a stage sends, then receives: the two directions of a link take turns
  // The two products before a gated activation are modules of their own, which sum the gradient of their common input one by one.
  bool sums_each_product = false;
  // Bytes read and written by copies at each tensor-parallel collective, over those of its full tensor.
  double tensor_copies = 0;
  // Every tensor-parallel rank gathers the logits of the whole vocabulary and computes the whole loss.
  bool gathers_logits = false;
  bool operator==(const MessageRules&) const = default;
};

// Operators without modules that Python issues for the gradient of each parameter behind the backward of a micro-batch, to add it to the
// sum: where every rank updates the whole parameter, and where it updates a shard, which is cut out.
struct GradientLoop {
  double whole = 0, shard = 0;
  bool operator==(const GradientLoop&) const = default;
};

// Time that the host thread takes to issue work.
struct HostTimes {
  Seconds per_kernel = {};  // per kernel: Python, dispatcher, launch
  // Per part of a tensor that a collective of lists cuts out or copies: a dispatch without modules and autograd. Empty: per_kernel.
  std::optional<Seconds> per_part = {};
  GradientLoop gradient_loop = {};  // each takes per_part
  // A product of rows that are gathered from the tensor-parallel ranks is issued in pieces: the rank's own rows, those before, those after.
  // Allocating, slicing and waiting take the host as long as one piece more.
  bool splits_products = false;
  bool blocking_launches = false;  // the host issues a kernel only when the previous one has ended (CUDA_LAUNCH_BLOCKING=1)
  Seconds per_collective = {};
  Seconds per_exchange = {};  // added to every send: the device waits while the host issues it
  // Per forward of a chunk that has the embedding or the loss: fetching the batch, masks, averaging the loss.
  Seconds per_microbatch = {};
  Seconds per_step = {};  // once per iteration: data loader, loss to the host, scheduler, logging
  bool operator==(const HostTimes&) const = default;
};

// How the host issues the work of layers with experts. In segments that have such layers, its times replace HostTimes::per_kernel.
struct ExpertIssue {
  Seconds per_kernel = {};       // of the operators of experts; 0: HostTimes::per_kernel for all operators
  Seconds per_operator = {};     // for each kernel of other operators, with what Python and autograd take around it
  Seconds per_linear = {};       // the same for the forward of a product of two matrices; 0: per_operator
  bool each_expert = false;      // one call for each expert's product; false: one call for all experts
  double eight_bit_kernels = 1;  // kernels of one expert's 8-bit product, casts and scales included
  // Python calls that launch no kernel, for each weight of an expert, in a forward and in the backward of the weight.
  double calls_per_weight = 0;
  double calls_per_recompute = 0;  // Python calls per recomputed part of the model: they save and restore random generators
  bool waits_for_counts = false;   // without a capacity the host waits until the device has counted the rows of each expert
  bool clamp_waits = false;        // the clamped activation copies a number to the device, for which the host waits
  bool sorts_rows = false;         // rows of several experts from several ranks are sorted by a separate copy, and back
  bool joins_chunks = false;       // this copy concatenates pieces (torch.cat); false: it is one kernel at full bandwidth
  bool pads_rows = false;  // in 8 bits without a capacity the rows of each expert are padded by a separate copy, and back
  bool joins_results =
      false;  // each expert is a module of its own: a separate copy joins their results, and so the gradients of their rows
  // Scores multiply the activation, not the results: their gradient is a pass of its own there, and sums of results read no scores.
  bool weighs_activation = false;
  // How the biases of the experts' second products are added: `traffic` is the bytes moved over those of the products' results, `kernels`
  // are issued for each expert. Empty: within the products.
  std::optional<OpStyle> biases = {};
  bool operator==(const ExpertIssue&) const = default;
};

// Passes that separate kernels make over the input and the result of an adapter: bytes per element, in the forward and in the backward.
struct AdapterPasses {
  double input = 0, input_backward = 0, result = 0, result_backward = 0;
  bool transposes_weights = false;  // no transposed copy of frozen 8-bit weights is kept for the backward
  bool operator==(const AdapterPasses&) const = default;
};

// How operators other than matrix products are run.
struct OpStyles {
  OpStyle norm = {}, rope = {}, activation = {}, softmax = {}, residual = {}, cross_entropy = {}, optimizer = {};
  OpStyle route = {}, dispatch = {}, combine = {};
  std::optional<OpStyle> clamped_activation = {};  // of gpt-oss; empty: as other activations
  std::optional<OpStyle> causal_softmax = {};      // fused, where a query has only earlier keys; empty: as others
  std::optional<OpStyle> scaled_rope = {};         // a rotation that also scales (YaRN); empty: as others
  std::optional<OpStyle> narrow_optimizer = {};    // of states narrower than fp32; empty: as others
  SoftmaxMaps softmax_maps = {};
  AdapterPasses adapters = {};
  double joins = 1;             // speed of concatenations in 16 bits (torch.cat), over other kernels without vector loads
  bool copies_heads = false;    // Megatron core's copies around rotary embeddings (head_copies.h)
  bool copies_samples = false;  // nanotron's copies behind attention, with several samples (head_copies.h)
  bool sums_gradients = false;  // a separate kernel adds the gradients of a value that two operators read
  bool fills_results = false;   // PyTorch fills what an operator allocates for its result before the operator writes it
  bool operator==(const OpStyles&) const = default;
};

// Scales of rows and columns: what casts move in a forward and its backward, in bytes of a stream per element. All 0: one scale per tensor.
struct RowScales {
  double input = 0;     // of the product's input, and of the gradient to it, which is scaled behind its product
  double gradient = 0;  // of the gradient to the product's result
  double weight = 0;    // of the weights, and of their gradient, which is scaled behind its product
  bool operator==(const RowScales&) const = default;
};

// Training in 8 bits: JSON `fp8_rows`, `fp8_gathers` and so on.
struct EightBits {
  RowScales rows = {};
  bool gathers = false;       // sequences that only 8-bit products read are gathered over tensor-parallel ranks in 8 bits
  bool parameters = false;    // parameters of 8-bit products are kept, and gathered over data-parallel ranks, in 8 bits
  bool maxima = false;        // a pass of its own finds the largest magnitude of each tensor, before the one that casts it
  bool fused_copies = false;  // the kernel that casts writes the transposed copy as well, where products need one
  bool norms = false;         // norms write codes where only products of codes read their results
  bool blocks = false;        // scales of blocks of 32 numbers (MXFP8) on GPUs that have products of these
  bool operator==(const EightBits&) const = default;
};

struct FrameworkPreset {
  std::string name = {}, summary = {}, source = {};
  std::string like = {};  // the preset of which this is a variant, such as another version of it; empty: of none
  std::optional<Runner> runner = {};  // empty: nothing is known of what it can run
  // Repository and version whose options an export writes (report/export/framework_export.h); empty: no export.
  std::string options = {};
  RunDefaults defaults = {};
  bool recompute_stops = false;  // full recomputation stops at the last value that the backward reads
  // Zero-bubble schedules begin the next iteration without a barrier (post-validation of the update).
  bool post_validation = false;
  FlopCount flop_count = FlopCount::Model;
  // costs
  FlashKernel flash = FlashKernel::Newest;
  // Bandwidth that kernels without products reach, over that of kernels that stream at full bandwidth.
  double elementwise = 1;
  EightBits eight_bits = {};
  bool autocast = false;        // each product casts its fp32 weights to 16 bits, and the gradient of the weights back
  bool adds_gradients = false;  // a separate kernel adds the gradient of weights to their sum over micro-batches
  // Recomputation by modules, 16 bits and wider: share of the products in these modules that run again.
  double redone_products = 1;
  ShardRules shards = {};
  MessageRules messages = {};
  HostTimes host = {};
  ExpertIssue experts = {};
  OpStyles styles = {};
  MemoryTraits memory = {};
  std::vector<OffloadRule> offload = {};  // which words of a command line move what to host memory
  std::vector<std::string> implies = {};  // runtime policies that the framework has; policy_of chooses one of them
  bool operator==(const FrameworkPreset&) const = default;
};

// The shipped preset of that name; each is read when it is first asked for. Throws Error for a bad file. An unknown name is a bug: options are checked before.
const FrameworkPreset& framework_preset(const std::string& name);
// A file with "like" starts from the preset that it names and changes what it states. Throws Error.
FrameworkPreset parse_framework_preset(const std::string& text, const std::string& name, const std::string& file_name);

// Which communication overlaps computes where a strategy leaves it open: what the preset says, or else `otherwise`. Megatron overlaps
// transfers between stages only with interleaved chunks. `cuts`: with ZeRO.
Overlap overlap_of(const FrameworkPreset& preset, int virtual_stages, bool cuts, Overlap otherwise = {});

// The strategy, with the preset's defaults where the strategy leaves a choice open: padding of the vocabulary, number formats, attention,
// dropout, clipping, overlap, and how context parallelism exchanges keys and values. `resolve` begins with it.
Strategy with_preset(const Model& model, Strategy strategy);

}  // namespace foreshard
