// A strategy in the words of the framework that it names, as `search` and `export` print it (report/export/framework_export.h).
#pragma once

#include <optional>
#include <string>

#include "core/json/json.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "report/export/framework_export.h"

namespace foreshard {

// The strategy, which is resolved, in the words of the framework that it names. Empty: no options are known of it, or of how it trains
// this model.
std::optional<FrameworkExport> framework_export(const Model& model, const Strategy& strategy);

// Why there are no words: nothing is known of the framework, or of how it trains this model. Empty: there are some.
std::string no_framework_words(const Model& model, const Strategy& strategy);

// "For megatron, options of pretrain_gpt.py (...):", the lines, the notes.
std::string framework_words(const std::string& framework, const FrameworkExport& exported);

// `"flags": [...], "notes": [...]` with these names.
void write_framework_words(JsonWriter& json, const std::string& flags, const std::string& notes,
                           const FrameworkExport& exported);

}  // namespace foreshard
