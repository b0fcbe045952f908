// Convolution, batch norm and pools against sums written out.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/host_arrays.h"

namespace foreshard::host_pictures_test {
namespace {

struct Picture {
  std::int64_t n = 2, c = 3, h = 6, w = 5;
  std::int64_t size() const { return n * c * h * w; }
  double at(const Array& x, std::int64_t i, std::int64_t ch, std::int64_t y, std::int64_t z, double outside = 0) const {
    return y < 0 || y >= h || z < 0 || z >= w ? outside : x.at(((i * c + ch) * h + y) * w + z);
  }
};
std::int64_t length_of(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return (in + 2 * padding - kernel) / stride + 1;
}

TEST(HostConvolution, Definition) {
  const Picture in;
  for (const auto& [kernel, stride, padding] :
       std::vector<std::array<std::int64_t, 3>>{{1, 1, 0}, {1, 2, 0}, {3, 1, 1}, {3, 2, 1}, {5, 1, 0}, {4, 3, 2}}) {
    const std::int64_t filters = 4, h = length_of(in.h, kernel, stride, padding), w = length_of(in.w, kernel, stride, padding);
    const Array x = random_array(in.size(), 1), f = random_array(filters * in.c * kernel * kernel, 2),
                b = random_array(filters, 3);
    const Compute what{.op = ops::Conv2d{},
                       .shapes = {{{in.n, in.c, in.h, in.w}, DType::F64},
                                  {{filters, kernel, stride, padding}, DType::F64},
                                  {{in.n, filters, h, w}, DType::F64}}};
    std::vector<double> expected;
    for (std::int64_t i = 0; i < in.n; ++i)
      for (std::int64_t o = 0; o < filters; ++o)
        for (std::int64_t y = 0; y < h; ++y)
          for (std::int64_t z = 0; z < w; ++z) {
            double sum = b.at(o);
            for (std::int64_t c = 0; c < in.c; ++c)
              for (std::int64_t ky = 0; ky < kernel; ++ky)
                for (std::int64_t kx = 0; kx < kernel; ++kx)
                  sum += f.at(((o * in.c + c) * kernel + ky) * kernel + kx) *
                         in.at(x, i, c, y * stride - padding + ky, z * stride - padding + kx);
            expected.push_back(sum);
          }
    const auto size = static_cast<std::int64_t>(expected.size());
    EXPECT_LT(relative_error(outputs_of(what, {x, f, b}, {size})[0].values(), expected), 1e-14) << kernel << stride << padding;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= b.at(static_cast<std::int64_t>(i) / (h * w) % filters);
    EXPECT_LT(relative_error(outputs_of(what, {x, f}, {size})[0].values(), expected), 1e-14) << kernel << stride << padding;
  }
}

TEST(HostPool, MaximumAndAverage) {
  const Picture in;
  const Array x = random_array(in.size(), 1);
  for (const auto& [kernel, stride, padding] :
       std::vector<std::array<std::int64_t, 3>>{{2, 2, 0}, {3, 2, 1}, {5, 1, 2}, {5, 5, 0}}) {
    const std::int64_t h = length_of(in.h, kernel, stride, padding), w = length_of(in.w, kernel, stride, padding);
    Compute what{.op = ops::MaxPool{.kernel = kernel, .stride = stride, .padding = padding},
                 .shapes = {{{in.n, in.c, in.h, in.w}, DType::F64}, {{in.n, in.c, h, w}, DType::F64}}};
    const Array largest = outputs_of(what, {x}, {in.n * in.c * h * w})[0];
    what.op = ops::AvgPool{.kernel = kernel, .stride = stride, .padding = padding};
    const Array average = outputs_of(what, {x}, {in.n * in.c * h * w})[0];
    for (std::int64_t at = 0; at < largest.size(); ++at) {
      const std::int64_t i = at / (in.c * h * w), c = at / (h * w) % in.c, y = at / w % h, z = at % w;
      double most = -INFINITY, sum = 0;
      for (std::int64_t ky = 0; ky < kernel; ++ky)
        for (std::int64_t kx = 0; kx < kernel; ++kx) {
          most = std::max(most, in.at(x, i, c, y * stride - padding + ky, z * stride - padding + kx, -INFINITY));
          sum += in.at(x, i, c, y * stride - padding + ky, z * stride - padding + kx);
        }
      EXPECT_EQ(largest.at(at), most);
      EXPECT_NEAR(average.at(at), sum / static_cast<double>(kernel * kernel), 1e-15);
    }
  }
}

TEST(HostBatchNorm, StatisticsOfTheMicroBatch) {
  const Picture in;
  const Array x = random_array(in.size(), 1), w = random_array(in.c, 2), b = random_array(in.c, 3);
  const Array y = outputs_of({.op = ops::BatchNorm{.eps = 0.1}, .shapes = {{{in.n, in.c, in.h, in.w}, DType::F64}}}, {x, w, b},
                             {in.size()})[0];
  const double count = static_cast<double>(in.n * in.h * in.w);
  for (std::int64_t c = 0; c < in.c; ++c) {
    double mean = 0, square = 0;
    for (std::int64_t i = 0; i < in.size(); ++i)
      if (i / (in.h * in.w) % in.c == c) mean += x.at(i) / count, square += x.at(i) * x.at(i) / count;
    for (std::int64_t i = 0; i < in.size(); ++i)
      if (i / (in.h * in.w) % in.c == c) {
        EXPECT_NEAR(y.at(i), (x.at(i) - mean) / std::sqrt(square - mean * mean + 0.1) * w.at(c) + b.at(c), 1e-13);
      }
  }
}

}  // namespace
}  // namespace foreshard::host_pictures_test
