// How a family of models reads a Hugging Face config.json. A key of the file is one of three kinds: the family reads it; or it would change
// the network in a way that the family does not support, and it is refused by name unless it is switched off (null, false, 0); or it does
// not change the network and is ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/family.h"

namespace foreshard {

// Names of one key: the first is its own, the others are aliases that the configuration class accepts too.
using Names = std::vector<std::string>;

// The keys of a family for sizes that every transformer has.
struct SizeKeys {
  Names layers = {"num_hidden_layers"}, hidden = {"hidden_size"}, ffn = {"intermediate_size"}, heads = {"num_attention_heads"};
  Names positions = {"max_position_embeddings"};
};

class FamilyConfig;

struct ModelFamily {
  Names types = {};  // the values of "model_type" that the family reads
  SizeKeys sizes = {};
  Names keys = {};  // other keys that it reads, besides common_family_keys()
  Transformer (*read)(const FamilyConfig& config) = nullptr;
  Names wrappers = {};  // model_types of multimodal models with a text model of this family in "text_config"
};

// Defaults of a configuration class for sizes that files may leave out; 0: no default.
struct UsualSizes {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, positions = 0;
};

// One config.json with the family that reads it; both must outlive this. All functions throw Error (file, key, value found, what was
// expected) for a value that they cannot accept.
class FamilyConfig {
 public:
  FamilyConfig(const JsonReader& json, const ModelFamily& family, std::string type)
      : json_(json), family_(family), type_(std::move(type)) {}

  const std::string& type() const { return type_; }
  const JsonReader& json() const { return json_; }
  // The value of a key. null counts as missing, as in the configuration classes.
  std::optional<JsonReader> find(const std::string& key) const;
  // By any name of the key; throws if two names have different values.
  std::optional<JsonReader> find(const Names& names) const;
  // A required integer from 1 to `most`; an optional one, at least `least`; optional others.
  std::int64_t size(const Names& names, std::int64_t most = 1'000'000'000) const;
  std::int64_t size_or(const Names& names, std::int64_t otherwise, std::int64_t least = 1) const;
  bool flag(const std::string& key, bool otherwise) const;
  double number(const std::string& key, double otherwise, double most, double least = 1e-30) const;

  // A Transformer with layers, hidden size, heads, head size, positions and vocabulary set. It does not set ffn_hidden.
  Transformer sizes(const UsualSizes& usual = {}) const;
  // `sizes` in a decoder with RMSNorm, a SwiGLU MLP, rotary positions and no biases. Embedding and head are tied if the file says so;
  // `tied` is the default.
  Transformer decoder(const UsualSizes& usual = {}, bool tied = false) const;
  // The activation that `key` names, "otherwise" without it. `gated`: the MLP is gated, so only silu is accepted.
  ActivationKind activation(const std::string& key, const char* otherwise, bool gated) const;
  double rope_theta(const std::string& key, const std::string& kind = "full_attention") const;
  // What multiplies rotated queries and keys: attention_factor of a rotary scaling of type yarn, or else 0.1 ln(factor) + 1; 1 without one.
  double rope_scale() const;
  std::int64_t rotated_dim(std::int64_t head_dim, double usual_share) const;  // by partial_rotary_factor; 0: all of head_dim
  // Throws for a sliding window shorter than `max_positions`. `used_unless_said`: default of "use_sliding_window".
  void refuse_sliding_window(std::int64_t max_positions, bool used_unless_said) const;
  // [layer] of "layer_types": true for the word `local`, false for "full_attention". Empty without the key.
  std::optional<std::vector<bool>> local_layers(int layers, const std::string& local) const;
  // Experts with `count`, `chosen` and `width` read from these keys; the rest stays at its default.
  Experts experts(const Names& count, const Names& chosen, const Names& width) const;
  void off(const std::string& key) const;  // throws unless the key is missing, null, false or 0

  // Throws for keys that change the network but that the family does not read, and for misspelled keys that it reads.
  void refuse_unsupported() const;
  std::string architecture() const;  // the first of "architectures"; empty: none
  void need_language_model() const;  // throws for another architecture, as a classifier
  // Throws: `supported` is what this key may be.
  [[noreturn]] static void refuse(const JsonReader& value, const std::string& supported);

 private:
  void refuse_misspelling(const std::string& name, const JsonReader& value) const;
  Names known_keys() const;

  const JsonReader& json_;
  const ModelFamily& family_;
  std::string type_;
};

const Names& common_family_keys();  // the keys that every family reads

// The families, one file each; the table is in family.cpp.
ModelFamily gpt2_family(), llama_family(), gpt_neox_family(), bert_family(), qwen3_family(), mixtral_family(),
    deepseek_family();
ModelFamily gpt_oss_family(), llama4_family(), gemma_family(), glm4_moe_family(), olmo_family(), phi3_family(),
    granite_family();
ModelFamily minimax_family();

}  // namespace foreshard
