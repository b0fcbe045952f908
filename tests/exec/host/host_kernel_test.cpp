// What kernels share: checks of an instruction's form, places of rows and heads, sums of columns.
#include "exec/host/host_kernel.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"

namespace foreshard::host::host_kernel_test {
namespace {

Form form_of(const Compute& what) { return {.what = what, .reads = {}, .writes = {}}; }

std::string message(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(HostForm, DimensionsAreChecked) {
  const Compute what{.op = ops::Add{}, .phase = Phase::Recompute, .shapes = {{{2, 3}}, {{4, 0}}, {}}};
  const Form form = form_of(what);
  EXPECT_TRUE(form.forward());
  EXPECT_EQ(form.dims(0), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(message([&] { form.dims(0, 3); }), "plan: compute add, recompute: found shape 0 of 2 dimensions, expected 3");
  EXPECT_EQ(message([&] { form.dims(1); }), "plan: compute add, recompute: found dimension 0, expected at least 1");
  EXPECT_NE(message([&] { form.dims(2); }).find("shape 2 of 0 dimensions"), std::string::npos);
  EXPECT_EQ(message([&] { form.dims(3); }), "plan: compute add, recompute: found 3 shapes, expected at least 4");
}

// An operand may have more elements than the shapes need, not fewer.
TEST(HostForm, OperandsAreChecked) {
  const Compute what{.op = ops::Add{}};
  const std::vector<Operand> reads = {{.elements = 6}, {.elements = 7}}, writes = {{.elements = 6}};
  const Form form{.what = what, .reads = reads, .writes = writes};
  EXPECT_EQ(message([&] { form.expect({6, 6}, {6}); }), "no error");
  EXPECT_EQ(message([&] { form.expect({6}, {6}); }), "plan: compute add, forward: found 2 reads, expected 1");
  EXPECT_EQ(message([&] {
              form.expect({6, 8}, {6});
            }),
            "plan: compute add, forward: found reads[1] of 7 elements, expected at least 8");
  EXPECT_EQ(message([&] {
              form.expect({6, 7}, {7});
            }),
            "plan: compute add, forward: found writes[0] of 6 elements, expected at least 7");
}

TEST(HostForm, PhasesOfWeights) {
  for (const Phase phase : {Phase::Forward, Phase::Recompute, Phase::WeightGrad, Phase::InputGrad, Phase::Backward}) {
    const Compute what{.op = ops::Add{}, .phase = phase};
    const bool allowed = phase != Phase::InputGrad && phase != Phase::Backward;
    EXPECT_EQ(message([&] { expect_weights_phase(form_of(what)); }) == "no error", allowed) << static_cast<int>(phase);
  }
}

// An 8-bit linear layer with a last write of bytes has room for its rounded factors there.
TEST(HostForm, Factors) {
  const Compute eight{.op = ops::MatMul{}, .shapes = {{{1, 2, 3, 4}, DType::F8}}},
      sixteen{.op = ops::MatMul{}, .shapes = {{{1, 2, 3, 4}}}};
  const std::vector<Operand> with = {{.dtype = DType::BF16}, {.dtype = DType::U8}}, without = {{.dtype = DType::BF16}};
  EXPECT_TRUE(has_factors(eight, with));
  EXPECT_FALSE(has_factors(eight, without));
  EXPECT_FALSE(has_factors(sixteen, with));
}

// A step of 16 samples; this micro-batch has 2 samples, of whose 8 positions two ranks hold 4 each: 8 rows a rank. All rows of the step are
// 16 * 8, and each counts the same.
TEST(HostKernel, LossIsAMeanOverAllRowsOfTheStep) {
  EXPECT_DOUBLE_EQ(loss_weight({.samples = 2, .samples_of_step = 16}, 8, 2), 1.0 / (16 * 8));
  EXPECT_DOUBLE_EQ(loss_weight({.samples = 1, .samples_of_step = 1}, 8, 1), 1.0 / 8);
}

// 16 positions over two context-parallel ranks with two chunks: rank 0 has 0-3 and 12-15. With sequence parallelism each of two tensor
// ranks holds half: tensor rank 1 has 12-15.
TEST(HostKernel, RowsOfARank) {
  const SequenceSplit split{.ranks = 2, .chunks = 2};
  EXPECT_EQ(held_rows(split, 8, false, {}).position(5), 13);
  EXPECT_EQ(held_rows(split, 4, true, {.tp = 2, .tp_rank = 1}).position(1), 13);
  EXPECT_EQ(held_rows(split, 4, true, {.tp = 2, .tp_rank = 0}).position(3), 3);
  // Context rank 1 has 4-11.
  EXPECT_EQ(held_rows(split, 8, false, {.cp = 2, .cp_rank = 1}).position(0), 4);
}

// Of 16 heads a tensor rank holds 4. If the context ranks share its heads too (no chunks), each of the two holds 2 of them.
TEST(HostKernel, FirstHead) {
  EXPECT_EQ(first_head({.ranks = 2, .chunks = 2}, 4, {.tp = 4, .tp_rank = 3, .cp = 2, .cp_rank = 1}), 12);
  EXPECT_EQ(first_head({.ranks = 2, .chunks = 0}, 2, {.tp = 4, .tp_rank = 3, .cp = 2, .cp_rank = 1}), 14);
}

// Every row once, in order, with its position; a stretch is no longer than `most` and does not cross the gap.
TEST(HostKernel, StretchesCoverTheRows) {
  for (const std::int64_t rows : {1, 5, 8, 13})
    for (const std::int64_t most : {1, 3, 100})
      for (const RowPositions& at : {RowPositions{.first = 7}, RowPositions{.first = 2, .length = 5, .second = 40}}) {
        std::int64_t next = 0;
        for_each_stretch(at, rows, most, [&](std::int64_t row, std::int64_t position, std::int64_t count) {
          EXPECT_EQ(row, next);
          EXPECT_LE(count, most);
          for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(position + i, at.position(row + i));
          next += count;
        });
        EXPECT_EQ(next, rows);
      }
}

TEST(HostKernel, SizesAndSums) {
  EXPECT_EQ(size_of_dims({2, 3, 4}), 24);
  EXPECT_EQ(size_of_dims({}), 1);
  // Columns of [[1, 2, 3], [10, 20, 30]], added to what is there.
  const double x[] = {1, 2, 3, 10, 20, 30};
  double out[] = {100, 0, 0};
  add_column_sums(x, 2, 3, out);
  EXPECT_EQ(out[0], 111);
  EXPECT_EQ(out[1], 22);
  EXPECT_EQ(out[2], 33);
}

// A scale that starts at 2^16 may fall by 16 halvings, to 1; one that starts at 1 not at all.
TEST(HostKernel, OverflowRule) {
  const auto rule = [](double start, std::int64_t growth) {
    const Compute what{.op = ops::JudgeOverflow{.growth = growth, .start = start}};
    const std::vector<Operand> reads = {{.elements = 1}}, writes = {{.elements = 64, .dtype = DType::F32}};
    return overflow_rule({.what = what, .reads = reads, .writes = writes});
  };
  EXPECT_EQ(rule(65536, 2000).least, -16);
  EXPECT_EQ(rule(65536, 2000).growth, 2000);
  EXPECT_EQ(rule(1, 10).least, 0);
  EXPECT_NE(message([&] { rule(65536, 0); }).find("growth=0, expected at least 1 step"), std::string::npos);
}

}  // namespace foreshard::host::host_kernel_test
