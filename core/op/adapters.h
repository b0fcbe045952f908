// Low-rank adapters (LoRA, Hu et al. 2021, arXiv:2106.09685). Beside a linear layer with weights W [out, in], which are frozen, a product with
// A [rank, in] and one with B [out, rank]: y = x W^T + scale (x A^T) B^T. Only A and B are trained (docs/fine-tuning.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace foreshard {

enum class AdapterTargets : std::uint8_t { Attention, All };
inline constexpr const char* kAdapterTargets[] = {"attention", "all"};  // as in the enum
inline const char* name_of(AdapterTargets targets) { return kAdapterTargets[static_cast<std::size_t>(targets)]; }

struct Adapters {
  int rank = 0;  // 0: no adapters; every parameter is trained
  // The scale is alpha / rank. 0: alpha is the rank, as by default in PEFT (r 8, lora_alpha 8) and Megatron Bridge (dim 32, alpha 32).
  double alpha = 0;
  AdapterTargets targets =
      AdapterTargets::Attention;  // projections of the attention; or also products of the feed-forward layers

  bool any() const { return rank > 0; }
  double scale() const { return alpha > 0 ? alpha / rank : 1; }
  bool operator==(const Adapters&) const = default;
};

}  // namespace foreshard
