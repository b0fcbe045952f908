// Phi-3 and Phi-4: Llama's block, stored with fused products. A window that is shorter than the positions is active.
#include "core/family/family_config.h"

namespace foreshard {

static Transformer read_phi3(const FamilyConfig& config) {
  Transformer t = config.decoder();
  t.ffn_hidden = config.size({"intermediate_size"});
  t.activation = config.activation("hidden_act", "silu", true);
  t.attention.rotated_dim = config.rotated_dim(t.head_dim, 1);
  const std::int64_t window = config.size_or({"sliding_window"}, t.max_positions);
  if (window < t.max_positions) t.attention.window = window;
  return t;
}

ModelFamily phi3_family() { return {.types = {"phi3"}, .keys = {"partial_rotary_factor"}, .read = read_phi3}; }

}  // namespace foreshard
