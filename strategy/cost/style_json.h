// Numbers and operator styles of a preset's JSON file (docs/cost-model.md, "Frameworks"). What a file does
// not state keeps its value; a style that it states replaces the whole style.
#pragma once

#include <string>

#include "core/json/json.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// A number from `least` to `most`, or the name of a fitted constant in its place.
void read_number(const JsonReader& json, const std::string& key, double least, double most, double& number);
// {"kernels", "traffic", "copies", "joined", "unvectorized", "result_bytes", "elementwise", "backward": {...}}
void read_style(const JsonReader& json, const std::string& key, OpStyle& style);
// `softmax`: a style, and "causal", that of the kernel for causal attention. A file that states a softmax states both.
void read_softmax(const JsonReader& json, OpStyles& styles);

}  // namespace foreshard
