// Framework presets: what a training framework does unless it is told otherwise, and what its way of running costs. Data
// files frameworks/*.json, one per framework; docs/cost-model.md explains each field.
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
#include "strategy/cost/op_cost.h"

namespace foreshard {

// How one operator of the graph is run: the number of kernels, and the bytes that they move together over those of a fused one. Of these `copies`
// are casts and fills, one operand in and one out, which stream at full bandwidth. The backward likewise where it is stated (0: as the forward).
struct OpStyle {
  double kernels = 1, traffic = 1, copies = 0;
  double backward_traffic = 0, backward_copies = 0;
  bool operator==(const OpStyle&) const = default;
};

// A fused softmax that takes a multiple of `multiple` maps (one per sample and head) at a time; another number of maps (samples times heads of a rank) goes through
// plain operators.
struct SoftmaxMaps {
  std::int64_t multiple = 1;
  OpStyle otherwise = {};
  bool operator==(const SoftmaxMaps&) const = default;
};

// How the shards of ZeRO are communicated: a unit at once, one collective per tensor, or by the tensor's owner, which sums its
// gradient and broadcasts the updated tensor.
enum class ShardCommunication : std::uint8_t { Unit, Tensor, Owner };

// Whose rules say what a framework can run (strategy/search/search_framework.h).
enum class Runner : std::uint8_t { Megatron, DeepSpeed, TorchTitan, Fsdp2, Nanotron };

enum class FlopCount : std::uint8_t { Model, Palm };  // Palm: 6 N + 12 L s h, embedding parameters counted

// What a run has unless its command line says otherwise.
struct RunDefaults {
  std::optional<DType> param_dtype = {}, grad_dtype = {}, state_dtype = {};  // with 16-bit arithmetic
  std::optional<Overlap> overlap = {};
  AttentionKernel attention = AttentionKernel::Auto;
  ContextKind context = ContextKind::AllGather;
  double dropout = 0;  // of models with biases and learned positions, as GPT and BERT have it
  double clip_norm = 0;
  int zero = 0;          // stage
  int chunk_layers = 0;  // of an interleaved schedule; 0: not interleaved then
  std::int64_t vocab_multiple = 1;
  std::int64_t vocabulary = 0;  // that of the framework's usual tokenizer
  bool operator==(const RunDefaults&) const = default;
};

// How what ZeRO cuts is communicated.
struct ShardRules {
  ShardCommunication communication = ShardCommunication::Unit;
  std::int64_t least = 0;  // elements: tensors below are whole on every rank; only with one collective per tensor
  std::int64_t reuse_distance =
      0;  // elements: a larger unit is gathered for the recomputation and again for the gradients; 0: once
  bool gathers_narrow = false;  // parameters in fp32 are cast to the format of the products before they are gathered
  bool operator==(const ShardRules&) const = default;
};

// Time of the host thread.
struct HostTimes {
  Seconds per_kernel = {};         // to issue one operator: Python, dispatcher, all its kernels
  bool blocking_launches = false;  // it issues a kernel only when the one before has ended (CUDA_LAUNCH_BLOCKING=1)
  Seconds per_collective = {};
  Seconds per_exchange = {};    // the device waits while the host issues one, after a synchronisation for instance
  Seconds per_microbatch = {};  // per forward of a chunk: fetching the batch, masks, averaging the loss
  Seconds per_step = {};        // once per iteration: data loader, loss to the host, scheduler, logging
  bool operator==(const HostTimes&) const = default;
};

// How operators that are no products are run.
struct OpStyles {
  OpStyle norm = {}, rope = {}, activation = {}, softmax = {}, residual = {}, cross_entropy = {}, optimizer = {};
  SoftmaxMaps softmax_maps = {};
  bool operator==(const OpStyles&) const = default;
};

struct FrameworkPreset {
  std::string name = {}, summary = {}, source = {};
  std::optional<Runner> runner = {};  // empty: nothing is known of what it can run
  std::string options =
      {};  // repository and version whose options are written (report/export/framework_export.h); empty: none are
  RunDefaults defaults = {};
  bool recompute_stops = false;  // full recomputation ends with the last value that the backward reads
  bool post_validation = false;  // steps of zero-bubble schedules follow each other without a barrier
  FlopCount flop_count = FlopCount::Model;
  // costs
  FlashKernel flash = FlashKernel::Newest;
  double elementwise = 1;       // speed of kernels without products, against kernels that stream at full bandwidth
  double tensor_bytes = 1;      // of tensor-parallel sums, against those of their tensor: 2 when 16 bits are summed as fp32
  double fp8_products = 1;      // speed of 8-bit products, against those with one scale per tensor
  bool autocast = false;        // products cast their fp32 weights each time, and the gradients of the weights back
  bool adds_gradients = false;  // a gradient of weights is added to that of earlier micro-batches by a kernel of its own
  double redone_products = 1;   // share of the products in wider formats among the modules to redo that do run again
  ShardRules shards = {};
  bool exchanges_in_turn = false;  // a stage sends, then receives: both directions of a link take turns
  double tensor_copies = 0;        // bytes read and written beside each tensor-parallel collective, in sizes of its full tensor
  HostTimes host = {};
  OpStyles styles = {};
  MemoryTraits memory = {};
  std::vector<OffloadRule> offload = {};  // what words of a command line keep in host memory
  bool operator==(const FrameworkPreset&) const = default;
};

// All shipped presets by name; read once. A file with "like": a preset that differs in what it states. An unknown name is a bug: options check it first. Throws Error for a bad file.
const FrameworkPreset& framework_preset(const std::string& name);
FrameworkPreset parse_framework_preset(const std::string& text, const std::string& name, const std::string& file_name);

// How the preset runs an operator.
const OpStyle& style_of(const FrameworkPreset& preset, const Compute& what);

// By how much its bytes take longer than those of a fused kernel at full bandwidth.
double slowdown_of(const FrameworkPreset& preset, const Compute& what);

// The strategy with what the preset decides where the strategy leaves it open: padding of the vocabulary, number formats, attention,
// dropout, clipping, overlap, and how context parallelism exchanges keys and values. `resolve` begins with it.
Strategy with_preset(const Model& model, Strategy strategy);

}  // namespace foreshard
