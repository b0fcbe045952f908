#include "core/base/error.h"
#include "core/model/model.h"
#include "core/model/model_files.h"

namespace foreshard {

// Number is int64_t for the exact count and double for the estimate of sizes that nobody has checked yet.
template <class Number>
static Number count(const Transformer& t, std::int64_t padded_vocab) {
  const Number hidden = static_cast<Number>(t.hidden), ffn = static_cast<Number>(t.ffn_hidden);
  const Number vocab = static_cast<Number>(padded_vocab);
  const Number query = static_cast<Number>(t.heads) * static_cast<Number>(t.head_dim);
  const Number key_value = 2 * static_cast<Number>(t.kv_heads) * static_cast<Number>(t.head_dim);
  const Number norm = t.norm == NormKind::LayerNorm ? 2 * hidden : hidden;   // scale and shift, or scale alone
  const Number up = t.activation == ActivationKind::SwiGlu ? 2 * ffn : ffn;  // gate and up

  Number layer = hidden * (query + key_value) + query * hidden + hidden * up + ffn * hidden + 2 * norm;
  if (t.qkv_bias) layer += query + key_value;
  if (t.projection_bias) layer += hidden;
  if (t.mlp_bias) layer += up + hidden;

  Number total = static_cast<Number>(t.layers) * layer + vocab * hidden + static_cast<Number>(t.token_types) * hidden;
  if (t.positions == PositionKind::Learned) total += static_cast<Number>(t.max_positions) * hidden;
  if (t.embedding_norm) total += norm;
  if (t.final_norm) total += norm;
  if (t.mlm_head) total += hidden * hidden + hidden + norm;
  if (!t.tied_embeddings) total += vocab * hidden;
  if (t.lm_head_bias) total += vocab;
  if (t.pooler) total += hidden * hidden + hidden + 2 * hidden + 2;  // dense, then the two classes of the next-sentence head
  return total;
}

template <class Number>
static Number count(const LayerSpec& layer, const std::vector<std::int64_t>& input) {
  const Number features = static_cast<Number>(layer.features), channels = static_cast<Number>(input.at(0));
  const Number kernel = static_cast<Number>(layer.kernel), bias = layer.bias ? features : Number{0};
  switch (layer.op) {
    case LayerOp::Conv2d: return features * channels * kernel * kernel + bias;
    case LayerOp::Linear: return features * channels + bias;
    case LayerOp::BatchNorm: return 2 * channels;  // scale and shift; running statistics are not trained
    case LayerOp::Relu:
    case LayerOp::MaxPool:
    case LayerOp::AvgPool:
    case LayerOp::Add:
    case LayerOp::Flatten: return 0;
  }
  return 0;
}

double parameter_estimate(const Transformer& t) { return count<double>(t, t.vocab); }

double parameter_estimate(const LayerSpec& layer, const std::vector<std::int64_t>& input) {
  return count<double>(layer, input);
}

std::int64_t parameter_count(const Model& model, std::int64_t vocab_multiple) {
  FS_ASSERT(vocab_multiple >= 1);
  if (const auto* transformer = std::get_if<Transformer>(&model.shape))
    return count<std::int64_t>(*transformer, round_up(transformer->vocab, vocab_multiple));
  const LayerList& list = std::get<LayerList>(model.shape);
  const auto inputs = input_layers(list);
  const auto shapes = output_shapes(list);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < list.layers.size(); ++i) {
    const int first = inputs[i].front();
    total += count<std::int64_t>(list.layers[i], first < 0 ? list.input : shapes[static_cast<std::size_t>(first)]);
  }
  return total;
}

}  // namespace foreshard
