// Where data enters and the loss leaves: lookups, cross-entropy, and a split vocabulary against a whole one.
#include <gtest/gtest.h>

#include <cmath>

#include "exec/base/philox.h"
#include "tests/exec/host_arrays.h"

namespace foreshard::host_ends_test {
namespace {

constexpr std::int64_t kSamples = 2, kPositions = 3, kTokens = kSamples * kPositions, kVocab = 10, kColumns = 12, kHidden = 4;

const RandomSamples& source() {
  static const RandomSamples samples(3);
  return samples;
}
OpArguments arguments(int tp = 1, int rank = 0) {
  return {.first_sample = 6,
          .samples = kSamples,
          .samples_of_step = 8,
          .tp = tp,
          .tp_rank = rank,
          .loss_scale = 16,
          .source = &source()};
}
std::int64_t token(std::int64_t sample, std::int64_t position) {
  std::int64_t out[1];
  source().tokens(6 + sample, position, kVocab, out);
  return out[0];
}
Array rows_of(const Array& x, std::int64_t columns, std::int64_t from, std::int64_t count, bool of_columns) {
  std::vector<double> part;
  for (std::int64_t i = 0; i < x.size(); ++i)
    if (const std::int64_t at = of_columns ? i % columns : i / columns; at >= from && at < from + count)
      part.push_back(x.at(i));
  return {part, DType::F64};
}

// ---- lookups ----

Compute lookup(Phase phase, std::int64_t rows) {
  return {.op = ops::TokenEmbedding{.vocab = kVocab}, .phase = phase, .shapes = {{{kTokens, kHidden, rows}, DType::F64}}};
}

TEST(HostEmbedding, RowsOfTokensAndTheirGradient) {
  const Array table = random_array(kColumns * kHidden, 1), dy = random_array(kTokens * kHidden, 2);
  std::vector<Array> reads = {table}, writes = {Array(kTokens * kHidden, DType::F64), Array(kTokens, DType::I64)};
  run_on(lookup(Phase::Forward, kColumns), reads, writes, arguments());
  std::vector<double> gradient(static_cast<std::size_t>(table.size()));
  for (std::int64_t p = 0; p < kPositions; ++p)
    for (std::int64_t s = 0; s < kSamples; ++s) {
      const std::int64_t row = p * kSamples + s;
      EXPECT_EQ(writes[1].at(row), token(s, p));
      for (std::int64_t c = 0; c < kHidden; ++c) {
        EXPECT_EQ(writes[0].at(row * kHidden + c), table.at(token(s, p) * kHidden + c));
        gradient[static_cast<std::size_t>(token(s, p) * kHidden + c)] += dy.at(row * kHidden + c);
      }
    }
  const Array dw = outputs_of(lookup(Phase::WeightGrad, kColumns), {dy, writes[1]}, {table.size()})[0];
  EXPECT_LT(relative_error(dw.values(), gradient), 1e-15);
}

// The ranks' rows sum to the whole lookup; their gradients are the parts of the whole gradient.
TEST(HostEmbedding, SplitVocabulary) {
  const Array table = random_array(kColumns * kHidden, 1), dy = random_array(kTokens * kHidden, 2);
  std::vector<Array> reads = {table}, whole = {Array(kTokens * kHidden, DType::F64), Array(kTokens, DType::I64)};
  run_on(lookup(Phase::Forward, kColumns), reads, whole, arguments());
  const Array dw = outputs_of(lookup(Phase::WeightGrad, kColumns), {dy, whole[1]}, {table.size()})[0];
  for (const int tp : {2, 3, 4}) {
    const std::int64_t rows = kColumns / tp;
    std::vector<double> sum(static_cast<std::size_t>(kTokens * kHidden));
    for (int rank = 0; rank < tp; ++rank) {
      std::vector<Array> own = {rows_of(table, kHidden, rank * rows, rows, false)}, out = whole;
      run_on(lookup(Phase::Forward, rows), own, out, arguments(tp, rank));
      EXPECT_EQ(out[1].values(), whole[1].values());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += out[0].at(static_cast<std::int64_t>(i));
      EXPECT_EQ(outputs_of(lookup(Phase::WeightGrad, rows), {dy, whole[1]}, {rows * kHidden}, arguments(tp, rank))[0].values(),
                rows_of(dw, kHidden, rank * rows, rows, false).values());
    }
    EXPECT_EQ(sum, whole[0].values());
  }
}

// Positions count over the whole sequence, also where a rank holds a part; types split the sequence in equal segments.
TEST(HostEmbedding, PositionsAndTypes) {
  const std::int64_t positions = 6, types = 2;
  const Array table = random_array(8 * kHidden, 1), type = random_array(types * kHidden, 2);
  for (const int tp : {1, 2, 3})
    for (int rank = 0; rank < tp; ++rank) {
      const std::int64_t part = positions / tp;
      const Array x = random_array(kSamples * part * kHidden, 3);
      const Array y = outputs_of({.op = ops::PositionEmbedding{.positions = true, .types = true, .sequence_parallel = true},
                                  .shapes = {{{kSamples, part, kHidden}, DType::F64}}},
                                 {x, table, type}, {x.size()}, arguments(tp, rank))[0];
      for (std::int64_t i = 0; i < x.size(); ++i) {
        const std::int64_t position = rank * part + i / (kSamples * kHidden), c = i % kHidden;
        EXPECT_NEAR(y.at(i), x.at(i) + table.at(position * kHidden + c) + type.at(position / 3 * kHidden + c), 1e-15);
      }
    }
}

TEST(HostEmbedding, Sample) {
  const Array x =
      outputs_of({.op = ops::Sample{}, .shapes = {{{kSamples, 3, 10, 10}, DType::F64}}}, {}, {kSamples * 300}, arguments())[0];
  std::vector<double> expected(300), second(300);
  source().features(6, 0, expected);
  source().features(7, 0, second);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(x.values(), expected);
}

// ---- losses ----

using Piece = ops::CrossEntropy::Piece;
using Target = ops::CrossEntropy::Target;

Compute loss_op(Piece piece, Phase phase = Phase::Forward, std::int64_t columns = kColumns, Target target = Target::NextToken) {
  return {.op = ops::CrossEntropy{.piece = piece, .target = target, .classes = kVocab},
          .phase = phase,
          .shapes = {{{kTokens, columns}, DType::F64}}};
}
std::vector<Array> whole_loss(const Array& logits, Target target = Target::NextToken) {
  std::vector<Array> reads = {logits};
  std::vector<Array> writes = {Array(kTokens * kColumns, DType::F64), Array(kTokens, DType::I64), Array(1, DType::F64)};
  run_on(loss_op(Piece::Whole, Phase::Forward, kColumns, target), reads, writes, arguments());
  return writes;
}

// loss = sum over rows of -log(softmax of the target) / (8 samples of the step * 3 positions); columns 10 and 11 are padding.
TEST(HostCrossEntropy, WholeVocabulary) {
  const Array logits = random_array(kTokens * kColumns, 1);
  for (const Target target_kind : {Target::NextToken, Target::Label}) {
    const std::vector<Array> out = whole_loss(logits, target_kind);
    const Array dx = outputs_of(loss_op(Piece::Whole, Phase::InputGrad), {out[0], out[1]}, {logits.size()}, arguments())[0];
    double loss = 0;
    for (std::int64_t row = 0; row < kTokens; ++row) {
      const std::int64_t sample = row % kSamples;
      const std::int64_t target =
          target_kind == Target::NextToken ? token(sample, row / kSamples + 1) : source().label(6 + sample, kVocab);
      EXPECT_EQ(out[1].at(row), target);
      double sum = 0;
      for (std::int64_t c = 0; c < kVocab; ++c) sum += std::exp(logits.at(row * kColumns + c));
      loss += std::log(sum) - logits.at(row * kColumns + target);
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const double p = c < kVocab ? std::exp(logits.at(row * kColumns + c)) / sum : 0;
        EXPECT_NEAR(out[0].at(row * kColumns + c), p, 1e-15);
        EXPECT_NEAR(dx.at(row * kColumns + c), 16 * (p - (c == target ? 1 : 0)) / 24, 1e-14);
      }
    }
    EXPECT_NEAR(out[2].at(0), loss / 24, 1e-14);
  }
}

// The three stages with the reductions between them done by hand.
TEST(HostCrossEntropy, SplitVocabularyIsTheSame) {
  const Array logits = random_array(kTokens * kColumns, 1);
  const std::vector<Array> whole = whole_loss(logits);
  const Array dx = outputs_of(loss_op(Piece::Whole, Phase::InputGrad), {whole[0], whole[1]}, {logits.size()}, arguments())[0];
  for (const int tp : {2, 3, 6, 12}) {  // at 6 the last rank holds padding only
    const std::int64_t columns = kColumns / tp;
    std::vector<double> maximum(kTokens, -INFINITY), sums(2 * kTokens);
    std::vector<Array> parts, exponentials;
    for (int rank = 0; rank < tp; ++rank) {
      parts.push_back(rows_of(logits, kColumns, rank * columns, columns, true));
      const Array own =
          outputs_of(loss_op(Piece::Max, Phase::Forward, columns), {parts.back()}, {kTokens}, arguments(tp, rank))[0];
      for (std::int64_t r = 0; r < kTokens; ++r)
        maximum[static_cast<std::size_t>(r)] = std::max(maximum[static_cast<std::size_t>(r)], own.at(r));
    }
    const Array row_max(maximum, DType::F64);
    for (int rank = 0; rank < tp; ++rank) {
      std::vector<Array> reads = {parts[static_cast<std::size_t>(rank)], row_max};
      std::vector<Array> writes = {Array(kTokens * columns, DType::F64), Array(2 * kTokens, DType::F64),
                                   Array(kTokens, DType::I64)};
      run_on(loss_op(Piece::Exp, Phase::Forward, columns), reads, writes, arguments(tp, rank));
      exponentials.push_back(writes[0]);
      EXPECT_EQ(writes[2].values(), whole[1].values());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += writes[1].at(static_cast<std::int64_t>(i));
    }
    const Array all(sums, DType::F64);
    EXPECT_NEAR(outputs_of(loss_op(Piece::Loss), {all, row_max}, {1}, arguments(tp, 0))[0].at(0), whole[2].at(0), 1e-14);
    for (int rank = 0; rank < tp; ++rank) {
      const Array own = outputs_of(loss_op(Piece::Exp, Phase::InputGrad, columns),
                                   {exponentials[static_cast<std::size_t>(rank)], all, whole[1]}, {kTokens * columns},
                                   arguments(tp, rank))[0];
      EXPECT_LT(relative_error(own.values(), rows_of(dx, kColumns, rank * columns, columns, true).values()), 1e-13) << tp;
    }
  }
}

TEST(HostSumOfSquares, LossAndGradient) {
  const Array y = random_array(6, 1);
  Compute what{.op = ops::SumOfSquares{}, .shapes = {{{2, 3}, DType::F64}}};
  double sum = 0;
  for (const double v : y.values()) sum += v * v;
  EXPECT_NEAR(outputs_of(what, {y}, {1}, arguments())[0].at(0), sum / 8, 1e-15);
  what.phase = Phase::InputGrad;
  const Array dy = outputs_of(what, {y}, {6}, arguments())[0];
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_NEAR(dy.at(i), 16 * 2 * y.at(i) / 8, 1e-15);
}

}  // namespace
}  // namespace foreshard::host_ends_test
