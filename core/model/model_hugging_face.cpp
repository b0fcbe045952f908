// Hugging Face config.json. Three kinds of keys: those that say the shapes are read; those that would change the
// network in a way that Transformer cannot say are refused by name unless they are switched off; all others are neutral
// and ignored.
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "core/base/count_text.h"
#include "core/base/error.h"
#include "core/model/model_files.h"

namespace foreshard {

namespace {

// Names of the size keys of a family; a second name is an alias that its configuration class accepts too.
struct SizeKeys {
  std::vector<std::string> layers, hidden, ffn, heads, positions;
};
using SizeNames = std::vector<std::string> SizeKeys::*;
constexpr SizeNames size_names[] = {&SizeKeys::layers, &SizeKeys::hidden, &SizeKeys::ffn, &SizeKeys::heads,
                                    &SizeKeys::positions};
const SizeKeys common_keys = {.layers = {"num_hidden_layers"},
                              .hidden = {"hidden_size"},
                              .ffn = {"intermediate_size"},
                              .heads = {"num_attention_heads"},
                              .positions = {"max_position_embeddings"}};
const SizeKeys gpt2_keys = {.layers = {"n_layer", "num_hidden_layers"},
                            .hidden = {"n_embd", "hidden_size"},
                            .ffn = {"n_inner"},
                            .heads = {"n_head", "num_attention_heads"},
                            .positions = {"n_positions", "max_position_embeddings"}};

// Other keys that are read by some family.
constexpr std::array read_keys = {"vocab_size",          "num_key_value_heads", "head_dim",       "hidden_act",
                                  "activation_function", "rms_norm_eps",        "layer_norm_eps", "layer_norm_epsilon",
                                  "rope_theta",          "rotary_emb_base",     "attention_bias", "mlp_bias",
                                  "tie_word_embeddings", "type_vocab_size",     "sliding_window", "use_sliding_window"};

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

class Config {
 public:
  Config(const JsonReader& json, const SizeKeys& keys) : json_(json), keys_(keys) {}

  // A value; null counts as missing, as it does in the configuration classes.
  std::optional<JsonReader> find(const std::string& key) const {
    auto value = json_.find(key);
    return value && value->is_null() ? std::nullopt : value;
  }
  std::int64_t size(const std::vector<std::string>& names, std::int64_t most = largest_size) const {
    std::optional<JsonReader> chosen;
    for (const std::string& name : names) {
      const auto value = find(name);
      if (!value) continue;
      if (chosen && chosen->as_int() != value->as_int()) value->fail("the same as " + chosen->path() + ", " + chosen->found());
      if (!chosen) chosen = value;
    }
    return chosen ? chosen->as_int(1, most) : json_.at(names.front()).as_int(1, most);
  }
  std::int64_t size_or(const std::string& key, std::int64_t otherwise, std::int64_t least = 1) const {
    const auto value = find(key);
    return value ? value->as_int(least, largest_size) : otherwise;
  }
  bool flag(const std::string& key, bool otherwise) const {
    const auto value = find(key);
    return value ? value->as_bool() : otherwise;
  }
  double number(const std::string& key, double otherwise, double most) const {
    const auto value = find(key);
    return value ? value->as_double(1e-30, most) : otherwise;
  }

  // Layers, widths, heads and vocabulary.
  Transformer sizes() const {
    Transformer t;
    t.layers = static_cast<int>(size(keys_.layers, most_layers));
    t.hidden = size(keys_.hidden);
    t.heads = static_cast<int>(size(keys_.heads, 1'000'000));
    t.kv_heads = static_cast<int>(size_or("num_key_value_heads", t.heads));
    if (t.kv_heads > t.heads || t.heads % t.kv_heads != 0)
      json_.at("num_key_value_heads").fail("a divisor of the " + counted(t.heads, "head"));
    t.head_dim = size_or("head_dim", 0);
    if (t.head_dim == 0 && t.hidden % t.heads != 0)
      throw Error(json_.file(), keys_.heads.front(), std::to_string(t.heads),
                  "a divisor of the hidden size " + std::to_string(t.hidden));
    if (t.head_dim == 0) t.head_dim = t.hidden / t.heads;
    t.max_positions = size(keys_.positions);
    t.vocab = size({"vocab_size"});
    return t;
  }

  ActivationKind activation(const std::string& key, const char* otherwise, bool gated) const {
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

  double rope_theta(const std::string& key) const {
    constexpr double most = 1e15;
    if (const auto nested = find("rope_parameters"); nested && nested->is_object() && nested->has("rope_theta"))
      return nested->at("rope_theta").as_double(1e-30, most);
    return number(key, 10000.0, most);
  }

  void refuse_unsupported() const {
    for (const char* key : refused_keys)
      if (const auto value = json_.find(key); value && !switched_off(*value)) refuse(*value, "null, false or 0");
    if (const auto kinds = find("layer_types"))
      for (const JsonReader& kind : kinds->elements())
        if (kind.as_string() != "full_attention") refuse(kind, "\"full_attention\"");
    for (const auto& [name, value] : json_.members()) refuse_misspelling(name, value);
  }

  // Sliding windows change the cost of attention; one as long as the sequence does not.
  void refuse_sliding_window(std::int64_t max_positions, bool used_unless_said) const {
    const auto window = find("sliding_window");
    if (!window || !flag("use_sliding_window", used_unless_said)) return;
    if (window->as_int() < max_positions)
      refuse(*window, "null or at least the " + std::to_string(max_positions) + " positions");
  }

  std::string architecture() const {
    const auto list = find("architectures");
    return list && list->size() > 0 ? list->at(0).as_string() : "";
  }
  void need_language_model() const {
    const std::string name = architecture();
    const bool body = ends_with(name, "Model") && !ends_with(name, "HeadsModel");
    if (!name.empty() && !body && !ends_with(name, "ForCausalLM"))
      refuse(json_.at("architectures").at(0), "a causal language model (\"...ForCausalLM\", \"...LMHeadModel\")");
  }

  [[noreturn]] static void refuse(const JsonReader& value, const std::string& supported) {
    value.fail(supported + ": anything else changes the network in a way that is not supported");
  }

 private:
  // A misspelt size would otherwise be taken for a neutral key and silently replaced by its default.
  void refuse_misspelling(const std::string& name, const JsonReader& value) const {
    std::vector<std::string> known(read_keys.begin(), read_keys.end());
    for (const SizeNames names : size_names) known.insert(known.end(), (keys_.*names).begin(), (keys_.*names).end());
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    for (const std::string& key : known)
      if (plain(key) == plain(name))
        throw Error(json_.file(), value.path(), "an unknown key with value " + value.found(), "\"" + key + "\"");
  }

  const JsonReader& json_;
  const SizeKeys& keys_;
};

Transformer parse_gpt2(const JsonReader& json) {
  const Config config(json, gpt2_keys);
  config.refuse_unsupported();
  config.need_language_model();
  Transformer t = config.sizes();
  t.ffn_hidden = config.size_or("n_inner", 4 * t.hidden);
  t.activation = config.activation("activation_function", "gelu_new", false);
  t.tied_embeddings = config.flag("tie_word_embeddings", true);
  t.norm_eps = config.number("layer_norm_epsilon", 1e-5, 1);
  return t;
}

// llama, mistral and qwen2 differ in their biases and in the sliding window.
Transformer parse_llama(const JsonReader& json, const std::string& family) {
  const Config config(json, common_keys);
  config.refuse_unsupported();
  config.need_language_model();
  Transformer t = config.sizes();
  t.ffn_hidden = config.size(common_keys.ffn);
  t.activation = config.activation("hidden_act", "silu", true);
  t.norm = NormKind::RmsNorm;
  t.norm_eps = config.number("rms_norm_eps", 1e-6, 1);
  t.positions = PositionKind::Rope;
  t.rope_theta = config.rope_theta("rope_theta");
  t.qkv_bias = family == "qwen2" || (family == "llama" && config.flag("attention_bias", false));
  t.projection_bias = family == "llama" && t.qkv_bias;
  t.mlp_bias = family == "llama" && config.flag("mlp_bias", false);
  t.tied_embeddings = config.flag("tie_word_embeddings", false);
  config.refuse_sliding_window(t.max_positions, family != "qwen2");
  return t;
}

Transformer parse_gpt_neox(const JsonReader& json) {
  const Config config(json, common_keys);
  config.refuse_unsupported();
  config.need_language_model();
  if (config.flag("use_parallel_residual", true))
    throw Error(json.file(), "use_parallel_residual", "true (the default)",
                "false: attention and MLP side by side are not supported");
  Transformer t = config.sizes();
  t.ffn_hidden = config.size(common_keys.ffn);
  t.activation = config.activation("hidden_act", "gelu", false);
  t.norm_eps = config.number("layer_norm_eps", 1e-5, 1);
  t.positions = PositionKind::Rope;
  t.rope_theta = config.rope_theta("rotary_emb_base");
  t.qkv_bias = t.projection_bias = config.flag("attention_bias", true);
  t.tied_embeddings = config.flag("tie_word_embeddings", false);
  return t;
}

// The heads follow from the architecture: BertForPreTraining has both, and so has a body alone (BertModel), which is
// trained with them; BertForMaskedLM has no pooler.
Transformer parse_bert(const JsonReader& json) {
  const Config config(json, common_keys);
  config.refuse_unsupported();
  const std::string architecture = config.architecture();
  const std::vector<std::string> known = {"", "BertModel", "BertForPreTraining", "BertForMaskedLM"};
  if (std::find(known.begin(), known.end(), architecture) == known.end())
    Config::refuse(json.at("architectures").at(0), "\"BertForPreTraining\", \"BertForMaskedLM\" or \"BertModel\"");
  if (const auto decoder = config.find("is_decoder"); decoder && decoder->as_bool()) Config::refuse(*decoder, "false");
  if (const auto kind = config.find("position_embedding_type"); kind && kind->as_string() != "absolute")
    Config::refuse(*kind, "\"absolute\"");
  Transformer t = config.sizes();
  t.causal = false;
  t.ffn_hidden = config.size(common_keys.ffn);
  t.token_types = config.size_or("type_vocab_size", 2, 0);
  t.activation = config.activation("hidden_act", "gelu", false);
  t.norm_eps = config.number("layer_norm_eps", 1e-12, 1);
  t.tied_embeddings = config.flag("tie_word_embeddings", true);
  t.post_norm = t.embedding_norm = true;
  t.final_norm = false;
  t.mlm_head = t.lm_head_bias = true;
  t.pooler = architecture != "BertForMaskedLM";
  return t;
}

}  // namespace

const std::vector<std::string>& hugging_face_families() {
  static const std::vector<std::string> families = {"gpt2", "llama", "mistral", "qwen2", "gpt_neox", "bert"};
  return families;
}

std::vector<std::string> hugging_face_keys() {
  std::vector<std::string> keys(read_keys.begin(), read_keys.end());
  for (const SizeNames names : size_names)
    for (const SizeKeys* family : {&common_keys, &gpt2_keys})
      for (const std::string& key : family->*names)
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  return keys;
}

std::vector<std::string> hugging_face_synonyms(const std::string& key) {
  std::vector<std::string> all;
  for (const SizeNames names : size_names) {
    std::vector<std::string> group = common_keys.*names;
    group.insert(group.end(), (gpt2_keys.*names).begin(), (gpt2_keys.*names).end());
    if (std::find(group.begin(), group.end(), key) != group.end()) all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

Transformer parse_hugging_face(const JsonReader& json, const std::string& family) {
  if (family == "gpt2") return parse_gpt2(json);
  if (family == "gpt_neox") return parse_gpt_neox(json);
  if (family == "bert") return parse_bert(json);
  return parse_llama(json, family);
}

}  // namespace foreshard
