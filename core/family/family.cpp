#include "core/model/family.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/family/family_config.h"
#include "core/model/model_files.h"

namespace foreshard {

static const std::vector<ModelFamily>& families() {
  static const std::vector<ModelFamily> table = {gpt2_family(),   llama_family(),   gpt_neox_family(), bert_family(),
                                                 qwen3_family(),  mixtral_family(), deepseek_family(), gpt_oss_family(),
                                                 llama4_family(), gemma_family(),   glm4_moe_family(), olmo_family(),
                                                 phi3_family(),   granite_family(), minimax_family()};
  return table;
}

static bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const std::vector<std::string>& hugging_face_families() {
  static const std::vector<std::string> types = [] {
    std::vector<std::string> all;
    for (const ModelFamily& family : families())
      for (const Names* names : {&family.types, &family.wrappers}) all.insert(all.end(), names->begin(), names->end());
    return all;
  }();
  return types;
}

Transformer parse_hugging_face(const JsonReader& json, const std::string& type) {
  const auto family = std::find_if(families().begin(), families().end(), [&](const ModelFamily& one) {
    return contains(one.types, type) || contains(one.wrappers, type);
  });
  FS_ASSERT(family != families().end());
  const bool wrapped = contains(family->wrappers, type);
  const JsonReader text = wrapped ? json.at("text_config") : json;
  if (wrapped && !text.is_object()) text.fail("an object: the configuration of the text model");
  const std::string inner = wrapped && text.has("model_type") ? text.at("model_type").as_choice(family->types)
                            : wrapped                         ? family->types.back()
                                                              : type;
  const FamilyConfig config(text, *family, inner);
  config.refuse_unsupported();
  return family->read(config);
}

// Published checkpoints of 2025 and 2026: docs/model-families.md.
std::string missing_for(const std::string& type) {
  static constexpr std::array<std::pair<const char*, const char*>, 13> missing = {{
      {"deepseek_v32", "an indexer that picks the keys of each query (index_topk)"},
      {"glm_moe_dsa", "an indexer that picks the keys of each query (index_topk)"},
      {"deepseek_v4", "compressed keys, hash-routed layers and several residual streams (compress_ratios, hc_mult)"},
      {"qwen3_next", "gated delta attention and a gate on the attention's output (layer_types, attn_output_gate)"},
      {"qwen3_5_moe", "gated delta attention and a gate on the attention's output (layer_types, attn_output_gate)"},
      {"kimi_linear", "delta attention and experts in a latent space (linear_attn_config, routed_expert_hidden_size)"},
      {"nemotron_h", "Mamba-2 blocks and experts in a latent space (layers_block_type, moe_latent_size)"},
      {"minimax", "linear attention (attn_type_list)"},
      {"minimax_m3", "sparse attention (sparse_attention_config)"},
      {"gemma4", "experts beside a dense MLP and keys used as values (enable_moe_block, attention_k_eq_v)"},
      {"mistral4", "a block that differs from all families here"},
      {"hy_v3", "a block that differs from all families here"},
      {"granitemoeshared", "shared experts beside Granite's (shared_intermediate_size)"},
  }};
  for (const auto& [name, what] : missing)
    if (type == name) return what;
  return "";
}

std::string key_of(const JsonReader& json, const std::string& field) {
  static const std::vector<std::pair<std::string, Names>> keys = {
      {"experts.count", {"num_experts", "num_local_experts", "n_routed_experts"}},
      {"experts.chosen", {"num_experts_per_tok", "experts_per_token"}},
      {"experts.groups", {"n_group"}},
      {"experts.chosen_groups", {"topk_group"}},
      {"experts.layers", {"moe_layers", "interleave_moe_layer_step", "decoder_sparse_step", "first_k_dense_replace"}},
      {"attention.latent.rotated_dim", {"qk_rope_head_dim"}},
      {"attention.rotated_dim", {"rotary_dim", "partial_rotary_factor"}}};
  const auto text = json.find("text_config");
  for (const auto& [ours, names] : keys)
    for (const std::string& name : names) {
      if (ours != field) continue;
      if (json.has(name)) return name;
      if (text && text->is_object() && text->has(name)) return text->path() + "." + name;
    }
  return field;
}

std::vector<std::string> hugging_face_keys() {
  std::vector<std::string> keys = common_family_keys();
  for (const ModelFamily& family : families()) {
    std::vector<std::string> all = family.keys;
    for (const Names* names :
         {&family.sizes.layers, &family.sizes.hidden, &family.sizes.ffn, &family.sizes.heads, &family.sizes.positions})
      all.insert(all.end(), names->begin(), names->end());
    for (const std::string& key : all)
      if (!contains(keys, key)) keys.push_back(key);
  }
  return keys;
}

std::vector<std::string> hugging_face_synonyms(const std::string& key) {
  std::vector<std::string> all;
  for (const auto names : {&SizeKeys::layers, &SizeKeys::hidden, &SizeKeys::ffn, &SizeKeys::heads, &SizeKeys::positions}) {
    std::vector<std::string> group;
    for (const ModelFamily& family : families()) {
      const Names& own = family.sizes.*names;
      for (const std::string& name : own)
        if (!contains(group, name)) group.push_back(name);
    }
    if (contains(group, key)) all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace foreshard
