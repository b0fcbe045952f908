// Small models for the tests of the operator graph.
#pragma once

#include <cstdint>

#include "core/model/model.h"

namespace foreshard {

inline Model gpt(int layers, std::int64_t hidden, int heads, std::int64_t vocab = 51200, std::int64_t positions = 2048) {
  Transformer t = {.layers = layers,
                   .hidden = hidden,
                   .ffn_hidden = 4 * hidden,
                   .heads = heads,
                   .kv_heads = heads,
                   .head_dim = hidden / heads,
                   .vocab = vocab,
                   .max_positions = positions};
  return {.name = "gpt", .shape = t};
}

inline Model llama(int layers, std::int64_t hidden, std::int64_t ffn, int heads, int kv_heads, std::int64_t vocab) {
  Transformer t = {.layers = layers,
                   .hidden = hidden,
                   .ffn_hidden = ffn,
                   .heads = heads,
                   .kv_heads = kv_heads,
                   .head_dim = hidden / heads,
                   .vocab = vocab,
                   .max_positions = 8192,
                   .norm = NormKind::RmsNorm,
                   .activation = ActivationKind::SwiGlu,
                   .positions = PositionKind::Rope,
                   .qkv_bias = false,
                   .projection_bias = false,
                   .mlp_bias = false,
                   .tied_embeddings = false};
  return {.name = "llama", .shape = t};
}

}  // namespace foreshard
