// Model: what a Hugging Face config.json or a layer list says about a network. Nothing about how it is trained.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/model/transformer_settings.h"

namespace foreshard {

enum class NormKind : std::uint8_t { LayerNorm, RmsNorm };
// The gated ones multiply two products: SiLU or GELU of the first times the second. ClampedSwiGlu is gpt-oss's: min(gate, 7) and up
// clamped to +-7 give (up + 1) gate sigmoid(1.702 gate).
enum class ActivationKind : std::uint8_t { Gelu, Relu, SwiGlu, GeGlu, ClampedSwiGlu };
constexpr bool is_gated(ActivationKind kind) { return kind != ActivationKind::Gelu && kind != ActivationKind::Relu; }
enum class PositionKind : std::uint8_t { Learned, Rope, None };

// Decoder (GPT, Llama) and encoder (BERT) transformers. All sizes in elements.
struct Transformer {
  bool causal = true;  // decoder
  int layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn_hidden = 0;
  int heads = 0;
  int kv_heads = 0;  // = heads without grouped-query attention
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
  bool pooler = false;    // BERT: dense + tanh on the first token, and the next-sentence head
  bool mlm_head = false;  // BERT: dense + activation + norm before the vocabulary projection (its bias: lm_head_bias)
  bool lm_head_bias = false;
  AttentionSettings attention = {};
  BlockSettings block = {};
  bool operator==(const Transformer&) const = default;
};

enum class LayerOp : std::uint8_t { Conv2d, BatchNorm, Relu, MaxPool, AvgPool, Add, Flatten, Linear };

// One entry of a layer list. Spatial sizes follow from the input; unused fields stay 0.
struct LayerSpec {
  std::string name = {};
  LayerOp op = LayerOp::Linear;
  std::vector<std::string> inputs = {};  // names of earlier entries; empty: the previous entry ("input" names the sample)
  std::int64_t features = 0;             // Conv2d, Linear: output channels or features
  int kernel = 0;
  int stride = 1;
  int padding = 0;
  bool bias = false;
  bool operator==(const LayerSpec&) const = default;
};

// CNNs and multilayer perceptrons: a DAG of layers over samples of one shape.
struct LayerList {
  std::vector<std::int64_t> input = {};  // per sample: {channels, height, width} or {features}
  std::int64_t classes = 0;              // cross-entropy over the last layer's features; 0: the loss is the sum of squares
  std::vector<LayerSpec> layers = {};
  bool operator==(const LayerList&) const = default;
};

struct Model {
  std::string name = {};
  std::string source = {};  // where the numbers come from
  std::variant<Transformer, LayerList> shape = {};
  bool operator==(const Model&) const = default;
};

// Whether the layer sees a window or a chunk instead of all tokens before, and whether its MLP is a mixture of experts. A list
// that is shorter than the layers repeats.
bool attends_locally(const Transformer& t, int layer);
bool has_experts(const Transformer& t, int layer);
// The end of the model reads the table of tokens, too: as the head, or in modules for multi-token prediction.
bool shares_embedding(const Transformer& t);
// Windows, chunks, sinks, capped scores and latents are computed by one attention kernel, and by no separate operators.
bool needs_fused_attention(const Transformer& t);

// Parameters by what they do, exact, the vocabulary not padded.
struct ParameterCounts {
  std::int64_t total = 0;            // without modules for multi-token prediction
  std::int64_t active = 0;           // those that one token meets: of the routed experts only the chosen; both ends
  std::int64_t input_embedding = 0;  // of them, the table of tokens that is looked up; 0 where it is the head, too
  std::int64_t routed = 0;           // of the routed experts of all layers
  std::int64_t mtp = 0;              // of the modules for multi-token prediction; embedding and head are shared
  std::int64_t correction_bias = 0;  // elements of the routers' correction biases: stored, but not trained
  bool operator==(const ParameterCounts&) const = default;
};
ParameterCounts parameter_counts(const Transformer& t);

// Exact number of trainable parameters with the vocabulary padded to a multiple of `vocab_multiple`.
std::int64_t parameter_count(const Model& model, std::int64_t vocab_multiple = 1);

// Per layer, the indices of the layers it reads; -1 is the sample. Throws Error unless the list is a DAG with one end.
std::vector<std::vector<int>> input_layers(const LayerList& list);
// Per layer, the shape it puts out for one sample: {channels, height, width} or {features}. Throws Error where a layer does
// not fit its inputs.
std::vector<std::vector<std::int64_t>> output_shapes(const LayerList& list);

// Reads a model: a file path, a directory that holds a config.json, or the name of a shipped model ("gpt3-175b"). Accepts
// Hugging Face config.json files of the families of core/family as they are, and our own two forms, which to_json writes:
// "model_type": "foreshard-transformer" and "foreshard-layers". models/README.md describes them. A model read is valid: sizes are
// positive and bounded, no product of them overflows 63 bits, and a layer list is a DAG with one end. Throws Error.
Model load_model(const std::string& name_or_path);
std::string model_file(const std::string& name_or_path);  // the file that load_model reads
Model parse_model(const std::string& text, const std::string& file_name);
std::string to_json(const Model& model);

}  // namespace foreshard
