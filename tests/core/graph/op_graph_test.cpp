#include "core/graph/op_graph.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/base/error.h"
#include "tests/core/support_models.h"

namespace foreshard::op_graph_test {
namespace {

std::int64_t elements(const std::vector<std::int64_t>& dims) {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) n *= d;
  return n;
}

const Operator& named(const LayerGraph& layer, const std::string& name) {
  for (const Operator& op : layer.operators) {
    if (op.name == name) return op;
  }
  throw Error("no operator " + name);
}

Flops flops_of(const OpGraph& graph) {
  Flops sum = {};
  for (const auto& layer : graph.layers) {
    for (const Operator& op : graph.kinds[static_cast<std::size_t>(layer.kind)].operators) {
      sum += op.forward.flops + op.input_grad.flops + op.weight_grad.flops;
    }
  }
  return sum;
}

// Parameters of the whole model, from the shards of one rank: split ones times tp.
std::int64_t parameters_of(const OpGraph& graph, int tp) {
  std::int64_t sum = 0;
  for (const auto& layer : graph.layers) {
    for (const Parameter& p : graph.kinds[static_cast<std::size_t>(layer.kind)].parameters) {
      if (p.tied) continue;
      sum += elements(p.local) * (p.split_dim >= 0 ? tp : 1);
      EXPECT_EQ(elements(p.local) * (p.split_dim >= 0 ? tp : 1), elements(p.shape)) << p.name;
    }
  }
  return sum;
}

// Every value has one producer (or is the input), is produced before it is used, and saved and weight indices exist.
void expect_well_formed(const LayerGraph& layer) {
  std::vector<int> produced(layer.values.size(), 0);
  if (layer.input >= 0) ++produced[static_cast<std::size_t>(layer.input)];
  std::set<std::string> names, weights;
  for (const Operator& op : layer.operators) {
    EXPECT_TRUE(names.insert(op.name).second) << "twice: " << op.name;
    for (const int v : op.inputs) EXPECT_EQ(produced.at(static_cast<std::size_t>(v)), 1) << op.name;
    for (const int v : op.outputs) ++produced.at(static_cast<std::size_t>(v));
    for (const int v : op.saved) EXPECT_EQ(produced.at(static_cast<std::size_t>(v)), 1) << op.name;
    for (const int w : op.weights) {
      EXPECT_TRUE(weights.insert(layer.parameters.at(static_cast<std::size_t>(w)).name).second) << op.name;
    }
    if (!op.communication) {
      EXPECT_FALSE(op.shapes.empty()) << op.name;
    }
    EXPECT_TRUE(op.communication || !op.outputs.empty()) << op.name;
  }
  for (std::size_t v = 0; v < produced.size(); ++v) EXPECT_EQ(produced[v], 1) << layer.values[v].name;
  EXPECT_EQ(weights.size(), layer.parameters.size()) << "every parameter has one operator";
  if (layer.output >= 0) {
    EXPECT_LT(static_cast<std::size_t>(layer.output), layer.values.size());
  }
}

// 12 L h^2 (1 + 13 / 12h) + (V + positions) h + 2 h, Narayanan et al. 2021 eq. 2 with the final norm.
TEST(OpGraph, ParametersOfGpt3) {
  const Model model = gpt(96, 12288, 96);
  const std::int64_t h = 12288;
  const std::int64_t expected = 96 * (12 * h * h + 13 * h) + (51200 + 2048) * h + 2 * h;
  EXPECT_EQ(expected, 174615846912);
  for (const int tp : {1, 8}) EXPECT_EQ(parameters_of(build_op_graph(model, {.seq = 2048, .tp = tp}), tp), expected);
}

TEST(OpGraph, ParametersOfLlama2) {
  EXPECT_EQ(parameters_of(build_op_graph(llama(32, 4096, 11008, 32, 32, 32000), {.seq = 4096, .tp = 2}), 2), 6738415616);
  EXPECT_EQ(parameters_of(build_op_graph(llama(80, 8192, 28672, 64, 8, 32000), {.seq = 4096, .tp = 8}), 8), 68976648192);
}

// In 8 bits are the factors of the layers' linear products: not those of the heads, not attention, and no value.
TEST(OpGraph, EightBitsAreTheFactorsOfLinearLayers) {
  Transformer bert{.causal = false, .layers = 2, .hidden = 64, .ffn_hidden = 256, .heads = 4, .kv_heads = 4, .head_dim = 16};
  bert.vocab = 256, bert.max_positions = 32, bert.token_types = 2, bert.pooler = bert.mlm_head = true;
  for (const Model& model : {gpt(2, 64, 4, 256, 32), llama(2, 64, 96, 4, 4, 256), Model{.name = "bert", .shape = bert}})
    for (const bool flash : {true, false})
      for (const int tp : {1, 2}) {
        Sharding sharding = {.micro_batch = 2,
                             .seq = 32,
                             .tp = tp,
                             .sequence_parallel = tp > 1 && model.name != "bert",
                             .flash_attention = flash};
        const OpGraph plain = build_op_graph(model, sharding);
        sharding.factors = DType::F8;
        OpGraph eighth = build_op_graph(model, sharding);
        std::set<std::string> found;
        for (LayerGraph& layer : eighth.kinds)
          for (Operator& op : layer.operators)
            for (Shape& shape : op.shapes) {
              if (shape.dtype != DType::F8) continue;
              found.insert(op.name);
              EXPECT_TRUE(is<ops::MatMul>(op.op) && op.module != "head" && layer.kind != "head")
                  << layer.kind << " " << op.name;
              shape.dtype = DType::BF16;
            }
        EXPECT_EQ(eighth, plain) << model.name;
        EXPECT_EQ(found, (std::set<std::string>{"qkv", "projection", "fc1", "fc2"})) << model.name;
      }
}

// Megatron: 72 B s L h^2 (1 + s / 6h + V / 12 L h), forward and backward.
TEST(OpGraph, ModelFlopsOfGpt) {
  const double s = 2048, L = 96, h = 12288, V = 51200;
  EXPECT_DOUBLE_EQ(model_flops_per_sample(gpt(96, 12288, 96), 2048).value,
                   72 * s * L * h * h * (1 + s / (6 * h) + V / (12 * L * h)));
}

TEST(OpGraph, VocabularyIsPaddedToMultipleTimesTensorParallel) {
  const OpGraph graph = build_op_graph(gpt(2, 64, 4, 50257, 32), {.seq = 32, .tp = 2, .vocab_multiple = 128});
  EXPECT_EQ(graph.kinds[0].parameters[0].shape[0], 50432);  // 256 * 197
  EXPECT_EQ(graph.kinds[0].parameters[0].local[0], 25216);
}

// Two all-reduces forward and two backward, each b s h elements (techniques.md B8).
TEST(OpGraph, TensorParallelLayerCommunicates) {
  const OpGraph graph = build_op_graph(gpt(2, 64, 4, 512, 32), {.micro_batch = 3, .seq = 32, .tp = 2});
  int forward = 0, backward = 0;
  for (const Operator& op : graph.kinds[1].operators) {
    if (!op.communication) continue;
    EXPECT_EQ(op.communication->bytes.value, 3 * 32 * 64 * 2);
    if (op.communication->forward) ++forward;
    if (op.communication->backward) ++backward;
    EXPECT_TRUE(op.outputs.empty());
  }
  EXPECT_EQ(forward, 2);
  EXPECT_EQ(backward, 2);
}

TEST(OpGraph, SequenceParallelGathersAndScatters) {
  const OpGraph graph = build_op_graph(gpt(2, 64, 4, 512, 32), {.seq = 32, .tp = 2, .sequence_parallel = true});
  const LayerGraph& layer = graph.kinds[1];
  EXPECT_EQ(layer.values[static_cast<std::size_t>(layer.input)].dims, (std::vector<std::int64_t>{1, 16, 64}));
  const Operator& gather = named(layer, "qkv_gather");
  EXPECT_TRUE(gather.always_recompute);
  EXPECT_EQ(*gather.communication->forward, CollectiveKind::AllGather);
  EXPECT_EQ(*gather.communication->backward, CollectiveKind::ReduceScatter);
  EXPECT_EQ(gather.communication->bytes.value, 32 * 64 * 2);
}

// Four blocks of keys on four ranks: each but the own one comes by a turn, and its part is merged; a part keeps nothing of its own.
TEST(OpGraph, ARingHasABlockOfKeysAndATurnPerRank) {
  const OpGraph graph =
      build_op_graph(gpt(2, 64, 4, 512, 32), {.micro_batch = 3, .seq = 32, .cp = 4, .context = ContextKind::Ring});
  const LayerGraph& layer = graph.kinds[1];
  const int merged = named(layer, "merge.3").outputs[0];
  for (int block = 0; block < 4; ++block) {
    const Operator& part = named(layer, "attention." + std::to_string(block));
    const auto& op = std::get<ops::Attention>(part.op);
    EXPECT_EQ(op.split, (SequenceSplit{.ranks = 4, .chunks = 2}));
    EXPECT_EQ(op.blocks, 4);
    EXPECT_EQ(op.block, block);
    EXPECT_EQ(part.shapes[1].dims[1], 8);
    EXPECT_EQ(part.saved[2], merged);
    if (block == 0) continue;
    const Operator& turn = named(layer, "kv_turn." + std::to_string(block));
    EXPECT_TRUE(turn.communication->ring_exchange);
    EXPECT_EQ(turn.communication->bytes.value, 3 * 8 * 2 * 64 * 2);
  }
  EXPECT_THROW(
      build_op_graph(gpt(2, 64, 4, 512, 32), {.seq = 32, .cp = 4, .context = ContextKind::Ring, .flash_attention = false}),
      Error);
}

TEST(OpGraph, AnAllToAllDealsOutHeads) {
  const Sharding sharding = {.micro_batch = 3, .seq = 32, .cp = 2, .context = ContextKind::AllToAll};
  const OpGraph graph = build_op_graph(gpt(2, 64, 4, 512, 32), sharding);
  const Operator& attention = named(graph.kinds[1], "attention");
  EXPECT_EQ(attention.shapes[0].dims, (std::vector<std::int64_t>{3, 32, 2, 16}));
  EXPECT_EQ(std::get<ops::Attention>(attention.op).split.chunks, 0);
  EXPECT_EQ(named(graph.kinds[1], "qkv_all_to_all").communication->bytes.value, 3 * 16 * 3 * 64 * 2);
  EXPECT_EQ(named(graph.kinds[1], "context_all_to_all").communication->bytes.value, 3 * 16 * 64 * 2);
  EXPECT_THROW(build_op_graph(gpt(2, 64, 4, 512, 32), {.seq = 48, .cp = 3, .context = ContextKind::AllToAll}), Error);
}

TEST(OpGraph, CutsThatDoNotDivideAreRefused) {
  const Model model = gpt(2, 64, 4, 512, 32);
  EXPECT_THROW(build_op_graph(model, {.seq = 32, .tp = 3}), Error);
  EXPECT_THROW(build_op_graph(model, {.seq = 33}), Error);
  EXPECT_THROW(build_op_graph(model, {.seq = 6, .cp = 2}), Error);
  EXPECT_THROW(build_op_graph(model, {.seq = 30, .tp = 4, .sequence_parallel = true}), Error);
  EXPECT_THROW(build_op_graph(llama(2, 64, 96, 4, 2, 512), {.seq = 32, .tp = 4}), Error);
}

// OperatorTraits over random transformers and cuts: well-formed, ranks' FLOPs sum to the model's, shards to its parameters.
TEST(OpGraph, LawsOverRandomModels) {
  std::mt19937 random(7);
  const auto pick = [&](std::initializer_list<std::int64_t> from) { return *(from.begin() + random() % from.size()); };
  for (int round = 0; round < 300; ++round) {
    const int groups = static_cast<int>(pick({4, 8})), heads = groups * static_cast<int>(pick({1, 2, 3}));
    const std::int64_t hidden = heads * pick({8, 16});
    const bool gated = random() % 2 != 0;
    Model model = gated ? llama(static_cast<int>(pick({1, 3})), hidden, pick({128, 256}), heads, groups, 1000)
                        : gpt(static_cast<int>(pick({1, 3})), hidden, heads, 1000, 64);
    auto& t = std::get<Transformer>(model.shape);
    t.tied_embeddings = random() % 2 != 0;
    const bool encoder = random() % 3 == 0;
    if (encoder) {
      t.causal = t.final_norm = false;
      t.post_norm = t.embedding_norm = t.mlm_head = t.lm_head_bias = true;
      t.token_types = 2;
      t.pooler = random() % 2 != 0;
    }
    Sharding cut = {.micro_batch = pick({1, 3}),
                    .seq = 64,
                    .tp = static_cast<int>(pick({1, 2, 4})),
                    .cp = t.pooler ? 1 : static_cast<int>(pick({1, 2})),
                    .sequence_parallel = !t.pooler && random() % 2,
                    .flash_attention = random() % 2 != 0,
                    .dropout = random() % 2 ? 0.1 : 0.0,
                    .vocab_multiple = 8};
    const OpGraph graph = build_op_graph(model, cut);
    for (const LayerGraph& layer : graph.kinds) expect_well_formed(layer);
    // The MLM transform and the pooler are not cut over tp; without sequence parallelism each rank repeats them.
    const double per_rank = flops_of(graph).value;
    double repeated = 0;
    for (const Operator& op : graph.kinds[2].operators) {
      if (!op.communication &&
          (op.name == "pooler" || op.name == "next_sentence" || (op.name == "transform" && !cut.sequence_parallel))) {
        repeated += (op.forward.flops + op.input_grad.flops + op.weight_grad.flops).value;
      }
    }
    const double ranks = cut.tp * cut.cp;
    const double model_flops =
        static_cast<double>(cut.micro_batch) * model_flops_per_sample(model, cut.seq, cut.vocab_multiple * cut.tp).value;
    EXPECT_NEAR((per_rank * ranks - repeated * (cut.tp - 1) * cut.cp) / model_flops, 1.0, 1e-12);
    // A second cut has the same logical parameters.
    Sharding whole = cut;
    whole.vocab_multiple *= whole.tp;
    whole.tp = whole.cp = 1;
    EXPECT_EQ(parameters_of(graph, cut.tp), parameters_of(build_op_graph(model, whole), 1));
  }
}

}  // namespace
}  // namespace foreshard::op_graph_test
