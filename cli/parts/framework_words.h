// A strategy as options of the framework that it names, as `search` and `export` print it (report/export/framework_export.h).
#pragma once

#include <optional>
#include <string>

#include "core/json/json.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "report/export/framework_export.h"

namespace foreshard {

// The resolved `strategy` as options of its framework. Empty: the program knows no options of this framework, or none for this model.
std::optional<FrameworkExport> framework_export(const Model& model, const Strategy& strategy);

// Why framework_export returns nothing, as a sentence for the user; "" when it returns options.
std::string no_framework_words(const Model& model, const Strategy& strategy);

// The export as text: "For megatron, options of pretrain_gpt.py (...):", its lines, its notes.
std::string framework_words(const std::string& framework, const FrameworkExport& exported);

// Writes the export as two JSON arrays, with the keys `flags` and `notes`.
void write_framework_words(JsonWriter& json, const std::string& flags, const std::string& notes,
                           const FrameworkExport& exported);

}  // namespace foreshard
