// Random samples: the same whatever part of one is asked for, in range, and distributed as the header says.
#include "exec/arithmetic/host_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace foreshard::host_samples_test {
namespace {

std::vector<std::int64_t> tokens(std::uint64_t seed, std::int64_t sample, std::int64_t from, std::size_t count,
                                 std::int64_t vocab) {
  std::vector<std::int64_t> out(count);
  RandomSamples(seed).tokens(sample, from, vocab, out);
  return out;
}

}  // namespace

// A rank that holds the positions from 5 on sees the tokens that one with all positions sees there.
TEST(HostSamples, PartsAreThoseOfTheWhole) {
  const std::vector<std::int64_t> whole = tokens(7, 3, 0, 20, 1000);
  EXPECT_EQ(tokens(7, 3, 5, 15, 1000), std::vector<std::int64_t>(whole.begin() + 5, whole.end()));
  std::vector<double> all(20), part(15);
  RandomSamples(7).features(3, 0, all);
  RandomSamples(7).features(3, 5, part);
  EXPECT_EQ(part, std::vector<double>(all.begin() + 5, all.end()));
}

TEST(HostSamples, SeedAndSampleMatter) {
  std::set<std::vector<std::int64_t>> all;
  for (const std::uint64_t seed : {1, 2})
    for (const std::int64_t sample : {0, 1, 2}) all.insert(tokens(seed, sample, 0, 8, 1 << 20));
  EXPECT_EQ(all.size(), 6U);
  EXPECT_EQ(tokens(1, 2, 0, 8, 1 << 20), tokens(1, 2, 0, 8, 1 << 20));
}

// 5000 draws from 10 tokens: 500 of each, standard deviation sqrt(5000 * 0.09) = 21; five of them are 106.
TEST(HostSamples, TokensAndLabelsAreUniform) {
  std::vector<int> of_token(10), of_label(10);
  for (const std::int64_t token : tokens(1, 0, 0, 5000, 10)) ++of_token.at(static_cast<std::size_t>(token));
  for (std::int64_t sample = 0; sample < 5000; ++sample)
    ++of_label.at(static_cast<std::size_t>(RandomSamples(1).label(sample, 10)));
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(of_token[i], 500, 106) << i;
    EXPECT_NEAR(of_label[i], 500, 106) << i;
  }
}

// 10,000 normal numbers: the mean has a standard deviation of 0.01, the variance one of sqrt(2 / 10,000) = 0.014.
TEST(HostSamples, FeaturesAreStandardNormal) {
  std::vector<double> out(10'000);
  RandomSamples(5).features(2, 0, out);
  double mean = 0, square = 0;
  for (const double x : out) mean += x / 1e4, square += x * x / 1e4;
  EXPECT_NEAR(mean, 0, 0.05);
  EXPECT_NEAR(square, 1, 0.07);
}

TEST(HostSampleSource, FilesAreAlikeByTheirContents) {
  const SampleSource a{.file = "a.txt", .format = "bytes", .bytes = 9, .hash = "h"};
  SampleSource b = a;
  b.file = "b.txt";
  EXPECT_TRUE(a.alike(b));
  EXPECT_NE(a, b);
  for (auto change : {+[](SampleSource& s) { s.hash = "i"; }, +[](SampleSource& s) { s.bytes = 8; },
                      +[](SampleSource& s) { s.format = "u16"; }}) {
    SampleSource other = a;
    change(other);
    EXPECT_FALSE(a.alike(other));
  }
  EXPECT_FALSE(a.random());
  EXPECT_TRUE(RandomSamples(1).source().random());
}

}  // namespace foreshard::host_samples_test
