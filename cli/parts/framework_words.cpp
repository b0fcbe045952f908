#include "cli/parts/framework_words.h"

#include <algorithm>

#include "strategy/cost/framework_preset.h"
#include "strategy/cost/runtime_policy.h"
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

// No option selects the gather and release rule of another framework's policy, so the note says that it was only simulated.
static std::string note_on(const RuntimePolicy& policy, const FrameworkPreset& preset) {
  const bool known = std::ranges::find(framework_names(), policy.of) != framework_names().end();
  const bool own = known && framework_preset(policy.of).runner == preset.runner;
  return "runtime policy " + policy.name + (own ? ", its own" : " of " + policy.of + ": simulated, but no option says so");
}

static FrameworkFacts facts_of(const FrameworkPreset& preset, const Strategy& strategy) {
  FrameworkFacts facts{.version = preset.options,
                       .least_sharded = preset.shards.least,
                       .reuse_distance = preset.shards.reuse_distance,
                       .live_elements = preset.shards.reuse_distance,
                       .deterministic_attention = preset.flash == FlashKernel::Deterministic,
                       .recomputation_stops_early = preset.recompute_stops};
  const RuntimePolicy* policy = find_policy(strategy.policy);
  if (!policy) return facts;
  facts.policy = note_on(*policy, preset);
  if (!policy->layers) return facts;
  if (const auto* modules = std::get_if<ModuleRule>(&policy->layers->rule)) {
    facts.prefetch = modules->prefetch, facts.live_elements = modules->live_cap;
    facts.reuse_distance = modules->reuse_distance;
  } else if (const auto* blocks = std::get_if<BlockRule>(&policy->layers->rule)) {
    facts.keeps_after_forward = blocks->keep_after_forward;
  }
  return facts;
}

std::optional<FrameworkExport> framework_export(const Model& model, const Strategy& strategy) {
  const FrameworkPreset& preset = framework_preset(strategy.framework);
  if (!preset.runner || preset.options.empty() || !std::holds_alternative<Transformer>(model.shape)) return {};
  const std::optional<ExportFormat> format = format_of(*preset.runner);
  if (!format) return {};
  return framework_export(*format, facts_of(preset, strategy), model, strategy);
}

std::string no_framework_words(const Model& model, const Strategy& strategy) {
  const std::string& name = strategy.framework;
  if (const auto exported = framework_export(model, strategy))
    return exported->unsaid.empty() ? ""
                                    : "No export for " + name + ": its options do not say " + joined(exported->unsaid) + ".";
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
