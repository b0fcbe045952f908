// The export to each framework, and the functions that they share. Internal to report/export/framework_export*.cpp.
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
std::string number(double value);  // the shortest text that parses to `value`, with a point or an exponent: "1.0"
std::int64_t microbatches(const Strategy& strategy);     // per replica and iteration
bool in_groups(const Strategy& strategy);                // ZeRO shards over groups that are smaller than the data-parallel size
std::int64_t bucket_elements(const Strategy& strategy);  // gradients in one bucket of the communication
std::vector<int> layers_per_stage(const Model& model, const Strategy& strategy);  // [stage], virtual stages included
// The layers that full recomputation is limited to: "the first 4 layers of each stage"; empty: every layer.
std::string recomputed_layers(const Recompute& recompute);
// The parts of an offload for which the framework has options.
struct OffloadOptions {
  bool optimizer = false, parameters = false, gradients = false, activations = false;
};
// A note that names the offloaded parts that the options in `says` do not express; empty: there are none.
std::string offload_note(const OffloadChoice& offload, const OffloadOptions& says);

}  // namespace foreshard::exports
