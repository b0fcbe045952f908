// Windows over pictures: which input rows an output row reads, against a walk over the padded input.
#include "exec/host/host_window.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace foreshard::host::host_window_test {
namespace {

Form form_of(const Compute& what) { return {.what = what, .reads = {}, .writes = {}}; }

Compute convolution(std::vector<std::int64_t> in, std::vector<std::int64_t> filter, std::vector<std::int64_t> out) {
  return {.op = ops::Conv2d{}, .shapes = {{std::move(in)}, {std::move(filter)}, {std::move(out)}}};
}

}  // namespace

// Output row i covers padded rows i stride .. i stride + kernel - 1; those of the padding are no input.
TEST(Window, RowsThatAnOutputReads) {
  for (const std::int64_t length : {4, 7, 8})
    for (const std::int64_t kernel : {1, 2, 3})
      for (const std::int64_t stride : {1, 2, 3})
        for (std::int64_t padding = 0; padding < kernel; ++padding) {
          const std::int64_t outputs = (length + 2 * padding - kernel) / stride + 1;
          const Window w{.height = length,
                         .width = length,
                         .out_height = outputs,
                         .out_width = outputs,
                         .kernel = kernel,
                         .stride = stride,
                         .padding = padding};
          EXPECT_TRUE(w.fits());
          for (std::int64_t out = 0; out < outputs; ++out) {
            std::vector<std::int64_t> rows;
            for (std::int64_t padded = out * stride; padded < out * stride + kernel; ++padded)
              if (padded >= padding && padded < padding + length) rows.push_back(padded - padding);
            ASSERT_FALSE(rows.empty());
            EXPECT_EQ(w.first(out), rows.front());
            EXPECT_EQ(w.last(out, length), rows.back() + 1);
          }
          Window wrong = w;
          ++wrong.out_width;
          EXPECT_FALSE(wrong.fits());
        }
}

// 3x3 with stride 2 and padding 1 over [2, 3, 8, 8]: (8 + 2 - 3) / 2 + 1 = 4. A filter has 3 * 9 = 27 weights; the im2col matrix of a sample
// 27 * 16 elements.
TEST(Convolution, SizesByHand) {
  const Compute what = convolution({2, 3, 8, 8}, {5, 3, 2, 1}, {2, 5, 4, 4});
  const Convolution conv = convolution_of(form_of(what));
  EXPECT_EQ(conv.taps(), 27);
  EXPECT_EQ(conv.in_size(), 3 * 64);
  EXPECT_EQ(conv.out_size(), 5 * 16);
  EXPECT_EQ(conv.columns_size(), 27 * 16);
  EXPECT_FALSE(conv.plain());
  const Compute plain = convolution({2, 3, 8, 8}, {5, 1, 1, 0}, {2, 5, 8, 8});
  EXPECT_TRUE(convolution_of(form_of(plain)).plain());
}

TEST(Convolution, ShapesThatDoNotFitAreRefused) {
  for (const Compute& wrong :
       {convolution({2, 3, 8, 8}, {5, 3, 2, 1}, {2, 5, 4, 5}), convolution({2, 3, 8, 8}, {5, 3, 2, 1}, {1, 5, 4, 4}),
        convolution({2, 3, 8, 8}, {5, 3, 2, 1}, {2, 6, 4, 4}), convolution({2, 3, 8, 8}, {5, 3, 2}, {2, 5, 4, 4})})
    EXPECT_THROW(convolution_of(form_of(wrong)), Error);
}

// Maximum and average read the same settings. A window may not lie in the padding alone.
TEST(PoolWindow, OfEitherPool) {
  const Compute max{.op = ops::MaxPool{.kernel = 2, .stride = 2}, .shapes = {{{1, 3, 8, 8}}, {{1, 3, 4, 4}}}},
      average{.op = ops::AvgPool{.kernel = 2, .stride = 2}, .shapes = max.shapes};
  for (const Compute& what : {max, average}) {
    const Window w = pool_window_of(form_of(what));
    EXPECT_EQ(w.kernel, 2);
    EXPECT_EQ(w.picture(), 64);
    EXPECT_EQ(w.out_picture(), 16);
  }
  const Compute padded{.op = ops::MaxPool{.kernel = 2, .stride = 2, .padding = 2}, .shapes = {{{1, 3, 8, 8}}, {{1, 3, 6, 6}}}};
  EXPECT_THROW(pool_window_of(form_of(padded)), Error);
  Compute channels = max;
  channels.shapes[1].dims[1] = 4;
  EXPECT_THROW(pool_window_of(form_of(channels)), Error);
}

}  // namespace foreshard::host::host_window_test
