// Device memory of a framework that the blocks of a plan do not show, or show differently: the "memory" object of frameworks/*.json.
// Every field is a buffer or a rule found in the framework's sources; docs/memory.md explains each.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/json/json.h"
#include "strategy/cost/offload.h"
#include "strategy/cost/step_memory.h"

namespace foreshard {

using ByArchitecture = std::map<std::string, Bytes>;  // "ampere" -> bytes; "any" stands for every generation that is not named

// The changes that a flag of the framework's command line makes to the traits; empty: no change. `flag` is written without "--".
struct MemoryFlag {
  std::string flag = {};
  std::map<std::string, ByArchitecture> workspaces = {};  // replace the workspaces of the same libraries
  std::optional<double> score_buffer = {}, score_bytes = {}, logit_bytes = {}, query_key_bytes = {};
  std::optional<int> deferred_heads = {};
  std::optional<bool> fp8_parameters = {}, precision_aware = {};
  bool operator==(const MemoryFlag&) const = default;
};

// Memory of the head and the loss.
struct LogitMemory {
  double bytes = 6;  // per logit of this rank at the peak of the loss: 16-bit logits, fp32 probabilities
  // If not 0 under tensor parallelism: per logit of the whole vocabulary, which every rank then holds.
  double gathered_bytes = 0;
  std::string chunks = {};  // name of the flag whose value is `parts`
  // Parts in which the head is computed, one after the other: one part of the logits is in memory at a time.
  double parts = 1;
  bool parts_by_width = false;  // parts = vocabulary / hidden size instead (Liger's fused loss)
  // Micro-batches whose weight gradient of the head is deferred: they keep its input and the logits' gradient.
  int deferred_heads = 0;
  double held_bytes = 0;  // per logit, while the layers before the head run backward
  // Micro-batches whose fp32 logits stay in buffers of DeepSpeed's pipeline engine, which does not run ZeRO 2 and 3. The last stage frees none
  // of its outputs, only the next one in the same buffer replaces it.
  int buffered = 0;
  bool operator==(const LogitMemory&) const = default;
};

// Bytes per attention score of an unfused attention.
struct ScoreMemory {
  double buffer = 0;   // of a buffer that stays allocated
  double kept = 0;     // kept for the backward in addition to the plan's
  double scratch = 0;  // while an attention is recomputed or differentiated
  bool operator==(const ScoreMemory&) const = default;
};

// Kept for the backward in addition to the results of the projections before attention.
struct ProjectionMemory {
  double query_key = 0;  // bytes per element of queries and keys, where these have norms
  double key_value = 0;  // bytes per element of keys and values, where attention copies them
  bool operator==(const ProjectionMemory&) const = default;
};

// Bytes per parameter under ZeRO 1, parameters, gradients and states together: `whole` on every rank, `shared` divided by the ranks.
struct Zero1Memory {
  double whole = 0, shared = 0;
  bool operator==(const Zero1Memory&) const = default;
};

// Which memory the framework's logs print, unless a measured row says otherwise.
struct ReportedMemory {
  bool reserved = false;    // reserved memory, else allocated memory
  bool first_rank = false;  // of the first pipeline rank, else of the one that needs most
  bool decimal = false;     // a GB of the logs is 10^9 bytes, else 2^30
  bool operator==(const ReportedMemory&) const = default;
};

struct OptimizerMemory {
  bool half_main_gradients = false;  // 16-bit gradients: their fp32 copies live from the end of the backward to the next step
  // Megatron core's precision-aware optimizer, in 16-bit training and wherever states are narrower than fp32. A master copy is the 16 bits
  // that a bf16 parameter lacks, moments narrower than fp32 are widened while their optimizer updates (that of the routed experts after
  // that of the other parameters), and it reads 16-bit gradients.
  bool precision_aware = false;
  bool operator==(const OptimizerMemory&) const = default;
};

struct MemoryTraits {
  std::map<std::string, ByArchitecture> workspaces = {};  // library -> bytes allocated from the first step on
  // States are tensors of PyTorch's allocator, one per parameter, with its rounding.
  bool caching_allocator = false;
  bool attention_mask = false;  // every step has a mask of one byte per sample and pair of positions
  // Numbers of tensors of the size of a stage's output that transfers keep allocated: between two steps, per chunk; at the peak; at the
  // peak with virtual stages.
  int boundaries_left = 0, boundaries = 0, interleaved_boundaries = 0;
  // GPU generations whose flash attention takes the layout [batch, sequence, heads]: with more than one sample its result is copied back,
  // and both copies are kept.
  std::vector<std::string> attention_copies = {};
  std::optional<Zero1Memory> zero1 = {};  // empty: ZeRO 1 takes the sum of the number formats
  bool fp8_parameters = false;            // weights of products in layers are kept in 8 bits, with a transposed copy
  bool fp8_inputs = false;                // fp8 products keep their input in 8 bits; other readers keep their own in 16
  OptimizerMemory optimizer = {};
  // Kept for the backward in addition to what a fused kernel keeps: bytes per element of a norm's input, of an activation's result.
  double norm_bytes = 0, activation_bytes = 0;
  ScoreMemory scores = {};
  ProjectionMemory projections = {};
  bool remakes_attention = false;  // an attention that is recomputed also recomputes its result: nothing of it is kept
  LogitMemory logits = {};
  std::optional<StepMemory> step = {};  // its allocations are replayed; empty: closed forms
  ReportedMemory reports = {};
  double fragmentation = 1;  // reserved over allocated bytes of memory that is allocated and freed in a step
  Offload offload = {};      // what a run keeps in host memory
  // Process groups with an NCCL communicator, by the axes whose ranks form one: "world", "dp", "tp", "pp", "model" (tp and pp). "tied" is
  // that of the first and the last stage. Empty: a ring per axis.
  std::vector<std::string> communicators = {};
  double cast_largest = 0;  // bytes per element of the largest parameter of a stage, in a temporary copy after each backward
  // CUDA context and workspace outside the allocator, without NCCL's buffers; empty: 544 MiB.
  std::optional<Bytes> context = {};
  std::vector<MemoryFlag> flags = {};
  bool operator==(const MemoryTraits&) const = default;
};

MemoryTraits read_memory_traits(const JsonReader& json);  // throws Error

// The traits of a run whose command line was `flags` ("--deterministic-mode --transformer-impl local").
MemoryTraits with_flags(MemoryTraits traits, const std::string& flags);

}  // namespace foreshard
