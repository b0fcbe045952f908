#include "cli/verbs/framework_words.h"

#include "strategy/cost/framework_preset.h"
#include "strategy/search/search_framework.h"

namespace foreshard {

static std::optional<ExportFormat> format_of(Runner runner) {
  switch (runner) {
    case Runner::Megatron: return ExportFormat::Megatron;
    case Runner::DeepSpeed: return ExportFormat::DeepSpeed;
    case Runner::TorchTitan: return ExportFormat::TorchTitan;
    case Runner::Fsdp2: return ExportFormat::Fsdp2;
    case Runner::Nanotron: return {};
  }
  return {};
}

std::optional<FrameworkExport> framework_export(const Model& model, const Strategy& strategy) {
  const FrameworkPreset& preset = framework_preset(strategy.framework);
  if (!preset.runner || preset.options.empty() || !std::holds_alternative<Transformer>(model.shape)) return {};
  const std::optional<ExportFormat> format = format_of(*preset.runner);
  if (!format) return {};
  return framework_export(*format,
                          {.version = preset.options,
                           .least_sharded = preset.shards.least,
                           .reuse_distance = preset.shards.reuse_distance,
                           .deterministic_attention = preset.flash == FlashKernel::Deterministic,
                           .recomputation_stops_early = preset.recompute_stops},
                          model, strategy);
}

std::string no_framework_words(const Model& model, const Strategy& strategy) {
  const std::string& name = strategy.framework;
  if (framework_export(model, strategy)) return "";
  if (find_runner(name) && !std::holds_alternative<Transformer>(model.shape))
    return "Nothing is known of how " + name +
           " trains a layer list: its limits for transformers hold, and no options are printed.";
  return "No options of " + name + " are known.";
}

std::string framework_words(const std::string& framework, const FrameworkExport& exported) {
  std::string out = "For " + framework + ", " + exported.goes_to + " (" + exported.version + "):\n\n";
  for (const std::string& line : exported.lines) out += "  " + line + "\n";
  if (!exported.notes.empty()) out += "\n";
  for (const std::string& note : exported.notes) out += "  Note: " + note + ".\n";
  return out;
}

void write_framework_words(JsonWriter& json, const std::string& flags, const std::string& notes,
                           const FrameworkExport& exported) {
  const auto list = [&](const std::string& key, const std::vector<std::string>& lines) {
    json.key(key).begin_array();
    for (const std::string& line : lines) json.value(line);
    json.end_array();
  };
  list(flags, exported.lines);
  list(notes, exported.notes);
}

}  // namespace foreshard
