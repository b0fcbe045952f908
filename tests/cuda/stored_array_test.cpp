// Arrays in any format, read and written as doubles.
#include "exec/cuda/stored_array.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foreshard::gpu::stored_array_test {
namespace {

// Not the constructor that takes a number of elements, which braces around one number would call.
StoredArray of(const std::vector<double>& values, DType dtype) { return {values, dtype}; }

}  // namespace

// bf16 has 8 significant bits: 257 rounds to 256 (nearest even), 1/3 to 0.333984375. fp16 has 11. Integers are exact.
TEST(StoredArray, ValuesAreRoundedToTheFormat) {
  EXPECT_EQ(of({257, 1.0 / 3}, DType::BF16).at(0), 256);
  EXPECT_EQ(of({257, 1.0 / 3}, DType::BF16).at(1), 0.333984375);
  EXPECT_EQ(of({257.0}, DType::F16).at(0), 257);
  EXPECT_EQ(of({0.1}, DType::F64).at(0), 0.1);
  EXPECT_EQ(of({0.1}, DType::F32).at(0), static_cast<double>(0.1F));
  EXPECT_EQ(of({-123456789012.0}, DType::I64).at(0), -123456789012.0);
  EXPECT_EQ(of({200.0}, DType::U8).at(0), 200);
}

TEST(StoredArray, IntegersHaveNoNan) {
  EXPECT_EQ(of({std::nan("")}, DType::I64).at(0), -77);
  EXPECT_EQ(of({std::nan("")}, DType::U8).at(0), 77);
  EXPECT_TRUE(std::isnan(of({std::nan("")}, DType::BF16).at(0)));
}

TEST(StoredArray, AnOperandIsTheMemory) {
  StoredArray array(3, DType::F32);
  const Operand operand = array.operand();
  EXPECT_EQ(operand.elements, 3);
  EXPECT_EQ(operand.dtype, DType::F32);
  reinterpret_cast<float*>(operand.data)[2] = 5;
  EXPECT_EQ(array.at(2), 5);
  array.set(1, 7);
  EXPECT_EQ(reinterpret_cast<const float*>(operand.data)[1], 7);
}

// Of [1, -4] and [1.5, -4]: 0.5 off, beside a largest of 4.
TEST(StoredArray, ErrorsAreRelativeToTheLargest) {
  const StoredArray a = of({1.5, -4}, DType::F64), b = of({1, -4}, DType::F64), zeros(2, DType::F64);
  EXPECT_DOUBLE_EQ(relative_error(a, b), 0.125);
  EXPECT_EQ(relative_error(b, b), 0);
  EXPECT_DOUBLE_EQ(relative_error(b, zeros), 4);  // without a scale: the difference
  EXPECT_TRUE(std::isinf(relative_error(a, StoredArray(3, DType::F64))));
  EXPECT_TRUE(std::isinf(relative_error(of({std::nan(""), 0}, DType::F64), zeros)));
}

// 0 + 2 * 3 and 1 + 2 * 4: 6 and 9. A copy made before computes its own elements; one made after compute() has them.
TEST(StoredArray, ValuesAreComputedOnceAndNotBeforeTheyAreNeeded) {
  int calls = 0;
  StoredArray array(2, DType::F32, [&] { return ++calls, std::vector<double>{3, 4}; });
  const StoredArray before = array;
  array.change([](std::int64_t i, double x) { return static_cast<double>(i) + 2 * x; });
  EXPECT_EQ(array.size(), 2);
  EXPECT_EQ(calls, 0);
  array.compute();
  const StoredArray after = array;
  EXPECT_EQ(array.values(), (std::vector<double>{6, 9}));
  EXPECT_EQ(after.values(), (std::vector<double>{6, 9}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(before.at(1), 4);
  EXPECT_EQ(before.at(0), 3);
  EXPECT_EQ(calls, 2);
  StoredArray other(2, DType::F32, [] { return std::vector<double>{3, 4}; });
  other.set(0, 7);
  EXPECT_EQ(other.values(), (std::vector<double>{7, 4}));
  EXPECT_EQ(reinterpret_cast<const float*>(StoredArray(before).operand().data)[1], 4);
}

TEST(StoredArray, RandomArraysFollowTheirSeed) {
  const StoredArray a = random_array(100, 1, DType::F64), again = random_array(100, 1, DType::F64),
                    b = random_array(100, 2, DType::F64);
  EXPECT_EQ(relative_error(a, again), 0);
  EXPECT_GT(relative_error(a, b), 0.1);
}

TEST(StoredArray, RunsAnInstructionOnTheCpu) {
  std::vector<StoredArray> reads = {of({1, 2}, DType::F64), of({10, 20}, DType::F64)}, writes = {StoredArray(2, DType::F64)};
  run_on_host({.op = ops::Add{}, .shapes = {{{1, 1, 2}, DType::F64}}}, reads, writes, {});
  EXPECT_EQ(writes[0].at(0), 11);
  EXPECT_EQ(writes[0].at(1), 22);
}

}  // namespace foreshard::gpu::stored_array_test
