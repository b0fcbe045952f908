// Memory oracles (published numbers, docs and papers named per test) from the engine's buffers.
#include <cmath>

#include "core/cluster_file/cluster_file.h"
#include "tests/core/support_models.h"
#include "tests/how_many.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::lower_memory_test {

namespace {

// Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", table 3 models. 16-bit, dropout,
// unfused attention, s 2048, V 51200.
struct Korthikanti {
  const char* name;
  int heads;
  std::int64_t hidden;
  int layers, t, p, v;
  std::int64_t b;
  double tp_only, sp_selective;  // GiB of activations on the first stage, figure 1
};
constexpr Korthikanti kModels[] = {
    {"22B", 64, 6144, 48, 8, 1, 1, 4, 59.25, 9.5625},
    {"175B", 96, 12288, 96, 8, 8, 3, 1, 66.84375, 12.3515625},
    {"530B", 128, 20480, 105, 8, 35, 3, 1, 114.0234375, 23.076171875},
    {"1T", 160, 25600, 128, 8, 64, 1, 1, 131.25, 26.5625},
};

Model published(const Korthikanti& k) { return gpt(k.layers, k.hidden, k.heads); }

// Most bytes of activations that a role's order lets wait for their backward, walking its actions in issue order. Of the ends
// only the value that the first transformer layer reads: tokens, masks and logits are not in the published figure.
double peak_activations(const Lowered& plan, std::int64_t layer_input_bytes, const std::string& last_output) {
  const Role& role = plan.plan.roles.front();
  const auto counts = [&](BufferId id) {
    const Buffer& buffer = role.buffers[id.index()];
    if (buffer.category != Category::Activations || buffer.name.starts_with("head")) return false;
    if (buffer.name == last_output) return false;  // what the head reads
    return !buffer.name.starts_with("embedding") || buffer.bytes.value == layer_input_bytes;
  };
  Bytes now = {}, most = {};
  for (const Action& action : role.actions)
    for (const Instruction& instruction : plan.plan.segments[action.segment.index()].instructions) {
      for (const Block& block : instruction.acquires)
        if (counts(block.buffer)) now += role.buffers[block.buffer.index()].bytes;
      most = std::max(most, now);
      for (const Block& block : instruction.releases)
        if (counts(block.buffer)) now -= role.buffers[block.buffer.index()].bytes;
    }
  EXPECT_EQ(now, Bytes{});
  return in_gib(most);
}

double first_stage_activations(const Korthikanti& k, bool sequence_parallel, RecomputeKind recompute) {
  Strategy s{.dp = 1, .tp = k.t, .pp = k.p, .virtual_stages = k.v, .sequence_parallel = sequence_parallel};
  s.batch.micro = k.b;
  s.batch.global = k.b * 4 * k.p;
  s.dropout = 0.1;
  s.attention = AttentionKernel::Unfused;
  s.recompute.kind = recompute;
  const Cluster cluster = load_cluster("dgx-a100-x" + std::to_string((k.t * k.p + 7) / 8));
  return peak_activations(lowered(published(k), cluster, s), 2 * 2048 * k.b * k.hidden / (sequence_parallel ? k.t : 1),
                          "layers." + std::to_string(k.layers - 1) + ".residual2_out.0");
}

}  // namespace

TEST(LowerMemory, FirstStageActivationsAreKorthikantisFigureOne) {
  for (const Korthikanti& k : some_of(std::vector(std::begin(kModels), std::end(kModels)), 2)) {
    EXPECT_DOUBLE_EQ(first_stage_activations(k, false, RecomputeKind::None), k.tp_only) << k.name;
    EXPECT_DOUBLE_EQ(first_stage_activations(k, true, RecomputeKind::Selective), k.sp_selective) << k.name;
  }
}

// ZeRO (Rajbhandari et al. 2020), table 1: GB of model states per GPU, K = 12. One linear layer has exactly the parameters.
TEST(LowerMemory, ZeroTableOne) {
  struct Row {
    double parameters;
    std::int64_t in, out;
    int ranks;
    const char* by_stage[4];  // as printed
  };
  const Row rows[] = {
      {7.5e9, 75'000, 100'000, 8, {"120", "41.25", "28.125", "15"}},
      {7.5e9, 75'000, 100'000, 64, {"120", "31.41", "16.64", "1.875"}},
      {7.5e9, 75'000, 100'000, 1024, {"120", "30.09", "15.10", "0.117"}},
      {128e9, 320'000, 400'000, 64, {"2048", "536", "284", "32"}},
      {1e12, 1'000'000, 1'000'000, 1024, {"16000", "4011.7", "2013.7", "15.6"}},
  };
  for (const Row& row : rows)
    for (int zero = 0; zero < 4; ++zero) {
      LayerList list{.input = {row.in}, .layers = {{.name = "linear", .features = row.out}}};
      const Lowered plan =
          lowered(Model{.name = "linear", .shape = list}, load_cluster("dgx-a100-x" + std::to_string(row.ranks / 8)),
                  Strategy{.zero = {.stage = zero}});
      const double gigabytes = static_cast<double>(sum(resident(plan.plan.roles.front())).value) / 1e9;
      const std::string printed = row.by_stage[zero];
      const std::size_t point = printed.find('.');
      const double last_digit =
          point == std::string::npos ? 1 : std::pow(10.0, -static_cast<double>(printed.size() - point - 1));
      EXPECT_NEAR(gigabytes, std::stod(printed), 0.51 * last_digit)  // and padding to whole elements
          << row.parameters << " parameters, " << row.ranks << " ranks, ZeRO " << zero;
    }
}

// Megatron 1T on 3072 GPUs: 64 stages of two layers, tp 8, dp 6 (SC'21). Bytes at 16 B per parameter; a layer has
// 12 h^2 + 13 h parameters, of which tp holds 12 h^2 + 7 h in eighths (QKV, fc1 and their biases, both projections) and 6 h
// whole (two norms, two biases after the row-parallel layers).
TEST(LowerMemory, TrillionParameterStates) {
  const Lowered plan =
      lowered("megatron-1t", "dgx-a100-x384", {.tp = 8, .pp = 64, .batch = {.micro = 1, .global = 3072}}, false);
  ASSERT_EQ(plan.plan.roles.size(), 64u);
  EXPECT_EQ(plan.strategy.dp, 6);
  const double h = 25600;
  const double layer = (12 * h * h + 7 * h) / 8 + 6 * h;
  const auto states = [&](std::size_t role) { return in_gib(sum(resident(plan.plan.roles[role]))); };
  EXPECT_NEAR(states(31), 16 * 2 * layer / 1073741824.0, 1e-3);  // units are padded to a multiple of nothing: ZeRO 0
  EXPECT_NEAR(states(31), 29.30, 0.005);
  // Stage 0: the token embedding (V h / 8) and the positions (s h) as well.
  EXPECT_NEAR(states(0), 16 * (2 * layer + 51200 * h / 8 + 2048 * h) / 1073741824.0, 1e-3);
  EXPECT_NEAR(states(0), 32.5, 0.75);
  // All distinct parameters over the 512 ranks of a replica: 16 * 1008.04e9 / 512.
  EXPECT_NEAR(16.0 * static_cast<double>(parameter_count(load_model("megatron-1t"))) / 512 / 1073741824.0, 29.34, 0.005);
}

TEST(LowerMemory, UnevenLayersAreRefusedUnlessSplitByHand) {
  Strategy s{.tp = 8, .pp = 64, .batch = {.global = 3072}};
  const Infeasible why = refused(load_model("gpt3-175b"), load_cluster("dgx-a100-x384"), s);
  EXPECT_NE(why.reason.find("96 layers do not divide evenly over 64 pipeline stages"), std::string::npos) << why.reason;
  EXPECT_EQ(why.would_help.front(), "--layer-split 2x32,1x32");
  s.pipeline.layer_split = "2x32,1x32";
  EXPECT_EQ(lowered("gpt3-175b", "dgx-a100-x384", s).plan.roles.size(), 64u);
}

}  // namespace foreshard::lower_memory_test
