// The layers of a model as a chain with times and bytes, and splits that follow from it.
#include "strategy/tune/partition_model.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/cluster_file/cluster_file.h"
#include "strategy/resolve/resolve.h"
#include "tests/core/support_models.h"

namespace foreshard::partition_model_test {
namespace {

// GPT of eight layers; samples of 64 tokens.
Model small() { return gpt(8, 256, 8, 50000, 64); }

Strategy resolved(int pp, const std::string& split = "") {
  Strategy strategy{.dp = 1, .pp = pp};
  strategy.batch = {.micro = 2, .global = 32};
  strategy.pipeline.layer_split = split;
  return std::get<Strategy>(resolve(small(), load_cluster("dgx-a100"), strategy));
}

}  // namespace

// A layer of h = 256: 12 h^2 + 13 h parameters, and it sends 2 samples x 64 tokens x h values. Parameters, gradients and values in bf16,
// Adam's states and the master copy in fp32: 2 + 2 + 12 bytes a parameter. Eight stages of a DGX have a GPU each.
TEST(PartitionModel, EqualLayersAreEqualInTheChain) {
  const Strategy strategy = resolved(4);
  const std::vector<ChainLayer> chain = layer_chain(small(), load_cluster("dgx-a100"), strategy, 8);
  ASSERT_EQ(chain.size(), 8U);
  const double parameters = 12.0 * 256 * 256 + 13 * 256;
  for (std::size_t i = 1; i + 1 < chain.size(); ++i) {
    EXPECT_EQ(chain[i], chain[1]) << i;
    EXPECT_NEAR(chain[i].weights, 2 * parameters, 0.01 * parameters);
    EXPECT_NEAR(chain[i].states, 16 * parameters, 0.01 * parameters);
    EXPECT_EQ(chain[i].output, 2.0 * 64 * 256 * 2);
  }
  EXPECT_EQ(chain.back().output, 0);
  // The loss of 50,000 words makes the last layer slower, the embedding makes the first one larger.
  EXPECT_GT(chain.back().forward, 1.5 * chain[1].forward);
  EXPECT_GT(chain.front().states, 16 * 50000.0 * 256);
}

// Under ZeRO 1 of eight replicas, a rank has an eighth of the optimizer states.
TEST(PartitionModel, ShardedStatesAreDivided) {
  Strategy strategy = resolved(4);
  const double whole = layer_chain(small(), load_cluster("dgx-a100"), strategy, 8)[1].states;
  strategy.dp = 8, strategy.zero.stage = 1;
  const double parameters = 12.0 * 256 * 256 + 13 * 256;
  EXPECT_NEAR(whole - layer_chain(small(), load_cluster("dgx-a100"), strategy, 8)[1].states, 12 * parameters * 7 / 8,
              0.01 * 12 * parameters);
}

// Where the cluster has too few GPUs, the plan has more nodes, and the times are the same.
TEST(PartitionModel, MoreLayersThanGpus) {
  Model deep = small();
  std::get<Transformer>(deep.shape).layers = 12;
  const std::vector<ChainLayer> chain = layer_chain(deep, load_cluster("dgx-a100"), resolved(4), 12);
  ASSERT_EQ(chain.size(), 12U);
  EXPECT_EQ(chain[1].forward, layer_chain(small(), load_cluster("dgx-a100"), resolved(4), 8)[1].forward);
}

// The head costs as much as some layers, so the last stage gets fewer; every layer is in a stage. A stated split does not matter.
TEST(PartitionModel, TheSplitBalancesTheHead) {
  const std::string split = balanced_split(small(), load_cluster("dgx-a100"), resolved(4), 8);
  const std::vector<int> counts = parse_layer_split(split, "split");
  ASSERT_EQ(counts.size(), 4U) << split;
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 8);
  EXPECT_LT(counts.back(), 2) << split;
  EXPECT_EQ(balanced_split(small(), load_cluster("dgx-a100"), resolved(4, "5,1x3"), 8), split);
}

TEST(PartitionModel, NothingToSplit) {
  EXPECT_EQ(balanced_split(small(), load_cluster("dgx-a100"), resolved(1), 8), "");
  Strategy strategy = resolved(4);
  strategy.pp = 16;
  EXPECT_EQ(balanced_split(small(), load_cluster("dgx-a100-x4"), strategy, 8), "");
}

}  // namespace foreshard::partition_model_test
