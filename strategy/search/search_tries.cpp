#include "strategy/search/search_tries.h"

#include <algorithm>

#include "core/strategy/strategy_options.h"

namespace foreshard {

const std::vector<TriedOption>& tried_options() {
  static const std::vector<TriedOption> options = {
      {"parts", {"2", "4"}},
      {"compress_activations", {"token-topk:0.5", "segmented:8", "token-topk:0.5,segmented:8"}},
      {"compress_gradients", {"eight-bit", "segmented:4", "dgc:0.01"}}};
  return options;
}

std::vector<Strategy> tried_variants(const SearchOptions& options, const Strategy& plain) {
  std::vector<Strategy> variants = {plain};
  for (const TriedOption& option : tried_options()) {
    if (std::ranges::find(options.tries, option.path) == options.tries.end()) continue;
    for (std::size_t v = 0, before = variants.size(); v < before; ++v)
      for (const std::string& value : option.values) {
        variants.push_back(variants[v]);
        set_option(variants.back(), option.path, value, "--try");
      }
  }
  const bool keeps_zero = is_fixed(options, "zero") || plain.zero.stage == 0;
  for (std::size_t v = 0, all = variants.size(); v < all && !keeps_zero; ++v)
    if (variants[v].communication.gradients.any() && !plain.communication.gradients.any())
      variants.push_back(variants[v]), variants.back().zero = {};
  variants.erase(variants.begin());
  FS_ASSERT(variants.size() <= kMostTried);
  return variants;
}

Point point_of(const Strategy& variant, Point point) {
  if (variant.communication.gradients.any() && variant.zero.stage == 0)
    point.zero = 0, point.zero_group = 0, point.overlap_parameters = false;
  return point;
}

}  // namespace foreshard
