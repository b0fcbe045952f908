// A strategy in the words of the framework that it names, as `search` and `export` print it (strategy/frameworks/framework_export.h).
#pragma once

#include <string>

#include "core/json/json.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/frameworks/framework_export.h"

namespace foreshard {

// Why there are no words: nothing is known of the framework, or of how it trains this model. Empty: there are some.
std::string no_framework_words(const Model& model, const Strategy& strategy);

// "For megatron, options of pretrain_gpt.py (...):", the lines, the notes.
std::string framework_words(const std::string& framework, const FrameworkExport& exported);

// `"flags": [...], "notes": [...]` with these names.
void write_framework_words(JsonWriter& json, const std::string& flags, const std::string& notes,
                           const FrameworkExport& exported);

}  // namespace foreshard
