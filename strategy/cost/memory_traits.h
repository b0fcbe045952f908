// How a framework's allocator differs from the blocks of a plan: the "memory" object of frameworks/*.json. Every field is a
// buffer or a rule that the framework's sources show; docs/memory.md explains each.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/json/json.h"
#include "strategy/cost/offload.h"

namespace foreshard {

using ByArchitecture = std::map<std::string, Bytes>;  // "ampere" -> bytes; "any" where a generation is not named

// What a flag of the framework's command line changes.
struct MemoryFlag {
  std::string flag = {};
  std::map<std::string, ByArchitecture> workspaces = {};  // replaces those of the same library
  std::optional<double> score_buffer = {}, score_bytes = {}, logit_bytes = {}, query_key_bytes = {};
  std::optional<int> deferred_heads = {};
  std::optional<bool> fp8_parameters = {};
  bool operator==(const MemoryFlag&) const = default;
};

// What the head and the loss hold.
struct LogitMemory {
  double bytes = 6;             // per logit of this rank when the loss is largest: 16-bit logits, fp32 probabilities
  double gathered_bytes = 0;    // likewise per logit of the whole vocabulary, which every tensor-parallel rank then holds
  std::string chunks = {};      // the flag that says in how many parts the head is computed, one after the other
  double parts = 1;             // ... and in how many parts: one part of the logits and their gradient is in memory at a time
  bool parts_by_width = false;  // as many as the vocabulary is wider than the hidden size (Liger's fused loss)
  int deferred_heads = 0;       // micro-batches whose head has its weight gradient put off: its input and the logits' gradient
  double held_bytes = 0;        // and while the layers before it run backward
  bool operator==(const LogitMemory&) const = default;
};

// Bytes per attention score.
struct ScoreMemory {
  double buffer = 0;   // resident
  double kept = 0;     // for the backward beside what a fused kernel keeps
  double scratch = 0;  // while an attention is recomputed or differentiated
  bool operator==(const ScoreMemory&) const = default;
};

// Bytes per parameter under ZeRO 1: on every rank, and shared out.
struct Zero1Memory {
  double whole = 0, shared = 0;
  bool operator==(const Zero1Memory&) const = default;
};

struct MemoryTraits {
  std::map<std::string, ByArchitecture> workspaces = {};  // library -> held inside the allocator from the first step on
  bool caching_allocator = false;                         // states are tensors of PyTorch's allocator, one per parameter
  bool attention_mask = false;                            // a mask of one byte per sample and pair of positions, for every step
  // Tensors of the size of a stage's output that transfers hold on to: between two steps, per chunk; and at the peak.
  int boundaries_left = 0, boundaries = 0, interleaved_boundaries = 0;
  // Generations whose flash attention wants [batch, sequence, heads]: with more than one sample the result is copied back, and
  // both copies are kept.
  std::vector<std::string> attention_copies = {};
  std::optional<Zero1Memory> zero1 = {};  // where the framework's copies differ from the formats' sum
  bool fp8_parameters = false;            // the weights of the layers' products are kept in 8 bits, with a transposed copy
  bool fp8_inputs = false;                // fp8 products keep their input in 8 bits; other readers keep their own in 16
  bool half_main_gradients = false;  // fp16: fp32 copies of the gradients live from the end of the backward to the next step
  // Kept for the backward beside what a fused kernel keeps: bytes per element of a norm's input, of an activation's result.
  double norm_bytes = 0, activation_bytes = 0;
  ScoreMemory scores = {};
  double query_key_bytes = 0;      // likewise per element of queries and keys, where these have norms of their own
  bool remakes_attention = false;  // an attention that runs again makes its result again, too: nothing of it is kept
  LogitMemory logits = {};
  bool reports_reserved = false;      // what its logs print where a row does not say what was measured
  double fragmentation = 1;           // taken from the device over allocated, of what comes and goes
  Offload offload = {};               // of a run: what it keeps in host memory
  std::optional<Bytes> context = {};  // outside the allocator, beside the connections' buffers; empty: 544 MiB
  std::vector<MemoryFlag> flags = {};
  bool operator==(const MemoryTraits&) const = default;
};

MemoryTraits read_memory_traits(const JsonReader& json);  // throws Error

// The traits of a run whose command line was `flags` ("--deterministic-mode --transformer-impl local").
MemoryTraits with_flags(MemoryTraits traits, const std::string& flags);

}  // namespace foreshard
