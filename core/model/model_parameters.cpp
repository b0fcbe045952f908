#include "core/base/error.h"
#include "core/model/model.h"
#include "core/model/model_files.h"

namespace foreshard {

// Numbers of parameters of the parts of a transformer. Number is int64_t for the exact count, and double for the estimate of sizes that
// have not been checked. Symbols in brackets: docs/model-families.md.
template <class Number>
class Parts {
 public:
  explicit Parts(const Transformer& t)
      : t_(t),
        hidden_(number(t.hidden)),
        query_(number(t.heads) * number(t.head_dim)),
        key_(number(t.kv_heads) * number(t.head_dim)),
        norm_(t.norm == NormKind::LayerNorm ? 2 * hidden_ : hidden_) {}  // scale and shift, or scale alone

  Number norm() const { return norm_; }
  Number norms() const { return ((t_.block.input_norms ? 2 : 0) + (t_.block.branch_norms ? 2 : 0)) * norm_; }

  Number attention() const {
    if (t_.attention.latent.key_value_rank > 0) return latent_attention();
    Number all = hidden_ * (query_ + 2 * key_) + query_ * hidden_;
    if (t_.qkv_bias) all += query_ + 2 * key_;
    if (t_.projection_bias) all += hidden_;
    if (t_.attention.qk_norm == QkNorm::PerHead) all += 2 * number(t_.head_dim);
    if (t_.attention.qk_norm == QkNorm::AllHeads) all += query_ + key_;
    if (t_.attention.sinks) all += number(t_.heads);
    return all;
  }

  Number dense_mlp() const {
    const Number ffn = number(t_.ffn_hidden), up = is_gated(t_.activation) ? 2 * ffn : ffn;  // gate and up
    Number all = hidden_ * up + ffn * hidden_;
    if (t_.mlp_bias) all += up + hidden_;
    return all;
  }

  Number expert() const {  // one
    const Experts& e = t_.block.experts;
    const Number products = mlp_products() * hidden_ * number(e.width);
    return e.biases ? products + (mlp_products() - 1) * number(e.width) + hidden_ : products;
  }
  Number router_and_shared() const {
    const Experts& e = t_.block.experts;
    const Number router = number(e.count) * (e.router_bias ? hidden_ + 1 : hidden_);
    return router + mlp_products() * hidden_ * number(e.shared_width);
  }

  // Norms of the two inputs, the product of their concatenation, one layer of the last kind, the norm before the shared head.
  Number mtp_module() const {
    const Number mlp =
        has_experts(t_, t_.layers - 1) ? router_and_shared() + number(t_.block.experts.count) * expert() : dense_mlp();
    return 2 * norm_ + 2 * hidden_ * hidden_ + attention() + norms() + mlp + norm_;
  }

 private:
  Number mlp_products() const { return is_gated(t_.activation) ? 3 : 2; }
  static Number number(std::int64_t n) { return static_cast<Number>(n); }

  Number latent_attention() const {
    const LatentAttention& l = t_.attention.latent;
    const Number heads = number(t_.heads), rq = number(l.query_rank), rkv = number(l.key_value_rank),
                 dr = number(l.rotated_dim);
    const Number plain = number(l.plain_dim), value = number(l.value_dim), per_query = heads * (plain + dr);
    Number all = rq > 0 ? hidden_ * rq + rq + rq * per_query : hidden_ * per_query;  // each latent has an RMSNorm
    all += hidden_ * (rkv + dr) + rkv + rkv * heads * (plain + value) + heads * value * hidden_;
    if (t_.qkv_bias) all += rq > 0 ? rq + rkv + dr : rkv + dr;  // biases of the products that make latents
    if (t_.projection_bias) all += hidden_;
    return all;
  }

  const Transformer& t_;
  Number hidden_, query_, key_, norm_;
};

static std::int64_t layers_with_experts(const Transformer& t) {
  std::int64_t layers = 0;
  for (int i = 0; i < t.layers; ++i) layers += has_experts(t, i) ? 1 : 0;
  return layers;
}

template <class Number>
static Number count(const Transformer& t, std::int64_t padded_vocab) {
  const Parts<Number> parts(t);
  const Number hidden = static_cast<Number>(t.hidden), vocab = static_cast<Number>(padded_vocab), norm = parts.norm();
  const auto layers = static_cast<Number>(t.layers), mixtures = static_cast<Number>(layers_with_experts(t));
  Number total = layers * (parts.attention() + parts.norms()) + (layers - mixtures) * parts.dense_mlp();
  total += mixtures * (parts.router_and_shared() + static_cast<Number>(t.block.experts.count) * parts.expert());
  total += static_cast<Number>(t.block.mtp_modules) * parts.mtp_module();

  total += vocab * hidden + static_cast<Number>(t.token_types) * hidden;
  if (t.positions == PositionKind::Learned) total += static_cast<Number>(t.max_positions) * hidden;
  if (t.embedding_norm) total += norm;
  if (t.final_norm) total += norm;
  if (t.mlm_head) total += hidden * hidden + hidden + norm;
  if (!t.tied_embeddings) total += vocab * hidden;
  if (t.lm_head_bias) total += vocab;
  if (t.pooler) total += hidden * hidden + hidden + 2 * hidden + 2;  // dense, then the two classes of the next-sentence head
  return total;
}

bool attends_locally(const Transformer& t, int layer) {
  if (t.attention.window == 0 && t.attention.chunk == 0) return false;
  const std::vector<bool>& local = t.attention.local;
  return local.empty() || local[static_cast<std::size_t>(layer) % local.size()];
}

bool has_experts(const Transformer& t, int layer) {
  const Experts& experts = t.block.experts;
  if (experts.count == 0) return false;
  return experts.layers.empty() || experts.layers[static_cast<std::size_t>(layer) % experts.layers.size()];
}

bool shares_embedding(const Transformer& t) { return t.tied_embeddings || t.block.mtp_modules > 0; }

bool needs_fused_attention(const Transformer& t) {
  const AttentionSettings& a = t.attention;
  return a.window > 0 || a.chunk > 0 || a.sinks || a.score_cap > 0 || a.latent.key_value_rank > 0;
}

ParameterCounts parameter_counts(const Transformer& t) {
  const Parts<std::int64_t> parts(t);
  const Experts& experts = t.block.experts;
  const std::int64_t mixtures = layers_with_experts(t);
  ParameterCounts counts;
  counts.mtp = t.block.mtp_modules * parts.mtp_module();
  counts.total = count<std::int64_t>(t, t.vocab) - counts.mtp;
  counts.routed = mixtures * experts.count * parts.expert();
  counts.active = counts.total - counts.routed + mixtures * experts.chosen * parts.expert();
  counts.input_embedding = t.tied_embeddings ? 0 : t.vocab * t.hidden;
  counts.correction_bias = experts.correction_bias ? mixtures * experts.count : 0;
  return counts;
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
