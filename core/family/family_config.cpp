// config.json keys that all families share, and the readers of families (core/family/family_config.h).
#include "core/family/family_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include "core/base/count_text.h"
#include "core/base/error.h"
#include "core/model/model_files.h"

namespace foreshard {

namespace {

// Keys that change parameters or operators. Off when null, false, 0 or empty.
constexpr std::array refused_keys = {"num_local_experts",
                                     "num_experts",
                                     "num_experts_per_tok",
                                     "n_routed_experts",
                                     "n_shared_experts",
                                     "moe_num_experts",
                                     "moe_intermediate_size",
                                     "shared_expert_intermediate_size",
                                     "q_lora_rank",
                                     "kv_lora_rank",
                                     "qk_rope_head_dim",
                                     "v_head_dim",
                                     "parallel_attn",
                                     "parallel_attention",
                                     "multi_query",
                                     "alibi",
                                     "use_alibi",
                                     "qk_norm",
                                     "use_qk_norm",
                                     "qk_layernorm",
                                     "add_cross_attention",
                                     "is_encoder_decoder",
                                     "cross_attention_hidden_size",
                                     "embedding_size",
                                     "word_embed_proj_dim",
                                     "attn_logit_softcapping",
                                     "attention_chunk_size",
                                     "num_nextn_predict_layers",
                                     "pruned_heads",
                                     "clip_qkv",
                                     "attn_output_gate",
                                     "index_topk",
                                     "linear_attn_config",
                                     "sparse_attention_config",
                                     "moe_latent_size",
                                     "compress_ratios",
                                     "enable_moe_block",
                                     "final_logit_softcapping",
                                     "moe_layers",
                                     "text_config",
                                     "vision_config",
                                     "audio_config"};

bool switched_off(const JsonReader& value) {
  if (value.is_null()) return true;
  if (value.is_bool()) return !value.as_bool();
  if (value.is_number()) return value.as_double() == 0;
  if (value.is_array()) return value.size() == 0;
  return value.is_object() && value.members().empty();
}

std::string plain(std::string_view key) {  // "numKeyValueHead" and "num_key_value_heads" become equal
  std::string out;
  for (const char c : key)
    if (c != '_' && c != '-') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (out.size() > 1 && out.back() == 's') out.pop_back();
  return out;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

constexpr double kLargestTheta = 1e15;

bool has_key(const Names& names, const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); }

}  // namespace

const Names& common_family_keys() {
  static const Names keys = {"vocab_size",          "num_key_value_heads", "head_dim",       "hidden_act",
                             "activation_function", "rms_norm_eps",        "layer_norm_eps", "layer_norm_epsilon",
                             "rope_theta",          "rotary_emb_base",     "attention_bias", "mlp_bias",
                             "tie_word_embeddings", "type_vocab_size",     "sliding_window", "use_sliding_window"};
  return keys;
}

std::optional<JsonReader> FamilyConfig::find(const std::string& key) const {
  auto value = json_.find(key);
  return value && value->is_null() ? std::nullopt : value;
}

std::optional<JsonReader> FamilyConfig::find(const Names& names) const {
  std::optional<JsonReader> chosen;
  for (const std::string& name : names) {
    const auto value = find(name);
    if (!value) continue;
    if (chosen && chosen->found() != value->found()) value->fail("the same as " + chosen->path() + ", " + chosen->found());
    if (!chosen) chosen = value;
  }
  return chosen;
}

std::int64_t FamilyConfig::size(const Names& names, std::int64_t most) const {
  const auto value = find(names);
  return value ? value->as_int(1, most) : json_.at(names.front()).as_int(1, most);
}

std::int64_t FamilyConfig::size_or(const Names& names, std::int64_t otherwise, std::int64_t least) const {
  const auto value = find(names);
  return value ? value->as_int(least, largest_size) : otherwise;
}

bool FamilyConfig::flag(const std::string& key, bool otherwise) const {
  const auto value = find(key);
  return value ? value->as_bool() : otherwise;
}

double FamilyConfig::number(const std::string& key, double otherwise, double most, double least) const {
  const auto value = find(key);
  return value ? value->as_double(least, most) : otherwise;
}

Transformer FamilyConfig::sizes(const UsualSizes& usual) const {
  const auto either = [&](const Names& names, std::int64_t otherwise, std::int64_t most = largest_size) {
    return otherwise > 0 && !find(names) ? otherwise : size(names, most);
  };
  Transformer t;
  t.layers = static_cast<int>(size(family_.sizes.layers, most_layers));
  t.hidden = size(family_.sizes.hidden);
  t.heads = static_cast<int>(either(family_.sizes.heads, usual.heads, 1'000'000));
  t.kv_heads = static_cast<int>(size_or({"num_key_value_heads"}, usual.kv_heads > 0 ? usual.kv_heads : t.heads));
  if (t.kv_heads > t.heads || t.heads % t.kv_heads != 0) {
    const std::string expected = "a divisor of the " + counted(t.heads, "head");
    if (const auto said = find("num_key_value_heads")) said->fail(expected);
    throw Error(json_.file(), "num_key_value_heads", std::to_string(t.kv_heads) + ", as nothing is said", expected);
  }
  t.head_dim = size_or({"head_dim"}, usual.head_dim);
  if (t.head_dim == 0 && t.hidden % t.heads != 0)
    throw Error(json_.file(), family_.sizes.heads.front(), std::to_string(t.heads),
                "a divisor of the hidden size " + std::to_string(t.hidden));
  if (t.head_dim == 0) t.head_dim = t.hidden / t.heads;
  t.max_positions = either(family_.sizes.positions, usual.positions);
  t.vocab = either({"vocab_size"}, usual.vocab);
  return t;
}

Transformer FamilyConfig::decoder(const UsualSizes& usual, bool tied) const {
  need_language_model();
  Transformer t = sizes(usual);
  t.norm = NormKind::RmsNorm;
  t.block.norm_eps = number("rms_norm_eps", 1e-6, 1);
  t.positions = PositionKind::Rope;
  t.attention.rope_theta = rope_theta("rope_theta");
  t.activation = ActivationKind::SwiGlu;
  t.qkv_bias = t.projection_bias = t.mlp_bias = false;
  t.tied_embeddings = flag("tie_word_embeddings", tied);
  return t;
}

ActivationKind FamilyConfig::activation(const std::string& key, const char* otherwise, bool gated) const {
  const auto value = find(key);
  const std::string word = value ? value->as_string() : otherwise;
  if (gated) {
    if (word == "silu" || word == "swish") return ActivationKind::SwiGlu;
    value->fail("\"silu\": the gated activation must be SwiGLU");
  }
  // The approximations of GELU cost the same.
  for (const char* gelu : {"gelu", "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh", "quick_gelu"})
    if (word == gelu) return ActivationKind::Gelu;
  if (word == "relu") return ActivationKind::Relu;
  value->fail("\"gelu\", one of its approximations (\"gelu_new\", \"gelu_fast\", ...), or \"relu\"");
}

// transformers 5 has rotary settings in "rope_parameters", of all layers or one object per kind of layer.
double FamilyConfig::rope_theta(const std::string& key, const std::string& kind) const {
  if (const auto nested = find("rope_parameters"); nested && nested->is_object()) {
    const auto of_kind = nested->find(kind);
    const JsonReader& from = of_kind && of_kind->is_object() ? *of_kind : *nested;
    if (from.has("rope_theta")) return from.at("rope_theta").as_double(1e-30, kLargestTheta);
  }
  return number(key, 10000.0, kLargestTheta);
}

double FamilyConfig::rope_scale() const {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto scaling = find(key);
    if (!scaling || !scaling->is_object()) continue;
    const auto type = scaling->find(scaling->has("rope_type") ? "rope_type" : "type");
    if (!type || !type->is_string() || type->as_string() != "yarn") continue;
    if (const auto said = scaling->find("attention_factor"); said && said->is_number()) return said->as_double(1e-6, 1e6);
    const double factor = scaling->at("factor").as_double(1e-6, 1e6);
    return factor > 1 ? 0.1 * std::log(factor) + 1 : 1.0;
  }
  return 1;
}

std::int64_t FamilyConfig::rotated_dim(std::int64_t head_dim, double usual_share) const {
  std::optional<JsonReader> said = find("partial_rotary_factor");
  if (const auto nested = find("rope_parameters"); nested && nested->is_object() && nested->has("partial_rotary_factor"))
    said = nested->at("partial_rotary_factor");
  const double share = said ? said->as_double(1e-6, 1) : usual_share;
  const auto turned = static_cast<std::int64_t>(static_cast<double>(head_dim) * share);
  if (said && (turned < 2 || turned % 2 != 0))
    said->fail("a share that leaves an even number of the " + std::to_string(head_dim) + " elements of a head");
  return turned == head_dim ? 0 : turned;
}

// A sliding window changes the cost of attention, unless it is as long as the sequence.
void FamilyConfig::refuse_sliding_window(std::int64_t max_positions, bool used_unless_said) const {
  const auto window = find("sliding_window");
  if (!window || !flag("use_sliding_window", used_unless_said)) return;
  if (window->as_int() < max_positions) refuse(*window, "null or at least the " + std::to_string(max_positions) + " positions");
}

std::optional<std::vector<bool>> FamilyConfig::local_layers(int layers, const std::string& local) const {
  const auto kinds = find("layer_types");
  if (!kinds) return std::nullopt;
  if (!kinds->is_array() || kinds->size() != static_cast<std::size_t>(layers))
    kinds->fail("an array with one entry for each of the " + counted(layers, "layer"));
  std::vector<bool> is_local;
  for (const JsonReader& kind : kinds->elements()) is_local.push_back(kind.as_choice({"full_attention", local}) == local);
  return is_local;
}

Experts FamilyConfig::experts(const Names& count, const Names& chosen, const Names& width) const {
  Experts e;
  e.count = size(count);
  e.chosen = size(chosen);
  e.width = size(width);
  if (e.chosen > e.count) find(chosen)->fail("at most the " + counted(static_cast<std::size_t>(e.count), "expert"));
  return e;
}

void FamilyConfig::off(const std::string& key) const {
  if (const auto value = json_.find(key); value && !switched_off(*value)) refuse(*value, "null, false or 0");
}

void FamilyConfig::refuse_unsupported() const {
  for (const char* key : refused_keys)
    if (!has_key(family_.keys, key)) off(key);
  if (!has_key(family_.keys, "layer_types"))
    if (const auto kinds = find("layer_types"))
      for (const JsonReader& kind : kinds->elements())
        if (kind.as_string() != "full_attention") refuse(kind, "\"full_attention\"");
  for (const auto& [name, value] : json_.members()) refuse_misspelling(name, value);
}

std::string FamilyConfig::architecture() const {
  const auto list = find("architectures");
  return list && list->size() > 0 ? list->at(0).as_string() : "";
}

void FamilyConfig::need_language_model() const {
  const std::string name = architecture();
  const bool body = ends_with(name, "Model") && !ends_with(name, "HeadsModel");
  if (!name.empty() && !body && !ends_with(name, "ForCausalLM"))
    refuse(json_.at("architectures").at(0), "a causal language model (\"...ForCausalLM\", \"...LMHeadModel\")");
}

void FamilyConfig::refuse(const JsonReader& value, const std::string& supported) {
  value.fail(supported + ": anything else changes the network in a way that is not supported");
}

Names FamilyConfig::known_keys() const {
  Names known = common_family_keys();
  const SizeKeys& sizes = family_.sizes;
  for (const Names* names : {&sizes.layers, &sizes.hidden, &sizes.ffn, &sizes.heads, &sizes.positions, &family_.keys})
    known.insert(known.end(), names->begin(), names->end());
  return known;
}

// Without this, a misspelt size would be ignored and silently replaced by its default.
void FamilyConfig::refuse_misspelling(const std::string& name, const JsonReader& value) const {
  const Names known = known_keys();
  if (has_key(known, name)) return;
  for (const std::string& key : known)
    if (plain(key) == plain(name))
      throw Error(json_.file(), value.path(), "an unknown key with value " + value.found(), "\"" + key + "\"");
}

}  // namespace foreshard
