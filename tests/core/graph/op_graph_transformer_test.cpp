// Sizes of one rank of a transformer, and rows that a mixture of experts sends.
#include "core/graph/op_graph_transformer.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/support_models.h"

namespace foreshard::op_graph_transformer_test {
namespace {

Transformer small() { return std::get<Transformer>(llama(2, 64, 128, 8, 4, 250).shape); }

Transformer experts(std::int64_t count, std::int64_t chosen) {
  Transformer t = small();
  t.block.experts = {.count = count, .chosen = chosen, .width = 32};
  return t;
}

std::string refusal(const Transformer& t, const Sharding& sharding) {
  try {
    local_transformer(t, sharding);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

// 32 tokens over cp 2: 16 on a rank, 8 outside the tensor-parallel regions with tp 2. Eight heads and four key-value heads are halved.
// 250 words to a multiple of 2 * 16: 256.
TEST(LocalTransformer, SizesOfOneRank) {
  const Transformer t = small();
  const Sharding sharding{.micro_batch = 3, .seq = 32, .tp = 2, .cp = 2, .sequence_parallel = true, .vocab_multiple = 16};
  const LocalTransformer local = local_transformer(t, sharding);
  EXPECT_EQ(local.batch, 3);
  EXPECT_EQ(local.seq, 16);
  EXPECT_EQ(local.part, 8);
  EXPECT_EQ(local.heads, 4);
  EXPECT_EQ(local.kv_heads, 2);
  EXPECT_EQ(local.vocab, 256);
  EXPECT_EQ(local.split.ranks, 2);
  EXPECT_EQ(padded_vocab(t, 7), 252);
  EXPECT_EQ(context_width(t), 64);  // 8 heads of 8
}

TEST(LocalTransformer, SizesThatDoNotDivideAreRefused) {
  EXPECT_NE(refusal(small(), {.seq = 32, .tp = 3}).find("8 attention heads"), std::string::npos);
  EXPECT_NE(refusal(small(), {.seq = 32, .tp = 8}).find("4 key-value heads"), std::string::npos);
  // Causal: the sequence is cut in 2 cp chunks.
  EXPECT_NE(refusal(small(), {.seq = 30, .cp = 2}).find("2 x cp = 4"), std::string::npos);
  EXPECT_EQ(refusal(small(), {.seq = 32, .cp = 2}), "");
}

// 2 x 32 tokens choose 2 of 8 experts: 128 rows. Without expert parallelism all stay. Over ep 4 with a balanced load a rank receives
// 128 / 4 = 32 rows from each of 4 ranks.
TEST(Mixture, RoomOfABalancedLoad) {
  const Transformer t = experts(8, 2);
  const Sharding whole{.micro_batch = 2, .seq = 32}, cut{.micro_batch = 2, .seq = 32, .ep = 4};
  const Mixture here = mixture_of(local_transformer(t, whole), "zeros", 0);
  EXPECT_EQ(here.room, 128);
  EXPECT_EQ(here.expected, 128);
  EXPECT_EQ(here.capacity, 0);
  const Mixture spread = mixture_of(local_transformer(t, cut), "zeros", 0);
  EXPECT_EQ(spread.room, 32);
  EXPECT_EQ(spread.expected, 128);
}

// A capacity of 1.25 times the balanced 128 / 8 = 16 rows is 20 rows per expert; two experts on a rank. No expert takes more than all
// 64 tokens.
TEST(Mixture, CapacityLimitsTheRoom) {
  const Transformer t = experts(8, 2);
  const Sharding some{.micro_batch = 2, .seq = 32, .ep = 4, .expert_capacity = 1.25};
  const Mixture limited = mixture_of(local_transformer(t, some), "zeros", 0);
  EXPECT_EQ(limited.capacity, 20);
  EXPECT_EQ(limited.room, 40);
  EXPECT_EQ(limited.expected, 160);
  const Sharding much{.micro_batch = 2, .seq = 32, .ep = 4, .expert_capacity = 100};
  EXPECT_EQ(mixture_of(local_transformer(t, much), "zeros", 0).capacity, 64);
}

// Of a decoder layer: attention, then MLP; a mixture in place of the MLP has the router's product.
TEST(TransformerLayer, TheVariantDecidesOnExperts) {
  const Transformer t = experts(8, 2);
  const Sharding sharding{.seq = 32};
  const LocalTransformer local = local_transformer(t, sharding);
  const auto names = [](const LayerGraph& layer) {
    std::string all;
    for (const Operator& op : layer.operators) all += op.name + " ";
    return all;
  };
  const std::string dense = names(transformer_layer(local, "decoder", {})),
                    mixed = names(transformer_layer(local, "decoder", {.experts = true}));
  EXPECT_NE(dense.find("fc1 "), std::string::npos) << dense;
  EXPECT_EQ(dense.find("router"), std::string::npos) << dense;
  EXPECT_NE(mixed.find("router"), std::string::npos) << mixed;
}

}  // namespace foreshard::op_graph_transformer_test
