#include "core/graph/op_graph.h"

#include <map>

#include "core/base/error.h"
#include "core/graph/op_graph_layer_list.h"
#include "core/graph/op_graph_transformer.h"
#include "core/graph/transformer_flops.h"

namespace foreshard {

namespace {

OpGraph transformer_graph(const Transformer& model, const Sharding& sharding) {
  const LocalTransformer local = local_transformer(model, sharding);
  OpGraph graph;
  graph.kinds = {embedding_layer(local)};
  graph.layers.push_back({.name = "embedding", .kind = 0});
  std::map<bool, int> kind_of;  // by whether a layer attends locally
  for (int i = 0; i < model.layers; ++i) {
    const bool locally = attends_locally(model, i);
    const auto [known, first] = kind_of.try_emplace(locally, static_cast<int>(graph.kinds.size()));
    if (first) {
      const std::string usual = model.causal ? "decoder" : "encoder";
      graph.kinds.push_back(
          transformer_layer(local, kind_of.size() == 1 ? usual : (locally ? "local_" : "full_") + usual, locally));
    }
    graph.layers.push_back({.name = "layers." + std::to_string(i), .kind = known->second, .counted = true});
  }
  graph.layers.push_back({.name = "head", .kind = static_cast<int>(graph.kinds.size())});
  graph.kinds.push_back(head_layer(local));
  return graph;
}

}  // namespace

OpGraph build_op_graph(const Model& model, const Sharding& sharding) {
  if (const auto* list = std::get_if<LayerList>(&model.shape)) return layer_list_graph(*list, sharding);
  return transformer_graph(std::get<Transformer>(model.shape), sharding);
}

Flops model_flops_per_sample(const Model& model, std::int64_t seq, std::int64_t vocab_multiple) {
  if (const auto* list = std::get_if<LayerList>(&model.shape)) return layer_list_flops(*list);
  const TransformerFlops flops = transformer_flops(std::get<Transformer>(model.shape), seq, vocab_multiple);
  return flops.products + flops.core;
}

}  // namespace foreshard
