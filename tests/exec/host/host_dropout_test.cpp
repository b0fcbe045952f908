// Dropout: the formula, the rate, and the same mask under every cut of batch, sequence and heads.
#include "exec/host/host_dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/error.h"
#include "exec/base/philox.h"
#include "tests/exec/host_arrays.h"

namespace foreshard::host_dropout_test {
namespace {

host::Form form_of(const Compute& what) { return {.what = what, .reads = {}, .writes = {}}; }

struct Dropped {
  Array y = {}, mask = {};
};

Dropped drop(std::vector<std::int64_t> dims, std::vector<Array> reads, const OpArguments& arguments,
             const ops::Dropout& op = {.p = 0.25, .site = 2}) {
  std::int64_t size = 1;
  for (const std::int64_t dim : dims) size *= dim;
  std::vector<Array> writes = {Array(size, DType::F64), Array(size, DType::U8)};
  run_on({.op = op, .shapes = {{std::move(dims), DType::F64}}}, reads, writes, arguments);
  return {writes[0], writes[1]};
}

TEST(HostDropout, FusedWithBiasAndResidual) {
  const std::int64_t samples = 2, positions = 3, h = 10, size = samples * positions * h;
  const Array x = random_array(size, 1), skip = random_array(size, 2), bias = random_array(h, 3);
  const OpArguments arguments{.seed = 1, .samples = samples};
  const Dropped alone = drop({samples, positions, h}, {x}, arguments);
  const Dropped residual = drop({samples, positions, h}, {x, skip}, arguments);
  const Dropped all = drop({samples, positions, h}, {x, skip, bias}, arguments);
  EXPECT_EQ(alone.mask.values(), all.mask.values());
  for (std::int64_t i = 0; i < size; ++i) {
    const double keep = alone.mask.at(i);
    ASSERT_TRUE(keep == 0 || keep == 1);
    EXPECT_NEAR(alone.y.at(i), keep * x.at(i) / 0.75, 1e-15);
    EXPECT_NEAR(residual.y.at(i), skip.at(i) + keep * x.at(i) / 0.75, 1e-14);
    EXPECT_NEAR(all.y.at(i), skip.at(i) + keep * (x.at(i) + bias.at(i % h)) / 0.75, 1e-14);
  }
}

// n masks of rate p: kept within 5 standard deviations of (1 - p) n.
TEST(HostDropout, KeepsItsShare) {
  const std::int64_t n = 40'000;
  const Array x = random_array(n, 1);
  double kept = 0;
  for (const double keep : drop({4, 100, 100}, {x}, {.seed = 1, .samples = 4}).mask.values()) kept += keep;
  EXPECT_NEAR(kept, 0.75 * n, 5 * std::sqrt(0.75 * 0.25 * n));
}

TEST(HostDropout, AnotherSeedLayerSiteOrSampleIsAnotherMask) {
  const Array x = random_array(300, 1);
  const auto mask = [&](const OpArguments& arguments, int site) {
    return drop({1, 1, 300}, {x}, arguments, {.p = 0.25, .site = site}).mask.values();
  };
  const auto first = mask({.seed = 1, .layer = 1}, 2);
  EXPECT_EQ(mask({.seed = 1, .layer = 1}, 2), first);
  EXPECT_NE(mask({.seed = 2, .layer = 1}, 2), first);
  EXPECT_NE(mask({.seed = 1, .layer = 2}, 2), first);
  EXPECT_NE(mask({.seed = 1, .layer = 1}, 3), first);
  EXPECT_NE(mask({.seed = 1, .layer = 1, .first_sample = 1}, 2), first);
}

// Rows of 5 columns: a sample's rows do not begin at multiples of the generator's 4 words.
TEST(HostDropout, SameMaskUnderCutsOfBatchAndSequence) {
  const std::int64_t samples = 4, positions = 6, h = 5, size = samples * positions * h;
  const Array x(std::vector<double>(static_cast<std::size_t>(size), 1.0), DType::F64);
  const Array whole = drop({samples, positions, h}, {x}, {.seed = 1, .first_sample = 20, .samples = samples}).mask;
  for (const std::int64_t batch : {1, 2})
    for (const int tp : {1, 2, 3}) {
      const std::int64_t part = positions / tp;
      for (std::int64_t first = 0; first < samples; first += batch)
        for (int rank = 0; rank < tp; ++rank) {
          const OpArguments arguments{.seed = 1, .first_sample = 20 + first, .samples = batch, .tp = tp, .tp_rank = rank};
          const Array cut =
              drop({batch, part, h}, {Array(std::vector<double>(static_cast<std::size_t>(batch * part * h), 1.0), DType::F64)},
                   arguments, {.p = 0.25, .site = 2, .sequence_parallel = true})
                  .mask;
          for (std::int64_t i = 0; i < cut.size(); ++i) {
            const std::int64_t position = rank * part + i / (batch * h), sample = first + i / h % batch;
            ASSERT_EQ(cut.at(i), whole.at((position * samples + sample) * h + i % h)) << batch << tp << first << rank;
          }
        }
    }
}

TEST(HostDropout, SameMaskUnderCutsOfHeads) {
  const std::int64_t samples = 2, heads = 6, s = 3, map = s * s;
  const Array x(std::vector<double>(static_cast<std::size_t>(samples * heads * map), 1.0), DType::F64);
  const Array whole = drop({samples, heads, s, s}, {x}, {.seed = 1, .samples = samples}).mask;
  for (const int tp : {2, 3})
    for (int rank = 0; rank < tp; ++rank) {
      const std::int64_t own = heads / tp;
      const Array cut = drop({samples, own, s, s}, {x}, {.seed = 1, .samples = samples, .tp = tp, .tp_rank = rank}).mask;
      for (std::int64_t i = 0; i < cut.size(); ++i) {
        const std::int64_t sample = i / (own * map), head = rank * own + i / map % own;
        ASSERT_EQ(cut.at(i), whole.at((sample * heads + head) * map + i % map));
      }
    }
}

// p = 1/4: a quarter of the 2^32 words are below 2^30, and what is kept is multiplied by 4/3.
TEST(HostDropout, TheRuleOfAnOperator) {
  const Compute quarter{.op = ops::Dropout{.p = 0.25, .site = 3}};
  const host::DropRule rule = host::drop_rule(form_of(quarter));
  EXPECT_EQ(rule.threshold, std::uint32_t{1} << 30);
  EXPECT_DOUBLE_EQ(rule.scale, 4.0 / 3);
  EXPECT_EQ(rule.site, 3U);
  for (const double p : {1.0, -0.1, std::nan("")}) {
    const Compute wrong{.op = ops::Dropout{.p = p}};
    EXPECT_THROW(host::drop_rule(form_of(wrong)), Error) << p;
  }
  const Compute add{.op = ops::Add{}};
  EXPECT_THROW(host::drop_rule(form_of(add)), Error);
}

// Layer, site and sample each choose another stream; the seed is no part of it.
TEST(HostDropout, StreamsDiffer) {
  std::set<std::uint64_t> all;
  for (const std::uint64_t layer : {1, 2})
    for (const std::uint64_t site : {0, 1, 2})
      for (const std::int64_t sample : {0, 1, 2, 3}) all.insert(host::drop_stream({.layer = layer}, {.site = site}, sample));
  EXPECT_EQ(all.size(), 24U);
  EXPECT_EQ(host::drop_stream({.seed = 1, .layer = 2}, {}, 3), host::drop_stream({.seed = 9, .layer = 2}, {}, 3));
}

// Element i takes word i mod 4 of block i / 4, wherever a stretch begins or ends; stretches are longer and shorter than the 256 elements
// that are drawn at once.
TEST(HostDropout, AMaskIsOneWordPerElement) {
  constexpr std::uint32_t threshold = 1U << 31;
  for (const std::int64_t first : {0, 1, 3, 4, 254, 1001})
    for (const std::int64_t count : {1, 2, 5, 255, 256, 257, 700}) {
      std::vector<std::uint8_t> keep(static_cast<std::size_t>(count) + 1, 9);
      host::fill_mask(5, 11, first, count, threshold, keep.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint32_t word =
            philox(5, 11, static_cast<std::uint64_t>((first + i) / 4))[static_cast<std::size_t>((first + i) % 4)];
        ASSERT_EQ(keep[static_cast<std::size_t>(i)], word >= threshold ? 1 : 0) << first << " " << i;
      }
      EXPECT_EQ(keep.back(), 9);  // not beyond its end
    }
}

}  // namespace
}  // namespace foreshard::host_dropout_test
