// The list of all CUDA kernels, as pairs (function, type of the arguments). The number of a kernel is its position. The CUDA module, the
// emulator and the code that launches kernels expand this list.
#pragma once

#include "exec/cuda/attention_args.h"
#include "exec/cuda/codec_args.h"
#include "exec/cuda/expert_args.h"

#define FORESHARD_PICTURE_KERNELS(KERNEL) \
  KERNEL(window_columns, WindowArgs)      \
  KERNEL(window_pixels, WindowArgs)       \
  KERNEL(pool_forward, WindowArgs)        \
  KERNEL(pool_backward, WindowArgs)       \
  KERNEL(channel_fill, ChannelArgs)       \
  KERNEL(channel_sums, ChannelArgs)       \
  KERNEL(batch_norm_forward, ChannelArgs) \
  KERNEL(batch_norm_backward, ChannelArgs)

#define FORESHARD_NORM_KERNELS(KERNEL)  \
  KERNEL(norm_forward, NormArgs)        \
  KERNEL(norm_input_grad, NormGradArgs) \
  KERNEL(norm_backward_packed, NormGradArgs)

#define FORESHARD_CODEC_KERNELS(KERNEL)     \
  KERNEL(code_source, CodeSourceArgs)       \
  KERNEL(code_signs, CodeArgs)              \
  KERNEL(code_bytes, CodeArgs)              \
  KERNEL(code_range, CodeArgs)              \
  KERNEL(code_bins, CodeArgs)               \
  KERNEL(code_borders, CodeArgs)            \
  KERNEL(code_segments, CodeArgs)           \
  KERNEL(top_digits, TopMagnitudesArgs)     \
  KERNEL(top_next_digit, TopMagnitudesArgs) \
  KERNEL(top_tally, TopMagnitudesArgs)      \
  KERNEL(top_pairs, TopMagnitudesArgs)      \
  KERNEL(decode_array, DecodeArgs)          \
  KERNEL(scatter_pairs, PairsArgs)          \
  KERNEL(keep_tokens, KeepTokensArgs)       \
  KERNEL(kept_rows, KeptRowsArgs)

#define FORESHARD_EXPERT_KERNELS(KERNEL)  \
  KERNEL(route_forward, RouteArgs)        \
  KERNEL(route_backward, RouteArgs)       \
  KERNEL(tally_choices, TallyArgs)        \
  KERNEL(balance_experts, BalanceArgs)    \
  KERNEL(count_choices, PlacesArgs)       \
  KERNEL(divide_room, PlacesArgs)         \
  KERNEL(place_choices, PlacesArgs)       \
  KERNEL(keep_choices, SendArgs)          \
  KERNEL(send_tokens, SendArgs)           \
  KERNEL(spread_rows, ChoiceRowsArgs)     \
  KERNEL(collect_rows, ChoiceRowsArgs)    \
  KERNEL(grouped_rows, GroupedArgs)       \
  KERNEL(grouped_weights, GroupedArgs)    \
  KERNEL(grouped_rows_tiled, GroupedArgs) \
  KERNEL(grouped_weights_tiled, GroupedArgs)

#define FORESHARD_HEAD_KERNELS(KERNEL)      \
  KERNEL(head_norm_forward, HeadNormArgs)   \
  KERNEL(head_norm_backward, HeadNormArgs)  \
  KERNEL(head_norm_weights, HeadWeightArgs) \
  KERNEL(latent_heads, LatentHeadsArgs)     \
  KERNEL(merge_attention, MergeArgs)        \
  KERNEL(split_heads, HeadPartsArgs)

#define FORESHARD_ATTENTION_KERNELS(KERNEL)   \
  KERNEL(attention_forward, AttentionArgs)    \
  KERNEL(attention_delta, AttentionArgs)      \
  KERNEL(attention_query_grad, AttentionArgs) \
  KERNEL(attention_key_grad, AttentionArgs)   \
  KERNEL(attention_sink_grad, AttentionArgs)  \
  KERNEL(flash_forward_64, AttentionArgs)     \
  KERNEL(flash_forward_96, AttentionArgs)     \
  KERNEL(flash_forward_128, AttentionArgs)    \
  KERNEL(flash_forward_192, AttentionArgs)    \
  KERNEL(flash_forward_256, AttentionArgs)    \
  KERNEL(flash_query_grad_64, AttentionArgs)  \
  KERNEL(flash_query_grad_96, AttentionArgs)  \
  KERNEL(flash_query_grad_128, AttentionArgs) \
  KERNEL(flash_query_grad_192, AttentionArgs) \
  KERNEL(flash_query_grad_256, AttentionArgs) \
  KERNEL(flash_key_grad_64, AttentionArgs)    \
  KERNEL(flash_key_grad_96, AttentionArgs)    \
  KERNEL(flash_key_grad_128, AttentionArgs)   \
  KERNEL(flash_key_grad_192, AttentionArgs)   \
  KERNEL(flash_key_grad_256, AttentionArgs)

#define FORESHARD_KERNELS(KERNEL)                      \
  KERNEL(column_sums, ColumnSumArgs)                   \
  KERNEL(column_sums_packed, ColumnSumArgs)            \
  KERNEL(activation_forward, ActivationArgs)           \
  KERNEL(activation_backward, ActivationArgs)          \
  KERNEL(add_arrays, AddArgs)                          \
  KERNEL(dropout_forward, DropoutArgs)                 \
  KERNEL(dropout_backward, DropoutArgs)                \
  KERNEL(softmax_forward, SoftmaxArgs)                 \
  KERNEL(softmax_backward, SoftmaxArgs)                \
  KERNEL(rotate, RopeArgs)                             \
  KERNEL(token_rows, LookupArgs)                       \
  KERNEL(token_grad, LookupArgs)                       \
  KERNEL(position_rows, PositionArgs)                  \
  KERNEL(position_grad, PositionArgs)                  \
  KERNEL(cross_entropy_forward, CrossEntropyArgs)      \
  KERNEL(cross_entropy_maximum, CrossEntropyArgs)      \
  KERNEL(cross_entropy_exponentials, CrossEntropyArgs) \
  KERNEL(cross_entropy_backward, CrossEntropyArgs)     \
  KERNEL(sum_terms, TermSumArgs)                       \
  KERNEL(judge_overflow, JudgeArgs)                    \
  KERNEL(scale_clipped, ScaleArgs)                     \
  KERNEL(update_adam, UpdateArgs)                      \
  KERNEL(update_sgd, UpdateArgs)                       \
  KERNEL(cast_array, CastArgs)                         \
  KERNEL(max_magnitude, MaxMagnitudeArgs)              \
  KERNEL(eight_bits, EightBitsArgs)                    \
  FORESHARD_CODEC_KERNELS(KERNEL)                      \
  FORESHARD_NORM_KERNELS(KERNEL)                       \
  FORESHARD_PICTURE_KERNELS(KERNEL)                    \
  FORESHARD_EXPERT_KERNELS(KERNEL)                     \
  KERNEL(reduce_peers, ReduceArgs)                     \
  FORESHARD_HEAD_KERNELS(KERNEL)                       \
  FORESHARD_ATTENTION_KERNELS(KERNEL)

namespace foreshard::gpu {

enum class KernelId : int {
#define KERNEL(name, args) name,
  FORESHARD_KERNELS(KERNEL)
#undef KERNEL
};
#define KERNEL(name, args) +1  // NOLINT(bugprone-macro-parentheses): summands
inline constexpr int kKernels = 0 FORESHARD_KERNELS(KERNEL);
#undef KERNEL

inline const char* name_of(KernelId id) {
  switch (id) {
#define KERNEL(name, args) \
  case KernelId::name: return #name;
    FORESHARD_KERNELS(KERNEL)
#undef KERNEL
  }
  return "?";
}

// Calls f(view) with every array in the arguments of a launch that has data. `args` points to the arguments of kernel `id`.
template <class F>
void each_array(KernelId id, const void* args, F f) {
  const auto told = [&](const View& array) {
    if (array.data) f(array);
  };
  switch (id) {
#define KERNEL(name, Args) \
  case KernelId::name: return static_cast<const Args*>(args)->each(told);
    FORESHARD_KERNELS(KERNEL)
#undef KERNEL
  }
}

}  // namespace foreshard::gpu
