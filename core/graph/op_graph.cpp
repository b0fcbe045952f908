#include "core/graph/op_graph.h"

#include <map>

#include "core/base/error.h"
#include "core/graph/op_graph_layer_list.h"
#include "core/graph/op_graph_transformer.h"
#include "core/graph/transformer_flops.h"

namespace foreshard {

namespace {

// The name of a layer's kind: "decoder"; if the layers of a model differ, also "local_decoder", "moe_decoder" and the like.
std::string kind_name(const Transformer& model, const LayerVariant& variant) {
  const std::string usual = model.causal ? "decoder" : "encoder";
  std::string words = variant.lowest ? "lowest_" : "";
  if (variant.local != attends_locally(model, 0)) words += variant.local ? "local_" : "full_";
  if (variant.experts != has_experts(model, 0)) words += variant.experts ? "moe_" : "dense_";
  if (variant.mixture > 0) words = "mixture_" + std::to_string(variant.mixture) + "_" + words;
  return words + usual;
}

// The first layer with experts that has the loads of layer `mixture`: 0 unless loads are measured.
int first_alike(const ExpertLoad& load, int mixture) {
  if (load.kind != ExpertLoad::Kind::Measured) return 0;
  for (int before = 0; before < mixture; ++before)
    if (load.of_layer(before) == load.of_layer(mixture)) return before;
  return mixture;
}

OpGraph transformer_graph(const Transformer& model, const Sharding& sharding) {
  const LocalTransformer local = local_transformer(model, sharding);
  OpGraph graph;
  graph.kinds = {embedding_layer(local)};
  graph.layers.push_back({.name = "embedding", .kind = 0});
  std::map<LayerVariant, int> kind_of;
  int mixtures = 0;
  for (int i = 0; i < model.layers; ++i) {
    LayerVariant variant = {.local = attends_locally(model, i), .experts = has_experts(model, i)};
    if (variant.experts) variant.mixture = first_alike(sharding.expert_load, mixtures++);
    variant.lowest = i == 0 && sharding.lora.any();  // the embedding is frozen
    const auto [known, first] = kind_of.try_emplace(variant, static_cast<int>(graph.kinds.size()));
    if (first) graph.kinds.push_back(transformer_layer(local, kind_name(model, variant), variant));
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

namespace {

// Products of activations with weights; frozen ones without their weight gradients.
Flops product_flops(const Model& model, const TransformerFlops& flops, std::int64_t seq, const Adapters& lora) {
  if (!lora.any()) return flops.products;
  return {flops.products.value * 2 / 3 + 6 * static_cast<double>(seq) * static_cast<double>(adapter_elements(model, lora))};
}

}  // namespace

Flops model_flops_per_sample(const Model& model, std::int64_t seq, std::int64_t vocab_multiple, const Adapters& lora,
                             std::int64_t packed) {
  if (const auto* list = std::get_if<LayerList>(&model.shape)) return layer_list_flops(*list);
  TransformerFlops flops = transformer_flops(std::get<Transformer>(model.shape), seq, vocab_multiple);
  if (packed > 0 && packed < seq) flops.core = {flops.core.value * static_cast<double>(packed) / static_cast<double>(seq)};
  return product_flops(model, flops, seq, lora) + flops.core;
}

Flops masked_flops_per_sample(const Model& model, std::int64_t seq, std::int64_t vocab_multiple, const Adapters& lora,
                              std::int64_t packed) {
  if (const auto* list = std::get_if<LayerList>(&model.shape)) return layer_list_flops(*list);
  const auto& transformer = std::get<Transformer>(model.shape);
  const TransformerFlops flops = transformer_flops(transformer, seq, vocab_multiple);
  Flops core = flops.core_in_mask;
  if (packed > 0 && packed < seq)
    core = {transformer_flops(transformer, packed, vocab_multiple).core_in_mask.value * static_cast<double>(seq) /
            static_cast<double>(packed)};
  return product_flops(model, flops, seq, lora) + core;
}

}  // namespace foreshard
