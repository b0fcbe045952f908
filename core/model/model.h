// Model: the shape of a network, as a Hugging Face config.json or a list of layers states it; nothing about how it is trained.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/model/transformer_settings.h"

namespace foreshard {

enum class NormKind : std::uint8_t { LayerNorm, RmsNorm };
// Gated kinds multiply two linear layers of the same input, gate and up: SwiGlu is SiLU(gate) up, GeGlu is GELU(gate) up. ClampedSwiGlu
// (gpt-oss) is (u + 1) g sigmoid(1.702 g) with g = min(gate, 7) and u = up clamped to [-7, 7].
enum class ActivationKind : std::uint8_t { Gelu, Relu, SwiGlu, GeGlu, ClampedSwiGlu };
constexpr bool is_gated(ActivationKind kind) { return kind != ActivationKind::Gelu && kind != ActivationKind::Relu; }
enum class PositionKind : std::uint8_t { Learned, Rope, None };

// A decoder (GPT, Llama) or encoder (BERT) transformer. All sizes are in elements.
struct Transformer {
  bool causal = true;  // true: decoder, false: encoder
  int layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn_hidden = 0;
  int heads = 0;
  int kv_heads = 0;  // equal to `heads` without grouped-query attention
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;  // not padded
  std::int64_t max_positions = 0;
  std::int64_t token_types = 0;  // BERT segment embeddings; 0: none
  NormKind norm = NormKind::LayerNorm;
  ActivationKind activation = ActivationKind::Gelu;
  PositionKind positions = PositionKind::Learned;
  bool qkv_bias = true;
  bool projection_bias = true;  // output projection of the attention
  bool mlp_bias = true;
  bool tied_embeddings = true;
  bool post_norm = false;       // norm after the residual sum (BERT)
  bool embedding_norm = false;  // norm after the embeddings (BERT)
  bool final_norm = true;
  bool pooler = false;        // BERT: linear layer and tanh on the first token, and the next-sentence head
  bool mlm_head = false;      // BERT: linear layer, activation and norm before the vocabulary projection
  bool lm_head_bias = false;  // bias of the vocabulary projection
  AttentionSettings attention = {};
  BlockSettings block = {};
  bool operator==(const Transformer&) const = default;
};

enum class LayerOp : std::uint8_t { Conv2d, BatchNorm, Relu, MaxPool, AvgPool, Add, Flatten, Linear };

// One entry of a layer list. Spatial sizes follow from the input; unused fields stay 0.
struct LayerSpec {
  std::string name = {};
  LayerOp op = LayerOp::Linear;
  std::vector<std::string> inputs = {};  // names of earlier entries, or "input" for the sample; empty: the previous entry
  std::int64_t features = 0;             // Conv2d, Linear: output channels or features
  int kernel = 0;                        // pixels along height and along width, as stride and padding
  int stride = 1;
  int padding = 0;
  bool bias = false;
  bool operator==(const LayerSpec&) const = default;
};

// A CNN or multilayer perceptron: a DAG of layers. All samples have one shape.
struct LayerList {
  std::vector<std::int64_t> input = {};  // shape of a sample: {channels, height, width} or {features}
  // The loss is the cross-entropy over the last layer's features; 0: the sum of their squares.
  std::int64_t classes = 0;
  std::vector<LayerSpec> layers = {};
  bool operator==(const LayerList&) const = default;
};

struct Model {
  std::string name = {};
  std::string source = {};  // where the numbers come from
  std::variant<Transformer, LayerList> shape = {};
  bool operator==(const Model&) const = default;
};

// Whether queries of this layer see only a window or a chunk, and whether its MLP is a mixture of experts. A per-layer list
// (AttentionSettings::local, Experts::layers) shorter than the number of layers repeats.
bool attends_locally(const Transformer& t, int layer);
bool has_experts(const Transformer& t, int layer);
// Whether the last stage reads the token embedding, too: as the head (tied), or in modules for multi-token prediction.
bool shares_embedding(const Transformer& t);
// Whether only the fused attention kernel computes this attention: windows, chunks, sinks, capped scores, latent attention.
bool needs_fused_attention(const Transformer& t);

// Exact numbers of parameters by their use; the vocabulary is not padded.
struct ParameterCounts {
  std::int64_t total = 0;            // without modules for multi-token prediction
  std::int64_t active = 0;           // those that one token uses: all but the routed experts that it does not choose
  std::int64_t input_embedding = 0;  // part of `active`: the token embedding; 0 if it is tied to the head
  std::int64_t routed = 0;           // in routed experts, all layers
  std::int64_t mtp = 0;              // in modules for multi-token prediction, without the shared embedding and head
  // Elements of the routers' correction biases, which are stored but not trained by gradients.
  std::int64_t correction_bias = 0;
  bool operator==(const ParameterCounts&) const = default;
};
ParameterCounts parameter_counts(const Transformer& t);

// Exact number of trainable parameters with the vocabulary padded to a multiple of `vocab_multiple`.
std::int64_t parameter_count(const Model& model, std::int64_t vocab_multiple = 1);

// [layer]: indices of the layers that it reads, -1 for the sample. Throws Error unless the list is a DAG with one end.
std::vector<std::vector<int>> input_layers(const LayerList& list);
// [layer]: shape of its output for one sample, {channels, height, width} or {features}. Throws Error if a layer does not fit its inputs.
std::vector<std::vector<std::int64_t>> output_shapes(const LayerList& list);

// Reads a model from a file, from a directory that holds a config.json, or from a shipped model by its name ("gpt3-175b"). A file is a
// Hugging Face config.json of a family of core/family, or one of the two forms that to_json writes: "model_type":
// "foreshard-transformer" and "foreshard-layers" (models/README.md). Throws Error. A model that is returned is valid: sizes are positive
// and bounded, no product of them overflows 63 bits, and a layer list is a DAG with one end.
Model load_model(const std::string& name_or_path);
std::string model_file(const std::string& name_or_path);  // the file that load_model reads
Model parse_model(const std::string& text, const std::string& file_name);
std::string to_json(const Model& model);

}  // namespace foreshard
