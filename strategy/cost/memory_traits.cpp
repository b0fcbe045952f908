#include "strategy/cost/memory_traits.h"

#include <algorithm>
#include <cstdlib>

namespace foreshard {

namespace {

const std::vector<std::string> kArchitectures = {"volta", "ampere", "ada", "hopper", "blackwell", "any"};

std::map<std::string, ByArchitecture> read_workspaces(const JsonReader& json) {
  std::map<std::string, ByArchitecture> workspaces;
  for (const auto& [library, sizes] : json.members()) {
    sizes.only(kArchitectures);
    ByArchitecture& of = workspaces[library];
    for (const auto& [architecture, size] : sizes.members()) of[architecture] = size.as_bytes();
  }
  return workspaces;
}

void read_number(const JsonReader& json, const std::string& key, double most, double& into) {
  if (const auto value = json.find(key)) into = value->as_double(0, most);
}

void read_count(const JsonReader& json, const std::string& key, int& into) {
  if (const auto value = json.find(key)) into = static_cast<int>(value->as_int(0, 64));
}

void read_flag(const JsonReader& json, const std::string& key, bool& into) {
  if (const auto value = json.find(key)) into = value->as_bool();
}

MemoryFlag read_flag_change(const std::string& flag, const JsonReader& json) {
  json.only({"workspaces", "score_buffer", "score_bytes", "logit_bytes", "query_key_bytes", "deferred_heads", "fp8_parameters",
             "precision_aware"});
  MemoryFlag change = {.flag = flag};
  if (const auto workspaces = json.find("workspaces")) change.workspaces = read_workspaces(*workspaces);
  if (const auto bytes = json.find("score_buffer")) change.score_buffer = bytes->as_double(0, 64);
  if (const auto bytes = json.find("score_bytes")) change.score_bytes = bytes->as_double(0, 64);
  if (const auto bytes = json.find("logit_bytes")) change.logit_bytes = bytes->as_double(0, 64);
  if (const auto bytes = json.find("query_key_bytes")) change.query_key_bytes = bytes->as_double(0, 64);
  if (const auto heads = json.find("deferred_heads")) change.deferred_heads = static_cast<int>(heads->as_int(0, 1000));
  if (const auto narrow = json.find("fp8_parameters")) change.fp8_parameters = narrow->as_bool();
  if (const auto aware = json.find("precision_aware")) change.precision_aware = aware->as_bool();
  return change;
}

}  // namespace

MemoryTraits read_memory_traits(const JsonReader& json) {
  json.only({"source",
             "workspaces",
             "caching_allocator",
             "attention_mask",
             "boundaries_left",
             "boundaries",
             "interleaved_boundaries",
             "attention_copies",
             "zero1",
             "fp8_parameters",
             "fp8_inputs",
             "half_main_gradients",
             "precision_aware",
             "score_buffer",
             "norm_bytes",
             "activation_bytes",
             "score_bytes",
             "score_scratch",
             "query_key_bytes",
             "key_value_bytes",
             "remakes_attention",
             "logit_bytes",
             "gathered_logit_bytes",
             "held_logit_bytes",
             "buffered_logits",
             "logit_chunks",
             "logit_parts_by_width",
             "step",
             "reports",
             "reports_rank",
             "reports_unit",
             "fragmentation",
             "communicators",
             "cast_largest",
             "context",
             "flags"});
  MemoryTraits traits;
  if (const auto workspaces = json.find("workspaces")) traits.workspaces = read_workspaces(*workspaces);
  read_flag(json, "caching_allocator", traits.caching_allocator);
  read_flag(json, "attention_mask", traits.attention_mask);
  read_count(json, "boundaries_left", traits.boundaries_left);
  read_count(json, "boundaries", traits.boundaries);
  read_count(json, "interleaved_boundaries", traits.interleaved_boundaries);
  if (const auto copies = json.find("attention_copies"))
    for (const JsonReader& name : copies->elements()) traits.attention_copies.push_back(name.as_choice(kArchitectures));
  if (const auto zero1 = json.find("zero1")) {
    zero1->only({"whole", "shared"});
    traits.zero1 = {.whole = zero1->at("whole").as_double(0, 64), .shared = zero1->at("shared").as_double(0, 64)};
  }
  read_flag(json, "fp8_parameters", traits.fp8_parameters);
  read_flag(json, "fp8_inputs", traits.fp8_inputs);
  read_flag(json, "half_main_gradients", traits.optimizer.half_main_gradients);
  read_flag(json, "precision_aware", traits.optimizer.precision_aware);
  read_number(json, "score_buffer", 64, traits.scores.buffer);
  read_number(json, "norm_bytes", 64, traits.norm_bytes);
  read_number(json, "activation_bytes", 64, traits.activation_bytes);
  read_number(json, "score_bytes", 64, traits.scores.kept);
  read_number(json, "score_scratch", 64, traits.scores.scratch);
  read_number(json, "query_key_bytes", 64, traits.projections.query_key);
  read_number(json, "key_value_bytes", 64, traits.projections.key_value);
  read_flag(json, "remakes_attention", traits.remakes_attention);
  read_number(json, "logit_bytes", 64, traits.logits.bytes);
  read_number(json, "gathered_logit_bytes", 64, traits.logits.gathered_bytes);
  if (const auto flag = json.find("logit_chunks")) traits.logits.chunks = flag->as_string();
  read_flag(json, "logit_parts_by_width", traits.logits.parts_by_width);
  read_number(json, "held_logit_bytes", 64, traits.logits.held_bytes);
  read_count(json, "buffered_logits", traits.logits.buffered);
  if (const auto reports = json.find("reports"))
    traits.reports.reserved = reports->as_choice({"allocated", "reserved"}) == "reserved";
  if (const auto step = json.find("step")) traits.step = read_step_memory(*step);
  if (const auto rank = json.find("reports_rank")) traits.reports.first_rank = rank->as_choice({"largest", "first"}) == "first";
  if (const auto unit = json.find("reports_unit")) traits.reports.decimal = unit->as_choice({"GiB", "GB"}) == "GB";
  if (const auto share = json.find("fragmentation")) traits.fragmentation = share->as_double(1, 4);
  if (const auto groups = json.find("communicators"))
    for (const JsonReader& group : groups->elements())
      traits.communicators.push_back(group.as_choice({"world", "dp", "tp", "pp", "model", "tied"}));
  read_number(json, "cast_largest", 64, traits.cast_largest);
  if (const auto context = json.find("context")) traits.context = context->as_bytes();
  if (const auto flags = json.find("flags"))
    for (const auto& [flag, change] : flags->members()) traits.flags.push_back(read_flag_change(flag, change));
  return traits;
}

MemoryTraits with_flags(MemoryTraits traits, const std::string& flags) {
  const std::string words = flags + " ";  // so that a flag ends with a space, wherever it is
  for (const MemoryFlag& change : traits.flags) {
    if (words.find("--" + change.flag + " ") == std::string::npos) continue;
    for (const auto& [library, sizes] : change.workspaces) traits.workspaces[library] = sizes;
    if (change.score_buffer) traits.scores.buffer = *change.score_buffer;
    if (change.score_bytes) traits.scores.kept = *change.score_bytes;
    if (change.logit_bytes) traits.logits.bytes = *change.logit_bytes;
    if (change.query_key_bytes) traits.projections.query_key = *change.query_key_bytes;
    if (change.deferred_heads) traits.logits.deferred_heads = *change.deferred_heads;
    if (change.fp8_parameters) traits.fp8_parameters = *change.fp8_parameters;
    if (change.precision_aware) traits.optimizer.precision_aware = *change.precision_aware;
  }
  traits.flags.clear();
  if (!traits.logits.chunks.empty()) {
    const std::string flag = "--" + traits.logits.chunks + " ";
    if (const std::size_t at = flags.find(flag); at != std::string::npos)
      traits.logits.parts = std::max(1, std::atoi(flags.c_str() + at + flag.size()));
  }
  return traits;
}

}  // namespace foreshard
