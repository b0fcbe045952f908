// One config.json, read by its family. Three kinds of keys: those that the family reads; those that would change the network in
// a way that the family does not read are refused by name unless they are switched off; all others are neutral and ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/family.h"

namespace foreshard {

using Names = std::vector<std::string>;  // of one key: later ones are aliases that its configuration class accepts too

struct SizeKeys {
  Names layers = {"num_hidden_layers"}, hidden = {"hidden_size"}, ffn = {"intermediate_size"}, heads = {"num_attention_heads"};
  Names positions = {"max_position_embeddings"};
};

class FamilyConfig;

struct ModelFamily {
  Names types = {};  // the model_types that it reads
  SizeKeys sizes = {};
  Names keys = {};  // others that it reads, beside those of all families (family_config.cpp)
  Transformer (*read)(const FamilyConfig& config) = nullptr;
  Names wrappers = {};  // model_types of multimodal models with a text model of this family in "text_config"
};

// Sizes where a configuration class has a default and files may leave them out; 0: they must be given.
struct UsualSizes {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, positions = 0;
};

class FamilyConfig {
 public:
  FamilyConfig(const JsonReader& json, const ModelFamily& family, std::string type)
      : json_(json), family_(family), type_(std::move(type)) {}

  const std::string& type() const { return type_; }
  const JsonReader& json() const { return json_; }
  // A value; null counts as missing, as it does in the configuration classes.
  std::optional<JsonReader> find(const std::string& key) const;
  std::optional<JsonReader> find(const Names& names) const;  // all names of a key that are given say the same
  std::int64_t size(const Names& names, std::int64_t most = 1'000'000'000) const;
  std::int64_t size_or(const Names& names, std::int64_t otherwise, std::int64_t least = 1) const;
  bool flag(const std::string& key, bool otherwise) const;
  double number(const std::string& key, double otherwise, double most, double least = 1e-30) const;

  // Layers, widths, heads and vocabulary.
  Transformer sizes(const UsualSizes& usual = {}) const;
  // A decoder of today: RMSNorm before each part, gated MLP, rotary positions, no biases, untied ends unless said.
  Transformer decoder(const UsualSizes& usual = {}, bool tied = false) const;
  ActivationKind activation(const std::string& key, const char* otherwise, bool gated) const;
  double rope_theta(const std::string& key, const std::string& kind = "full_attention") const;
  std::int64_t rotated_dim(std::int64_t head_dim, double usual_share) const;  // of partial_rotary_factor; 0: all
  void refuse_sliding_window(std::int64_t max_positions, bool used_unless_said) const;
  // "layer_types": true where a layer is of the kind `local`, the others are "full_attention".
  std::optional<std::vector<bool>> local_layers(int layers, const std::string& local) const;
  // Routed experts, how many a token chooses, and the width of one; the names of the keys differ.
  Experts experts(const Names& count, const Names& chosen, const Names& width) const;
  void off(const std::string& key) const;  // refused unless it is switched off: of this family alone

  void refuse_unsupported() const;
  std::string architecture() const;  // the first; empty: not said
  void need_language_model() const;
  [[noreturn]] static void refuse(const JsonReader& value, const std::string& supported);

 private:
  void refuse_misspelling(const std::string& name, const JsonReader& value) const;
  Names known_keys() const;

  const JsonReader& json_;
  const ModelFamily& family_;
  std::string type_;
};

const Names& common_family_keys();  // read or understood by every family

// The families, one file each; the table is in family.cpp.
ModelFamily gpt2_family(), llama_family(), gpt_neox_family(), bert_family(), qwen3_family(), mixtral_family(),
    deepseek_family();
ModelFamily gpt_oss_family(), llama4_family(), gemma_family(), glm4_moe_family(), olmo_family(), phi3_family(),
    granite_family();
ModelFamily minimax_family();

}  // namespace foreshard
