// The formula of flash attention: what each of its mechanisms changes.
#include "strategy/kernels/attention_formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "strategy/kernels/machine_constants.h"

namespace foreshard::attention_formula_test {
namespace {

double seconds(const Gpu& gpu, const AttentionWork& work, FlashKernel flash = FlashKernel::Newest) {
  return attention_time(gpu, work, flash, true).value;
}
const AttentionWork kLong = {.queries = 65536, .keys = 65536, .heads = 76, .kv_heads = 76, .dim = 128, .values = 128};

// Blackwell Ultra's exponentials take half as long: more of a gain the smaller the heads.
TEST(AttentionFormula, TwiceTheExponentials) {
  Gpu twice = load_gpu("gb300"), once = twice;
  once.fp64 = load_gpu("gb200").fp64;
  EXPECT_EQ(exponential_rate(twice), 2);
  EXPECT_EQ(exponential_rate(load_gpu("b300")), 2);
  for (const char* name : {"b200", "gb200", "h200", "a100-80", "rtx-5090"})
    EXPECT_EQ(exponential_rate(load_gpu(name)), 1) << name;
  AttentionWork work = kLong;
  EXPECT_NEAR(seconds(once, work) / seconds(twice, work), 160.0 / 144, 0.01);
  work.dim = work.values = 64;
  EXPECT_NEAR(seconds(once, work) / seconds(twice, work), 96.0 / 80, 0.01);
}

// A block of Blackwell's forward has 256 queries, so 384 keys for a window of 128, and fills no faster with heads of 64; a Hopper's has 128.
TEST(AttentionFormula, WindowsSeeTheirBlocksKeys) {
  for (const auto& [name, tile, fill] : {std::tuple{"gb200", 256.0, 405.0}, std::tuple{"h200", 128.0, 303.0}}) {
    AttentionWork work = {.batch = 2,
                          .queries = 16384,
                          .keys = 16384,
                          .heads = 128,
                          .kv_heads = 128,
                          .dim = 64,
                          .values = 64,
                          .causal = true,
                          .window = 128};
    const double keys = 128 - 128.0 * 127 / (2 * 16384) + tile;
    AttentionWork longer = work;
    longer.window = 1024;
    const double more = 1024 - 1024.0 * 1023 / (2 * 16384) + tile, slower = 64 * (96.0 / 64) / (160.0 / 128);
    EXPECT_NEAR(seconds(load_gpu(name), longer) / seconds(load_gpu(name), work),
                (more * slower + fill * 128) / (keys * slower + fill * 128), 1e-9)
        << name;
  }
}

// The backward of heads of 192 and 128 makes three products of 192 and two of 128, where the forward's are one each; on Blackwell its sums do
// not fit the tensor memory that those of 128 fill.
TEST(AttentionFormula, BackwardOfLatentAttention) {
  AttentionWork plain = kLong, latent = kLong;
  plain.backward = latent.backward = true, latent.dim = 192;
  const double elements = (3 * 192 + 2 * 128) / 640.0, size = elements * 128, softmax = (size / (size + 32)) / (128.0 / 160);
  EXPECT_NEAR(seconds(load_gpu("h200"), latent) / seconds(load_gpu("h200"), plain), elements / softmax, 0.01);
  EXPECT_NEAR(seconds(load_gpu("gb200"), latent) / seconds(load_gpu("gb200"), plain), elements / softmax / 0.84, 0.01);
}

// DeepSeek-V3's published trace of training (deepseek-ai/profile-data, H800): an attention of 4096 tokens, of which kernels for communication
// leave 112 of 132 SMs, takes 1.237 ms forward and 3.78 ms backward. No constant of the formula is from there.
TEST(AttentionFormula, LatentAttentionOnAHopper) {
  Gpu gpu = load_gpu("h800-80");
  gpu.bf16 = gpu.bf16 * (112.0 / gpu.sm_count);
  gpu.sm_count = 112;
  AttentionWork work = {
      .queries = 4096, .keys = 4096, .heads = 128, .kv_heads = 128, .dim = 192, .values = 128, .causal = true};
  EXPECT_NEAR(attention_formula(gpu, work).value / 1.237e-3, 1, 0.06);
  work.backward = true;
  EXPECT_NEAR(attention_formula(gpu, work).value / 3.78e-3, 1, 0.06);  // of this kernel alone, as the trace lists it
}

// Long runs keep part of the rate, though not of what fills blocks; older kernels' shares of the peak are of long runs, with the kernels
// beside the backward.
TEST(AttentionFormula, OwnKernelsOnly) {
  const AttentionWork forward = kLong;
  AttentionWork backward = kLong;
  backward.backward = true;
  for (const char* name : {"h200", "gb200", "a100-80"}) {
    const Gpu gpu = load_gpu(name);
    const bool own = std::string(name) != "a100-80";
    EXPECT_EQ(is_own_kernel(gpu, FlashKernel::Newest), own);
    EXPECT_FALSE(is_own_kernel(gpu, FlashKernel::Two));
    EXPECT_EQ(is_own_kernel(gpu, FlashKernel::Deterministic), std::string(name) == "h200");
    EXPECT_EQ(attention_time(gpu, forward, FlashKernel::Newest).value > 1.03 * seconds(gpu, forward), own);
    EXPECT_EQ(attention_passes(gpu, backward, FlashKernel::Newest).value > 0, own);
    EXPECT_EQ(attention_passes(gpu, forward, FlashKernel::Newest), Seconds{});
    EXPECT_EQ(attention_passes(gpu, backward, FlashKernel::Two), Seconds{});
  }
}

}  // namespace
}  // namespace foreshard::attention_formula_test
