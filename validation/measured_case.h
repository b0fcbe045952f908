// Translates a row of published measurements into a question to the engine: model, cluster, strategy, and the quantity that was
// measured. The measured value itself is not read here.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/offload.h"
#include "validation/measured.h"

namespace foreshard {

// Why a row is not predicted. There are kSkipReasons of them.
enum class SkipReason : std::uint8_t {
  UnknownExperts,  // their number, width, or number per token is not stated
  MixtureAlone,    // a mixture-of-experts layer measured without the attention
  Mla,             // multi-head latent attention whose widths are not stated
  Lora,            // adapters whose rank is not stated
  Fp4,
  Precision,  // an unknown word for it
  UnknownShape,
  UnknownDegree,
  UnknownBatch,
  UnknownGpu,
  Schedule,    // a pipeline schedule that the engine does not have
  EmptyStage,  // the framework leaves a stage between the first and the last without layers
  Offload,     // words that the preset does not know, or offload in a pipeline of several stages
  Quantity,    // a measured quantity that is not in Quantity
  Infeasible,  // `lower` refuses the strategy; its reason is SkippedRow::explanation
  BadCell,     // a cell cannot be read; SkippedRow::explanation says which, what was found and what was expected
  Bug          // of ours, while the row was predicted; SkippedRow::explanation has it
};
inline constexpr int kSkipReasons = 17;
const char* name_of(SkipReason reason);

// What a row measures. Times are in seconds (iterations) or milliseconds (layers and stages), memory is in GiB, MFU and
// ActivationShare are per cent.
enum class Quantity : std::uint8_t {
  IterationTime,
  TokensPerGpu,
  Samples,
  SamplesPerGpu,
  TflopsPerGpu,
  Mfu,
  PeakMemory,
  StaticMemory,
  ActivationMemory,
  ActivationShare,
  LayerForward,
  LayerBackward,
  LayerBoth,
  StageForward,
  StageBackwardInput,
  StageBackwardWeight,
  StageTransfer
};
bool is_memory(Quantity quantity);
bool is_rate(Quantity quantity);  // larger is better

// How the row counts FLOPs: those of the model, of the model with half of the attention (causal mask), or also recomputation.
enum class FlopConvention : std::uint8_t { Model, ModelCausal, Hardware };
// What the row's memory means: allocated or reserved by the allocator, in use on the device, not stated, or computed by a formula.
enum class MemoryKind : std::uint8_t { Allocated, Reserved, Device, Unknown, Analytic };
// The pipeline rank whose memory the row states.
enum class MemoryRank : std::uint8_t { Largest, First, Last };

struct MeasuredCase {
  Model model = {};
  Cluster cluster = {};
  std::vector<Strategy> candidates = {};  // more than one where the row leaves settings open: the fastest that fits counts
  Quantity quantity = Quantity::IterationTime;
  FlopConvention flops = FlopConvention::Model;
  MemoryKind memory = MemoryKind::Allocated;
  MemoryRank rank = MemoryRank::Largest;
  bool printed = false;                   // the row's memory is what the framework's log prints as GB
  std::vector<std::string> assumed = {};  // columns that the row does not state and a default was taken for
  std::string framework = {};             // the preset, which may be a variant of `stack` with other kernels
  std::string stack = {};                 // the framework that the row names
  std::string flags = {};                 // of the framework's command line
  std::int64_t gpus = 0;
  Offload offload = {};  // what the run keeps in host memory
  bool barrier = false;  // all ranks wait for each other before the optimizer step, also where the framework validates after it
};

// Throws Error when a cell holds a value that cannot be read, or its pipeline is too long to be predicted.
std::variant<MeasuredCase, SkipReason> measured_case(const MeasuredRow& row);

}  // namespace foreshard
