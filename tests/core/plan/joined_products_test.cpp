// Which products a GPU computes together with their GELU: segments of five instructions, one thing changed at a time.
#include "core/plan/joined_products.h"

#include <gtest/gtest.h>

namespace foreshard::joined_products_test {
namespace {

Use buffer(int number) { return {.buffer = {number}}; }

Instruction product(Phase phase, std::vector<Use> reads, Use to) {
  return {.what = Compute{.op = ops::MatMul{}, .phase = phase, .shapes = {{{1, 8, 8, 8}, DType::BF16}}},
          .stream = {0},
          .reads = std::move(reads),
          .writes = {to}};
}
Instruction gelu(Phase phase, std::vector<Use> reads, Use to) {
  return {.what = Compute{.op = ops::Activation{}, .phase = phase, .shapes = {{{8, 8}, DType::BF16}}},
          .stream = {0},
          .reads = std::move(reads),
          .writes = {to}};
}

// y = x w; z = gelu(y), and backward d y = d z v; d v = d z^T z; d x = d y gelu'.
Segment forward() {
  return {.instructions = {product(Phase::Forward, {buffer(0), buffer(1)}, buffer(2)),
                           gelu(Phase::Forward, {buffer(2)}, buffer(3))}};
}
Segment backward() {
  return {.instructions = {product(Phase::InputGrad, {buffer(4), buffer(5)}, buffer(6)),
                           product(Phase::WeightGrad, {buffer(4), buffer(3)}, buffer(7)),
                           gelu(Phase::InputGrad, {buffer(6), buffer(2)}, buffer(8))}};
}
Compute& compute(Segment& segment, std::size_t at) { return std::get<Compute>(segment.instructions[at].what); }

TEST(JoinedProducts, ForwardAndBackward) {
  EXPECT_EQ(joined_products(forward()), (std::vector<JoinedProduct>{{0, 1}}));
  EXPECT_EQ(joined_products(backward()), (std::vector<JoinedProduct>{{0, 2}}));
  Segment both = forward();
  for (const Instruction& instruction : backward().instructions) both.instructions.push_back(instruction);
  EXPECT_EQ(joined_products(both), (std::vector<JoinedProduct>{{0, 1}, {2, 4}}));
}

TEST(JoinedProducts, OtherStreamsStandBetween) {
  Segment segment = forward();
  const Instruction copy = {.what = Copy{}, .stream = {1}};
  segment.instructions.insert(segment.instructions.begin() + 1, copy);
  EXPECT_EQ(joined_products(segment), (std::vector<JoinedProduct>{{0, 2}}));
  segment.instructions[1].stream = {0};
  EXPECT_TRUE(joined_products(segment).empty());
  Segment apart = forward();
  apart.instructions[1].stream = {1};
  EXPECT_TRUE(joined_products(apart).empty());
}

TEST(JoinedProducts, WhatIsNotJoined) {
  Segment other = forward();
  other.instructions[1].reads = {buffer(9)};
  EXPECT_TRUE(joined_products(other).empty());
  Segment single = forward();
  compute(single, 0).shapes.front().dtype = DType::F32;
  EXPECT_TRUE(joined_products(single).empty());
  Segment relu = forward();
  compute(relu, 1).op = ops::Activation{.function = ops::Activation::Function::Relu};
  EXPECT_TRUE(joined_products(relu).empty());
  Segment added = backward();
  compute(added, 0).accumulate = true;
  EXPECT_TRUE(joined_products(added).empty());
  Segment split = forward();
  split.instructions[0].writes.push_back(buffer(9));
  EXPECT_TRUE(joined_products(split).empty());
  Segment crossed = forward();
  compute(crossed, 1).phase = Phase::InputGrad;
  EXPECT_TRUE(joined_products(crossed).empty());
}

}  // namespace
}  // namespace foreshard::joined_products_test
