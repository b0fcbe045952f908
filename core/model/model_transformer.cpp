// "foreshard-transformer": every field of Transformer under its own name.
#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/count_text.h"
#include "core/base/error.h"
#include "core/model/model_files.h"

namespace foreshard {

namespace {

constexpr std::array<std::pair<const char*, NormKind>, 2> norms = {
    {{"layer_norm", NormKind::LayerNorm}, {"rms_norm", NormKind::RmsNorm}}};
constexpr std::array<std::pair<const char*, ActivationKind>, 5> activations = {
    {{"gelu", ActivationKind::Gelu},
     {"relu", ActivationKind::Relu},
     {"swiglu", ActivationKind::SwiGlu},
     {"geglu", ActivationKind::GeGlu},
     {"clamped_swiglu", ActivationKind::ClampedSwiGlu}}};
constexpr std::array<std::pair<const char*, PositionKind>, 3> positions = {
    {{"learned", PositionKind::Learned}, {"rope", PositionKind::Rope}, {"none", PositionKind::None}}};

struct Flag {
  const char* name;
  bool Transformer::*member;
};
constexpr std::array<Flag, 11> flags = {{{"causal", &Transformer::causal},
                                         {"qkv_bias", &Transformer::qkv_bias},
                                         {"projection_bias", &Transformer::projection_bias},
                                         {"mlp_bias", &Transformer::mlp_bias},
                                         {"tied_embeddings", &Transformer::tied_embeddings},
                                         {"post_norm", &Transformer::post_norm},
                                         {"embedding_norm", &Transformer::embedding_norm},
                                         {"final_norm", &Transformer::final_norm},
                                         {"pooler", &Transformer::pooler},
                                         {"mlm_head", &Transformer::mlm_head},
                                         {"lm_head_bias", &Transformer::lm_head_bias}}};

template <class Words>
auto choice(const JsonReader& json, const Words& words) {
  std::vector<std::string> names;
  for (const auto& [name, kind] : words) names.emplace_back(name);
  const std::string word = json.as_choice(names);
  return std::find_if(words.begin(), words.end(), [&](const auto& w) { return word == w.first; })->second;
}

template <class Words, class Kind>
const char* word(const Words& words, Kind kind) {
  return std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.second == kind; })->first;
}

}  // namespace

Transformer parse_transformer(const JsonReader& json) {
  std::vector<std::string> keys = {"model_type", "name",          "source",      "layers",   "hidden",    "ffn_hidden",
                                   "heads",      "kv_heads",      "head_dim",    "vocab",    "norm",      "activation",
                                   "positions",  "max_positions", "token_types", "norm_eps", "rope_theta"};
  for (const Flag& flag : flags) keys.emplace_back(flag.name);
  for (const std::string& key : transformer_settings_keys()) keys.push_back(key);
  json.only(keys);
  const auto size_or = [&](const char* key, std::int64_t otherwise, std::int64_t least = 1) {
    const auto value = json.find(key);
    return value ? value->as_int(least, largest_size) : otherwise;
  };
  Transformer t;
  t.layers = static_cast<int>(json.at("layers").as_int(1, most_layers));
  t.hidden = json.at("hidden").as_int(1, largest_size);
  t.ffn_hidden = size_or("ffn_hidden", 4 * t.hidden);
  t.heads = static_cast<int>(json.at("heads").as_int(1, 1'000'000));
  t.kv_heads = static_cast<int>(size_or("kv_heads", t.heads));
  if (t.kv_heads > t.heads || t.heads % t.kv_heads != 0)
    json.at("kv_heads").fail("a divisor of the " + counted(t.heads, "head"));
  t.head_dim = size_or("head_dim", t.hidden / t.heads);
  if (!json.has("head_dim") && t.hidden % t.heads != 0)
    json.at("heads").fail("a divisor of the hidden size " + std::to_string(t.hidden));
  t.vocab = json.at("vocab").as_int(1, largest_size);
  t.max_positions = json.at("max_positions").as_int(1, largest_size);
  t.token_types = size_or("token_types", 0, 0);
  if (const auto value = json.find("norm")) t.norm = choice(*value, norms);
  if (const auto value = json.find("activation")) t.activation = choice(*value, activations);
  if (const auto value = json.find("positions")) t.positions = choice(*value, positions);
  for (const Flag& flag : flags)
    if (const auto value = json.find(flag.name)) t.*flag.member = value->as_bool();
  if (const auto value = json.find("norm_eps")) t.block.norm_eps = value->as_double(0, 1);
  if (const auto value = json.find("rope_theta")) t.attention.rope_theta = value->as_double(1e-30, 1e15);
  parse_transformer_settings(json, t);
  for (const char* head : {"pooler", "mlm_head"})
    if (const auto value = json.find(head); value && value->as_bool() && t.causal)
      value->fail("false: only an encoder (causal false) has this head");
  return t;
}

void write_transformer(JsonWriter& json, const Transformer& t) {
  json.field("layers", t.layers).field("hidden", t.hidden).field("ffn_hidden", t.ffn_hidden).field("heads", t.heads);
  json.field("kv_heads", t.kv_heads).field("head_dim", t.head_dim).field("vocab", t.vocab);
  json.field("max_positions", t.max_positions).field("token_types", t.token_types);
  json.field("norm", word(norms, t.norm)).field("activation", word(activations, t.activation));
  json.field("positions", word(positions, t.positions));
  for (const Flag& flag : flags) json.field(flag.name, t.*flag.member);
  json.field("norm_eps", t.block.norm_eps).field("rope_theta", t.attention.rope_theta);
  write_transformer_settings(json, t);
}

}  // namespace foreshard
