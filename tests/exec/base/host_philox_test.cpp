// The generator, initial weights, and samples: equal bits under every sharding.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/error.h"
#include "exec/arithmetic/host_init.h"
#include "exec/base/philox.h"
#include "tests/exec/host_arrays.h"

namespace foreshard::host_philox_test {
namespace {

// Known answers of Random123 (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t all = 0xffffffff;
  EXPECT_EQ(philox({all, all, all, all}, {all, all}), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, ManyAtOnceAreTheSame) {
  const std::uint64_t seed = 0x123456789abcdef0, stream = 0xfedcba9876543210, first = 0xfffffffa;  // crosses 32 bits
  for (const std::size_t count : {1u, 5u, 16u, 37u}) {
    std::vector<PhiloxBlock> blocks(count);
    philox_words(seed, stream, first, blocks);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(blocks[i], philox(seed, stream, first + i)) << count << " " << i;
  }
}

// Sums of n independent numbers of variance 1: the mean is within 5 / sqrt(n), the variance within 5 sqrt(2 / n).
TEST(Philox, StandardNormalNumbers) {
  constexpr int n = 100'000;
  double sum = 0, squares = 0, largest = 0;
  for (int i = 0; i < n; ++i) {
    const double x = standard_normal(1, 2, static_cast<std::uint64_t>(i));
    sum += x, squares += x * x, largest = std::max(largest, std::abs(x));
  }
  EXPECT_LT(std::abs(sum / n), 5 / std::sqrt(n));
  EXPECT_LT(std::abs(squares / n - 1), 5 * std::sqrt(2.0 / n));
  EXPECT_GT(largest, 3.5);
  EXPECT_LT(largest, 4.9);
}

TEST(Philox, ManyNormalNumbersAtOnceAreTheSame) {
  std::vector<double> numbers(600);
  standard_normals(3, 4, 0xfffffff0, numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], standard_normal(3, 4, 0xfffffff0 + i)) << i;
}

TEST(Philox, KeysDiffer) {
  std::set<std::uint64_t> keys;
  for (std::uint64_t a = 0; a < 50; ++a)
    for (std::uint64_t b = 0; b < 50; ++b) keys.insert(mix_keys(a, b));
  EXPECT_EQ(keys.size(), 2500u);
  EXPECT_NE(name_key("layers.1.fc1.weight"), name_key("layers.11.fc1.weight"));
}

// ---- initial weights ----

std::vector<double> initial(const Tensor& tensor, const ShardCut& cut, std::int64_t first, std::int64_t count,
                            DType dtype = DType::F64) {
  Array out(count, dtype);
  fill_initial(tensor, cut, first, 9, out.operand());
  return out.values();
}

// The oracle: walk the whole tensor in order and keep what belongs to the part, block by block.
std::vector<double> cut_by_hand(const Tensor& tensor, const ShardCut& cut) {
  std::int64_t size = 1, inner = 1;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    size *= tensor.shape[d];
    if (static_cast<int>(d) > cut.dim) inner *= tensor.shape[d];
  }
  const std::vector<double> all = initial(tensor, {}, 0, size);
  const std::int64_t length = tensor.shape[static_cast<std::size_t>(cut.dim)];
  std::vector<std::int64_t> blocks = cut.blocks.empty() ? std::vector{length} : cut.blocks;
  std::vector<double> part;
  for (std::int64_t i = 0; i < size; ++i) {
    std::int64_t row = i / inner % length;
    for (const std::int64_t block : blocks) {
      if (row < block) {
        if (row / (block / cut.parts) == cut.part) part.push_back(all[static_cast<std::size_t>(i)]);
        break;
      }
      row -= block;
    }
  }
  return part;
}

TEST(HostInit, EveryShardIsTheSameBits) {
  const Tensor tensor{.name = "layers.0.qkv.weight", .shape = {24, 5}, .init = "normal(0.02)"};
  const Tensor cube{.name = "cube", .shape = {3, 8, 5}, .init = "normal(1)"};
  const std::vector<std::pair<Tensor, ShardCut>> cases = {
      {tensor, {.dim = 0}},
      {tensor, {.dim = 0, .parts = 4}},
      {tensor, {.dim = 0, .blocks = {8, 8, 8}, .parts = 2}},
      {tensor, {.dim = 0, .blocks = {16, 4, 4}, .parts = 4}},  // grouped-query: 16 query rows, 4 key rows, 4 value rows
      {tensor, {.dim = 1, .parts = 5}},
      {cube, {.dim = 1, .blocks = {4, 4}, .parts = 2}}};
  for (const auto& [from, pattern] : cases)
    for (std::int64_t part = 0; part < pattern.parts; ++part) {
      ShardCut cut = pattern;
      cut.part = part;
      const std::vector<double> expected = cut_by_hand(from, cut);
      ASSERT_EQ(shard_elements(from.shape, cut), static_cast<std::int64_t>(expected.size()));
      EXPECT_EQ(initial(from, cut, 0, shard_elements(from.shape, cut)), expected);
      // A flat slice of the part, past its end: zeros.
      std::vector<double> tail(expected.end() - 3, expected.end());
      tail.insert(tail.end(), 4, 0.0);
      EXPECT_EQ(initial(from, cut, shard_elements(from.shape, cut) - 3, 7), tail);
    }
}

TEST(HostInit, TensorsSeedsAndTypes) {
  const Tensor a{.name = "a", .shape = {100}, .init = "normal(0.5)"}, b{.name = "b", .shape = {100}, .init = "normal(0.5)"};
  EXPECT_NE(initial(a, {}, 0, 100), initial(b, {}, 0, 100));
  const std::vector<double> exact = initial(a, {}, 0, 100);
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16})
    EXPECT_EQ(initial(a, {}, 0, 100, dtype), Array(exact, dtype).values());
  EXPECT_EQ(initial({.name = "o", .shape = {3}, .init = "ones"}, {}, 0, 4), (std::vector<double>{1, 1, 1, 0}));
  EXPECT_EQ(initial({.name = "z", .shape = {3}, .init = "zeros"}, {}, 0, 3), (std::vector<double>{0, 0, 0}));
}

TEST(HostInit, WrongInitIsAnError) {
  for (const char* init : {"uniform", "normal(", "normal(x)", "normal(1) ", ""}) {
    Array out(1, DType::F32);
    try {
      fill_initial({.name = "w", .shape = {1}, .init = init}, {}, 0, 1, out.operand());
      ADD_FAILURE() << init;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   (std::string("plan: tensors.w.init: found ") + init + ", expected normal(number), zeros or ones").c_str());
    }
  }
}

// ---- samples ----

TEST(RandomSamples, AnyWindowOfASampleIsTheSame) {
  const RandomSamples samples(4);
  std::vector<std::int64_t> all(40), part(7);
  samples.tokens(123, 0, 50, all);
  samples.tokens(123, 11, 50, part);
  EXPECT_EQ(part, std::vector<std::int64_t>(all.begin() + 11, all.begin() + 18));
  std::set<std::int64_t> seen(all.begin(), all.end());
  EXPECT_GT(seen.size(), 20u);
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), 50);
  std::vector<std::int64_t> other(40);
  samples.tokens(124, 0, 50, other);
  EXPECT_NE(all, other);
  std::vector<double> features(10), tail(3);
  samples.features(5, 0, features);
  samples.features(5, 7, tail);
  EXPECT_EQ(tail, std::vector<double>(features.begin() + 7, features.end()));
  std::set<std::int64_t> labels;
  for (int i = 0; i < 100; ++i) labels.insert(samples.label(i, 4));
  EXPECT_EQ(labels, (std::set<std::int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace foreshard::host_philox_test
