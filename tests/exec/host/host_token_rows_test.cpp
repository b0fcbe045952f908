// Scores of tokens, the kept ones, their rows and back.
#include <gtest/gtest.h>

#include "tests/exec/host_arrays.h"

namespace foreshard::host_token_rows_test {
namespace {

std::vector<double> kept_of(const std::vector<double>& scores, std::int64_t samples, std::int64_t k, std::int64_t parts = 1) {
  const auto s = static_cast<std::int64_t>(scores.size()) / samples;
  std::vector<Array> in = {Array(scores, DType::F32)}, out = {Array(samples * k, DType::I64)};
  run_on({.op = ops::KeepTokens{.parts = parts}, .shapes = {{{samples, s, k}}}}, in, out);
  return out[0].values();
}

TEST(HostTokenRows, TheFirstTokenAndTheLargestScoresAreKeptOfEqualOnesTheFirst) {
  const std::vector<double> scores = {0, 5, 1, 5, 9, 5};
  EXPECT_EQ(kept_of(scores, 1, 1), (std::vector<double>{0}));
  EXPECT_EQ(kept_of(scores, 1, 2), (std::vector<double>{0, 4}));
  EXPECT_EQ(kept_of(scores, 1, 3), (std::vector<double>{0, 1, 4}));
  EXPECT_EQ(kept_of(scores, 1, 4), (std::vector<double>{0, 1, 3, 4}));
  EXPECT_EQ(kept_of(scores, 1, 6), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(kept_of({0, 1, 2, 9, 8, 7}, 2, 2), (std::vector<double>{0, 2, 0, 1}));  // each sample by itself
}

// Of each part equally many, with their places in the whole sequence; the first token of the sequence in any case.
TEST(HostTokenRows, EachPartKeepsItsOwn) {
  const std::vector<double> scores = {0, 5, 1, 5, 9, 6, 3, 2};
  EXPECT_EQ(kept_of(scores, 1, 2, 2), (std::vector<double>{0, 4}));
  EXPECT_EQ(kept_of(scores, 1, 4, 2), (std::vector<double>{0, 1, 4, 5}));
  EXPECT_EQ(kept_of(scores, 1, 4, 4), (std::vector<double>{0, 3, 4, 6}));
  EXPECT_EQ(kept_of(scores, 2, 2, 2), (std::vector<double>{0, 3, 0, 2}));
}

// A tensor-parallel rank puts the kept rows of its part of the sequence into the part.
TEST(HostTokenRows, EachRankPutsBackThoseOfItsPart) {
  const Array kept({0, 3, 1, 2}, DType::I64);  // of two samples of four tokens, one token of each half
  for (const int rank : {0, 1}) {
    const Compute put{.op = ops::PutRows{.parts = 2}, .shapes = {{{2, 2, 1, 1}}}};
    OpArguments arguments{.tp = 2, .tp_rank = rank};
    std::vector<Array> in = {Array({7, 8}, DType::F64), kept}, out = {Array(4, DType::F64)};
    run_on(put, in, out, arguments);
    const std::vector<double> first = {7, 0, 0, 8}, second = {0, 8, 7, 0};
    EXPECT_EQ(out[0].values(), rank == 0 ? first : second);
  }
}

// Ranks with two heads each find, after the sum of their scores, what one rank with four heads finds.
TEST(HostTokenRows, RanksThatSumTheirScoresKeepTheSameTokens) {
  const std::int64_t samples = 2, heads = 4, s = 12;
  const Array all = random_array(samples * heads * s * s, 3);
  const auto scores = [&](std::int64_t first, std::int64_t count) {
    Array part(samples * count * s * s, DType::F64);
    for (std::int64_t b = 0; b < samples; ++b)
      for (std::int64_t i = 0; i < count * s * s; ++i)
        part.set(b * count * s * s + i, all.at((b * heads + first) * s * s + i) * all.at((b * heads + first) * s * s + i));
    return outputs_of({.op = ops::TokenScores{}, .shapes = {{{samples, count, s, s}}}}, {part}, {samples * s})[0].values();
  };
  const std::vector<double> whole = scores(0, 4), one = scores(0, 2), other = scores(2, 2);
  std::vector<double> sum;
  for (std::size_t i = 0; i < one.size(); ++i) sum.push_back(one[i] + other[i]);
  EXPECT_EQ(kept_of(sum, samples, 5), kept_of(whole, samples, 5));
  EXPECT_NE(kept_of(one, samples, 5), kept_of(other, samples, 5));  // alone they would not agree
}

// Rows are [position, sample]: of two samples the kept positions differ.
TEST(HostTokenRows, RowsAreTakenAndPutBackAndEachIsTheOthersGradient) {
  const std::vector<double> x = {10, 20, 11, 21, 12, 22},
                            rows = {10, 20, 12, 21};  // sample 0 keeps 0 and 2, sample 1 keeps 0 and 1
  const Array kept({0, 2, 0, 1}, DType::I64);
  const std::vector<Shape> shape = {{{2, 3, 2, 1}}};
  EXPECT_EQ(outputs_of({.op = ops::TakeRows{}, .shapes = shape}, {Array(x, DType::F64), kept}, {4})[0].values(), rows);
  const std::vector<double> back = {10, 20, 0, 21, 12, 0};
  EXPECT_EQ(outputs_of({.op = ops::PutRows{}, .shapes = shape}, {Array(rows, DType::F64), kept}, {6})[0].values(), back);
  const Compute take{.op = ops::TakeRows{}, .phase = Phase::InputGrad, .shapes = shape};
  EXPECT_EQ(outputs_of(take, {Array(rows, DType::F64), kept}, {6})[0].values(), back);
  const Compute put{.op = ops::PutRows{}, .phase = Phase::InputGrad, .shapes = shape};
  EXPECT_EQ(outputs_of(put, {Array(x, DType::F64), kept}, {4})[0].values(), rows);
}

}  // namespace
}  // namespace foreshard::host_token_rows_test
