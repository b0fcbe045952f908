// Writes a strategy as options of a framework's command line, or as the configuration file that the framework reads. Every choice
// that was simulated is written, even where it is the framework's default; choices that no option can express become notes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/strategy/strategy.h"

namespace foreshard {

struct FrameworkExport {
  std::string goes_to = {};             // "options of pretrain_gpt.py", "ds_config.json"
  std::string version = {};             // repository and commit or tag whose options these are
  std::vector<std::string> lines = {};  // one option each, or the lines of the file
  std::vector<std::string> notes = {};  // environment variables, calls of the training script, and choices without an option
  // Fields of model and strategy that were simulated and that change what is trained, but are in no line: "model.num_experts 8". With any of
  // them the lines start another training, and must not be given to anybody.
  std::vector<std::string> unsaid = {};
};

// The framework whose options are written.
enum class ExportFormat : std::uint8_t { Megatron, DeepSpeed, TorchTitan, Fsdp2 };

// Behaviour of the framework that the strategy does not state, and that the export writes as options or notes.
struct FrameworkFacts {
  std::string version = {};                   // repository and commit or tag whose options these are
  std::int64_t least_sharded = 0;             // elements: ZeRO 3 does not shard smaller tensors
  std::int64_t reuse_distance = 0;            // elements: parameters that are used again before this many others stay gathered
  std::int64_t live_elements = 0;             // elements: at most this many parameters are gathered at one time
  std::optional<std::int64_t> prefetch = {};  // elements that are gathered ahead; empty: the framework's default
  bool keeps_after_forward = false;           // parameters stay gathered from the forward to the backward
  std::string policy = {};                    // a note on the runtime policy; empty: the strategy names no policy
  bool deterministic_attention = false;       // the attention's backward sums in a fixed order
  bool recomputation_stops_early = false;     // after the last value that the backward reads
};

// Expects a resolved `strategy` and a transformer `model`.
FrameworkExport framework_export(ExportFormat format, const FrameworkFacts& facts, const Model& model,
                                 const Strategy& strategy);

}  // namespace foreshard
