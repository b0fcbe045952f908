// Llama-2-7B as lists of units: hidden size 4096, feed-forward 11008, 32 layers, vocabulary 32000.
#pragma once

#include "strategy/residency/residency.h"

namespace foreshard {

inline constexpr std::int64_t kLlamaHidden = 4096, kLlamaFeedForward = 11008, kLlamaVocabulary = 32000;
inline constexpr std::int64_t kLlamaParameters = 6'738'415'616, kLlamaBlock = 202'383'360;
inline constexpr int kLlamaLayers = 32, kLlamaModulesOfLayer = 9;

// Embedding; of each layer norm, q, k, v, o, norm, gate, up, down; norm; head.
inline std::vector<ParameterUnit> llama_modules() {
  const std::int64_t h = kLlamaHidden, f = kLlamaFeedForward;
  std::vector<ParameterUnit> modules = {{"embedding", kLlamaVocabulary * h}};
  for (int layer = 0; layer < kLlamaLayers; ++layer)
    for (const std::int64_t elements : {h, h * h, h * h, h * h, h * h, h, h * f, h * f, h * f})
      modules.push_back({"layer " + std::to_string(layer), elements});
  modules.push_back({"norm", h});
  modules.push_back({"head", kLlamaVocabulary * h});
  return modules;
}

// The modules of each layer.
inline std::vector<UnitRange> llama_layers() {
  std::vector<UnitRange> layers;
  for (int layer = 0; layer < kLlamaLayers; ++layer)
    layers.push_back({1 + layer * kLlamaModulesOfLayer, (layer + 1) * kLlamaModulesOfLayer});
  return layers;
}

inline std::vector<ParameterUnit> equal_blocks(int count, std::int64_t elements) {
  std::vector<ParameterUnit> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back({"block " + std::to_string(i), elements});
  return blocks;
}
inline std::vector<ParameterUnit> llama_blocks() { return equal_blocks(kLlamaLayers, kLlamaBlock); }

// As the policies that have blocks see the whole model: embedding, blocks, norm and head together.
inline std::vector<ParameterUnit> llama_groups() {
  std::vector<ParameterUnit> groups = {{"embedding", kLlamaVocabulary * kLlamaHidden}};
  for (const ParameterUnit& block : llama_blocks()) groups.push_back(block);
  groups.push_back({"head", kLlamaHidden + kLlamaVocabulary * kLlamaHidden});
  return groups;
}

}  // namespace foreshard
