// Partitions of a matrix product by what they move.
#include "strategy/partition/matmul_partition.h"

#include <gtest/gtest.h>

#include <random>

namespace foreshard::matmul_partition_test {
namespace {

constexpr Bytes kElement{1};  // volumes in elements

// x 4 x 5, w 5 x 8, two devices: by data 40 elements of dw; by columns 16 of y and 20 of dx.
TEST(MatmulPartition, TheToyProduct) {
  const MatmulShape toy{.batch = 4, .in = 5, .out = 8};
  const MovedBytes data = moved_bytes(MatmulPartition::Data, toy, 2, kElement);
  EXPECT_EQ(data.forward, 0);
  EXPECT_EQ(data.backward, 40);
  const MovedBytes columns = moved_bytes(MatmulPartition::Columns, toy, 2, kElement);
  EXPECT_EQ(columns.forward, 16);
  EXPECT_EQ(columns.backward, 20);
  EXPECT_EQ(cheapest_partition(toy, 2), MatmulPartition::Columns);  // 80 > 72
}

// By data is cheaper than by columns exactly when 2 I O < B (O + 2 I), whatever the number of devices: nobody wrote that rule down.
TEST(MatmulPartition, DataOrModelIsTheKnownRule) {
  std::mt19937 random(5);
  const auto draw = [&](std::int64_t most) { return 1 + static_cast<std::int64_t>(random()) % most; };
  int data = 0;
  for (int i = 0; i < 20'000; ++i) {
    const MatmulShape shape{.batch = draw(300), .in = draw(200), .out = draw(200)};
    const int n = static_cast<int>(1 + draw(16));
    const double by_data = moved_bytes(MatmulPartition::Data, shape, n, kElement).sum();
    const double by_columns = moved_bytes(MatmulPartition::Columns, shape, n, kElement).sum();
    const std::int64_t gradients = 2 * shape.in * shape.out, maps = shape.batch * (shape.out + 2 * shape.in);
    if (gradients == maps)
      EXPECT_NEAR(by_data, by_columns, 1e-9 * by_data);
    else
      EXPECT_EQ(by_data < by_columns, gradients < maps);
    data += gradients < maps ? 1 : 0;
  }
  EXPECT_GT(data, 5000);
  EXPECT_LT(data, 19'000);
}

// On 8 GPUs: a 3 x 3 convolution of 64 channels over 56 x 56 pixels and 32 pictures goes by data, a square layer of 8192 with 8 samples does not.
TEST(MatmulPartition, LargeMapsByDataManyParametersByModel) {
  EXPECT_EQ(cheapest_partition({.batch = std::int64_t{32} * 56 * 56, .in = 9 * 64, .out = 64}, 8), MatmulPartition::Data);
  EXPECT_NE(cheapest_partition({.batch = 8, .in = 8192, .out = 8192}, 8), MatmulPartition::Data);
}

// A first product by columns and a second by rows share the layout between them: the all-gather and the split of Megatron's pair fall away.
TEST(MatmulPartition, ColumnsThenRowsNeedNothingBetween) {
  EXPECT_EQ(layouts_of(MatmulPartition::Columns).y, layouts_of(MatmulPartition::Rows).x);
  EXPECT_EQ(conversion_bytes(layouts_of(MatmulPartition::Columns).y, layouts_of(MatmulPartition::Rows).x, {1000}, 4), 0);
}

}  // namespace
}  // namespace foreshard::matmul_partition_test
