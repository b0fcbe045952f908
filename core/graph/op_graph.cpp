#include "core/graph/op_graph.h"

#include "core/base/error.h"
#include "core/graph/op_graph_layer_list.h"
#include "core/graph/op_graph_transformer.h"

namespace foreshard {

namespace {

OpGraph transformer_graph(const Transformer& model, const Sharding& sharding) {
  const LocalTransformer local = local_transformer(model, sharding);
  OpGraph graph;
  graph.kinds = {embedding_layer(local), transformer_layer(local), head_layer(local)};
  graph.layers.push_back({.name = "embedding", .kind = 0});
  for (int i = 0; i < model.layers; ++i) {
    graph.layers.push_back({.name = "layers." + std::to_string(i), .kind = 1, .counted = true});
  }
  graph.layers.push_back({.name = "head", .kind = 2});
  return graph;
}

// 6 FLOPs per multiplied parameter and token (Kaplan et al. 2020), and 12 L (a d) s^2 for the scores and their product
// with the values. For GPT: 72 s L h^2 (1 + s / 6h + V / 12 L h) (Narayanan et al. 2021, without recomputation).
Flops transformer_flops(const Transformer& m, std::int64_t seq, std::int64_t vocab_multiple) {
  const auto s = static_cast<double>(seq), h = static_cast<double>(m.hidden), f = static_cast<double>(m.ffn_hidden);
  const auto layers = static_cast<double>(m.layers), vocab = static_cast<double>(padded_vocab(m, vocab_multiple));
  const double query = static_cast<double>(m.heads * m.head_dim), kv = static_cast<double>(m.kv_heads * m.head_dim);
  const double mlp = h * f * (m.activation == ActivationKind::SwiGlu ? 3.0 : 2.0);
  const double layer = h * (query + 2.0 * kv) + query * h + mlp;
  const double head = h * vocab + (m.mlm_head ? h * h : 0.0);
  const double first_token = m.pooler ? h * h + 2.0 * h : 0.0;
  return {6.0 * s * (layers * layer + head) + 12.0 * layers * query * s * s + 6.0 * first_token};
}

}  // namespace

OpGraph build_op_graph(const Model& model, const Sharding& sharding) {
  if (const auto* list = std::get_if<LayerList>(&model.shape)) return layer_list_graph(*list, sharding);
  return transformer_graph(std::get<Transformer>(model.shape), sharding);
}

Flops model_flops_per_sample(const Model& model, std::int64_t seq, std::int64_t vocab_multiple) {
  if (const auto* list = std::get_if<LayerList>(&model.shape)) return layer_list_flops(*list);
  return transformer_flops(std::get<Transformer>(model.shape), seq, vocab_multiple);
}

}  // namespace foreshard
