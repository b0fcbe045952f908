#include "strategy/frameworks/optimizer_shard.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace foreshard::optimizer_shard_test {
namespace {

using Elements = std::vector<double>;

// In the buffer: 200 from 0, 30 from 256, 100 from 320 to 420, filled up to 512.
TEST(OptimizerShard, RanksHoldPartsOfTheBuffer) {
  const Elements model = {100, 30, 200};
  EXPECT_EQ(optimizer_shard(model, 1, 0), model);
  EXPECT_EQ(optimizer_shard(model, 2, 0), Elements({200}));
  EXPECT_EQ(optimizer_shard(model, 2, 1), Elements({100, 30}));
  EXPECT_EQ(optimizer_shard(model, 4, 0), Elements({128}));
  EXPECT_EQ(optimizer_shard(model, 4, 1), Elements({72}));
  EXPECT_EQ(optimizer_shard(model, 4, 2), Elements({64, 30}));
  EXPECT_EQ(optimizer_shard(model, 4, 3), Elements({36}));
  // lcm(3, 128) = 384: 768 elements, 256 each; the last rank has only filling
  EXPECT_EQ(optimizer_shard(model, 3, 1), Elements({100, 30}));
  EXPECT_TRUE(optimizer_shard(model, 3, 2).empty());
}

// All ranks together hold every element once.
TEST(OptimizerShard, NothingIsLostOrHeldTwice) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 200; ++turn) {
    Elements model(1 + random() % 20);
    for (double& parameter : model) parameter = 1 + random() % 5000;
    const int ranks = 1 + static_cast<int>(random() % 9);
    double held = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Elements part = optimizer_shard(model, ranks, rank);
      held += std::accumulate(part.begin(), part.end(), 0.0);
    }
    EXPECT_EQ(held, std::accumulate(model.begin(), model.end(), 0.0));
  }
}

}  // namespace
}  // namespace foreshard::optimizer_shard_test
