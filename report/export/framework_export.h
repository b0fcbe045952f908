// A strategy in the words of a framework: options of its command line, or the file that it reads. Every choice that was simulated is
// said, also where it is the framework's default; what no option says is told in notes.
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
  std::vector<std::string> notes = {};  // environment, calls of the training script, and what cannot be said
};

// Whose options are written.
enum class ExportFormat : std::uint8_t { Megatron, DeepSpeed, TorchTitan, Fsdp2 };

// What the framework does by itself and its options repeat.
struct FrameworkFacts {
  std::string version = {};                   // repository and commit or tag whose options these are
  std::int64_t least_sharded = 0;             // elements: ZeRO 3 leaves smaller tensors whole
  std::int64_t reuse_distance = 0;            // elements: parameters that are used again within them stay gathered
  std::int64_t live_elements = 0;             // the most parameters that are gathered at a time
  std::optional<std::int64_t> prefetch = {};  // elements that are gathered ahead; empty: the framework's own number
  bool keeps_after_forward = false;           // parameters stay gathered from the forward to the backward
  std::string policy = {};                    // a note on the runtime policy; empty: none was asked for
  bool deterministic_attention = false;       // its backward sums in a fixed order
  bool recomputation_stops_early = false;     // with the last value that the backward reads
};

// `strategy` is resolved; `model` is a transformer.
FrameworkExport framework_export(ExportFormat format, const FrameworkFacts& facts, const Model& model,
                                 const Strategy& strategy);

}  // namespace foreshard
