#include "cli/parts/calibrate_probes.h"

#include <array>

#include "core/base/error.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

// Neighbours differ by about a factor of 1.5 in one or two dimensions, so that any size between them is near a measured one.
constexpr std::array<ProbeSize, 14> kSizes = {{{48, 16, 24, 2, 192},
                                               {64, 16, 48, 4, 320},
                                               {96, 24, 32, 8, 512},
                                               {112, 28, 80, 1, 768},
                                               {144, 24, 56, 4, 448},
                                               {160, 40, 112, 2, 1280},
                                               {208, 52, 40, 6, 640},
                                               {224, 28, 176, 1, 960},
                                               {288, 48, 72, 4, 1536},
                                               {304, 76, 144, 2, 576},
                                               {352, 44, 208, 1, 2560},
                                               {416, 52, 88, 5, 1152},
                                               {448, 56, 272, 1, 1792},
                                               {544, 68, 136, 3, 3072}}};

// The strategies of the probes; each has two micro-batches.
std::vector<Strategy> ways() {
  const Recompute full{.kind = RecomputeKind::Full}, some{.kind = RecomputeKind::Selective};
  return {{.dp = 1},
          {.dp = 1, .tp = 2},
          {.dp = 1, .tp = 2, .sequence_parallel = true, .dropout = 0.1},
          {.dp = 2, .zero = {.stage = 1}},
          {.dp = 1, .recompute = full, .dropout = 0.1},
          {.dp = 1, .recompute = some, .attention = AttentionKernel::Unfused},
          {.dp = 2, .zero = {.stage = 3}},
          {.dp = 1, .tp = 2, .recompute = full, .attention = AttentionKernel::Flash},
          {.dp = 1, .pp = 2},
          {.dp = 2, .zero = {.stage = 2}, .optimizer = {.kind = OptimizerKind::Sgd}}};
}

Model pictures(std::int64_t channels, std::int64_t edge) {
  LayerList list{.input = {3, edge, edge}, .classes = 10};
  list.layers = {{.name = "conv1", .op = LayerOp::Conv2d, .features = channels, .kernel = 3, .padding = 1},
                 {.name = "bn1", .op = LayerOp::BatchNorm},
                 {.name = "relu1", .op = LayerOp::Relu},
                 {.name = "pool1", .op = LayerOp::MaxPool, .kernel = 2, .stride = 2},
                 {.name = "conv2", .op = LayerOp::Conv2d, .features = channels, .kernel = 3, .padding = 1},
                 {.name = "bn2", .op = LayerOp::BatchNorm},
                 {.name = "sum", .op = LayerOp::Add, .inputs = {"bn2", "pool1"}},
                 {.name = "relu2", .op = LayerOp::Relu},
                 {.name = "conv3", .op = LayerOp::Conv2d, .features = 2 * channels, .kernel = 1, .stride = 2},
                 {.name = "pool2", .op = LayerOp::AvgPool, .kernel = static_cast<int>(edge / 4)},
                 {.name = "flatten", .op = LayerOp::Flatten},
                 {.name = "fc", .op = LayerOp::Linear, .features = 10, .bias = true}};
  return {.name = "pictures", .shape = list};
}

}  // namespace

Model probe_model(ProbeFamily family, const ProbeSize& size) {
  Transformer t{.layers = 2,
                .hidden = size.hidden,
                .ffn_hidden = 4 * size.hidden,
                .heads = static_cast<int>(size.hidden / size.head_dim),
                .kv_heads = static_cast<int>(size.hidden / size.head_dim),
                .head_dim = size.head_dim,
                .vocab = size.vocab,
                .max_positions = size.seq};
  switch (family) {
    case ProbeFamily::Gpt: break;
    case ProbeFamily::Llama:
      t.ffn_hidden = size.hidden * 5 / 2;
      t.kv_heads = t.heads % 4 == 0 ? t.heads / 2 : t.heads;
      t.norm = NormKind::RmsNorm, t.activation = ActivationKind::SwiGlu, t.positions = PositionKind::Rope;
      t.qkv_bias = t.projection_bias = t.mlp_bias = t.tied_embeddings = false;
      break;
    case ProbeFamily::Bert:
      t.causal = false, t.token_types = 2;
      t.post_norm = t.embedding_norm = t.pooler = t.mlm_head = t.lm_head_bias = true;
      t.final_norm = false;
      break;
  }
  return {.name = "probe", .shape = t};
}

void add_probe(std::vector<Plan>& probes, const Model& model, Strategy strategy, const Cluster& cluster) {
  strategy.batch.global = 2 * strategy.batch.micro * strategy.dp;
  auto answer = tuned_plan(model, cluster, strategy, {.ignore_memory = true});
  if (auto* lowered = std::get_if<Lowered>(&answer)) probes.push_back(std::move(lowered->plan));
}

std::vector<Plan> calibration_probes(const Cluster& cluster, const std::vector<DType>& dtypes, std::int64_t largest_hidden) {
  std::vector<Plan> probes;
  const std::vector<Strategy> all = ways();
  for (const DType dtype : dtypes) {
    for (std::size_t i = 0; i < 3 * kSizes.size(); ++i) {
      const ProbeSize& size = kSizes[i % kSizes.size()];
      if (size.hidden > largest_hidden) continue;
      Strategy strategy = all[(i * 3 + i / kSizes.size()) % all.size()];
      strategy.precision = dtype, strategy.batch.micro = size.micro_batch;
      add_probe(probes, probe_model(static_cast<ProbeFamily>((i + i / kSizes.size()) % 3), size), strategy, cluster);
    }
    for (const std::int64_t channels : {8, 24})
      if (largest_hidden >= kSizes.back().hidden)
        add_probe(probes, pictures(channels, channels == 8 ? 32 : 16), {.dp = 1, .batch = {.micro = 4}, .precision = dtype},
                  cluster);
  }
  return probes;
}

}  // namespace foreshard
