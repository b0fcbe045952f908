// The exports of the single frameworks, and what they share. Internal to report/export/framework_export*.cpp.
#pragma once

#include <string>
#include <vector>

#include "report/export/framework_export.h"

namespace foreshard::exports {

FrameworkExport of_megatron(const FrameworkFacts& facts, const Model& model, const Strategy& strategy);
FrameworkExport of_deepspeed(const FrameworkFacts& facts, const Model& model, const Strategy& strategy);
FrameworkExport of_torchtitan(const FrameworkFacts& facts, const Model& model, const Strategy& strategy);
FrameworkExport of_fsdp2(const FrameworkFacts& facts, const Model& model, const Strategy& strategy);

std::string text(std::int64_t n);
std::string number(double value);  // the shortest text that reads back as the same; with a point or an exponent
std::int64_t microbatches(const Strategy& strategy);
bool in_groups(const Strategy& strategy);  // ZeRO shards over fewer than all replicas
std::int64_t bucket_elements(const Strategy& strategy);
std::vector<int> layers_per_stage(const Model& model, const Strategy& strategy);
// "layers 0 to 7", of full recomputation; empty: every layer.
std::string recomputed_layers(const Recompute& recompute);
// What of the strategy's offload no option of the framework says, as a note; empty: nothing. `says` are those of its parts that one does.
struct OffloadOptions {
  bool optimizer = false, parameters = false, gradients = false, activations = false;
};
std::string offload_note(const OffloadChoice& offload, const OffloadOptions& says);

}  // namespace foreshard::exports
