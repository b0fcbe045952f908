// A row of published measurements as a question to the engine: which model, on which cluster, trained how, and what was
// measured. Nothing here looks at the measured value.
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

// Why a row is not predicted. Closed: names and explanations in kSkipReasons order.
enum class SkipReason : std::uint8_t {
  UnknownExperts,  // how many, how wide, how many of them a token chooses
  MixtureAlone,    // a mixture without the attention around it
  Mla,             // latent attention whose widths are not stated
  Lora,            // frozen layers: without weight gradients and states
  Fp4,
  Precision,  // a word that we do not know
  UnknownShape,
  UnknownDegree,
  UnknownBatch,
  UnknownGpu,
  Schedule,   // an order of work that we do not have
  Offload,    // words that the preset does not know, or a pipeline of several stages
  Quantity,   // a measured quantity of another kind
  Infeasible  // lower refuses: the reason is in the row's explanation
};
inline constexpr int kSkipReasons = 14;
const char* name_of(SkipReason reason);

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

enum class FlopConvention : std::uint8_t { Model, ModelCausal, Hardware };
enum class MemoryKind : std::uint8_t { Allocated, Reserved, Device, Unknown, Analytic };
enum class MemoryRank : std::uint8_t { Largest, First, Last };

struct MeasuredCase {
  Model model = {};
  Cluster cluster = {};
  std::vector<Strategy> candidates = {};  // more than one: the row leaves settings open, the fastest feasible one counts
  Quantity quantity = Quantity::IterationTime;
  FlopConvention flops = FlopConvention::Model;
  MemoryKind memory = MemoryKind::Allocated;
  MemoryRank rank = MemoryRank::Largest;
  std::vector<std::string> assumed = {};  // columns that the row does not state
  std::string framework = {};             // the preset
  std::string stack = {};                 // the framework that the row names, whatever kernels it ran with
  std::string flags = {};                 // of the framework's command line
  std::int64_t gpus = 0;
  Offload offload = {};  // what the run keeps in host memory
  bool barrier = false;  // the optimizer waits for all ranks, though the framework need not
};

// Throws Error when a cell that is stated cannot be read.
std::variant<MeasuredCase, SkipReason> measured_case(const MeasuredRow& row);

}  // namespace foreshard
