// Probes with the sizes that GPUs run. `calibrate` measures the computes of one rank, one at a time, so a plan may be for more ranks
// than there are GPUs.
#include <array>

#include "cli/parts/calibrate_probes.h"

namespace foreshard {

namespace {

struct GpuSize {
  ProbeSize size = {};
  int tp = 1;
};

// Hidden 1024 to 8192, heads of 64 and 128, sequences of 2048 to 32,768; neighbours differ by about a factor of 1.5 in one or two
// dimensions. The first ones are as small as the models of tests.
constexpr std::array<GpuSize, 19> kGpuSizes = {{{{64, 16, 32, 2, 192}},
                                                {{256, 64, 256, 4, 1024}},
                                                {{640, 64, 1024, 4, 24'576}},
                                                {{1024, 64, 2048, 4, 32'000}},
                                                {{1024, 128, 2048, 8, 50'304}},
                                                {{1536, 128, 2048, 4, 32'000}},
                                                {{1536, 64, 4096, 2, 50'304}},
                                                {{2048, 128, 2048, 4, 50'304}},
                                                {{2560, 64, 2048, 2, 32'000}, 2},
                                                {{3072, 128, 4096, 1, 32'000}},
                                                {{4096, 128, 2048, 2, 50'304}},
                                                {{4096, 128, 8192, 1, 128'256}, 2},
                                                {{5120, 128, 4096, 1, 32'000}, 2},
                                                {{6144, 128, 2048, 4, 50'304}, 4},
                                                {{8192, 128, 4096, 2, 32'000}, 8},
                                                {{8192, 128, 8192, 1, 128'256}, 8},
                                                {{2048, 128, 16'384, 1, 32'000}, 2},
                                                {{1024, 64, 32'768, 1, 32'000}},
                                                {{4096, 128, 32'768, 1, 32'000}, 4}}};

// A strategy apart from its tensor parallelism: how the model is split and what is recomputed.
std::vector<Strategy> ways(int tp, AttentionKernel attention) {
  const Recompute full{.kind = RecomputeKind::Full};
  std::vector<Strategy> all = {{.dp = 1},
                               {.dp = 2, .zero = {.stage = 1}, .recompute = full},
                               {.dp = 2, .zero = {.stage = 3}},
                               {.dp = 1, .pp = 2, .dropout = 0.1}};
  for (Strategy& way : all) way.tp = tp, way.sequence_parallel = tp > 1, way.attention = attention;
  return all;
}

}  // namespace

std::vector<Plan> gpu_probes(const Cluster& cluster, const std::vector<DType>& dtypes, std::int64_t largest_hidden,
                             std::int64_t longest) {
  std::vector<Plan> probes;
  for (const DType dtype : dtypes)
    for (std::size_t i = 0; i < kGpuSizes.size(); ++i) {
      const auto& [size, tp] = kGpuSizes[i];
      // Other formats have no flash attention: the attention matrix is in memory.
      const bool wide = dtype != DType::BF16 && dtype != DType::F16 && dtype != DType::F8;
      if (size.hidden > largest_hidden || size.seq > (wide ? std::min<std::int64_t>(longest, 4096) : longest)) continue;
      for (Strategy strategy : ways(tp, wide ? AttentionKernel::Unfused : AttentionKernel::Flash)) {
        strategy.precision = dtype, strategy.batch.micro = size.micro_batch;
        if (strategy.dropout > 0 && size.seq > 2048) continue;
        for (const ProbeFamily family : {ProbeFamily::Gpt, ProbeFamily::Llama})
          add_probe(probes, probe_model(family, size), strategy, cluster);
      }
    }
  return probes;
}

}  // namespace foreshard
