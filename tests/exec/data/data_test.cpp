// Training on files: a text of this repository, tokens in 16 or 32 bits, and everything that can be wrong with them.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "exec/data/file_samples.h"
#include "tests/changed_text.h"
#include "tests/exec/training.h"

namespace foreshard::data_test {
namespace {

namespace fs = std::filesystem;

struct DataFile : testing::Test {
  void TearDown() override { fs::remove(path()); }
  static std::string path() { return (fs::temp_directory_path() / ("foreshard-data-" + std::to_string(::getpid()))).string(); }
  static void write(const std::string& bytes) { std::ofstream(path(), std::ios::binary) << bytes; }
  static std::vector<std::int64_t> window(const FileSamples& samples, std::int64_t sample, std::int64_t from,
                                          std::size_t count) {
    std::vector<std::int64_t> tokens(count);
    samples.tokens(sample, from, 256, tokens);
    return tokens;
  }
};

const SampleNeeds kFour = {.sequence = 4, .vocab = 256};

TEST_F(DataFile, ASampleIsAWindowOfTheText) {
  const std::string text = "abcdefghijklmnopqrstuvwxyz\xFF";
  write(text);
  const FileSamples samples(path(), TokenFormat::Bytes, kFour, 3);
  EXPECT_EQ(samples.size(), 27);
  std::vector<char> seen(23);
  for (std::int64_t sample = 0; sample < 400; ++sample) {
    const auto begin = static_cast<std::size_t>(samples.begin(sample));
    ASSERT_LT(begin, seen.size());  // the last window begins 4 + 1 before the end: at 22
    seen[begin] = 1;
    const auto all = window(samples, sample, 0, 5);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(all[i], static_cast<unsigned char>(text[begin + i]));
    EXPECT_EQ(window(samples, sample, 2, 3), (std::vector<std::int64_t>{all[2], all[3], all[4]}));
  }
  // Each of 23 places is missed by 400 draws with probability e^(-17).
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 23);
  EXPECT_NE(FileSamples(path(), TokenFormat::Bytes, kFour, 4).begin(0) * 23 +
                FileSamples(path(), TokenFormat::Bytes, kFour, 4).begin(1),
            samples.begin(0) * 23 + samples.begin(1));
}

TEST_F(DataFile, WiderTokensAreLittleEndian) {
  write(std::string("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B\x0C", 12));
  const SampleNeeds needs{.sequence = 5, .vocab = 0x10000};
  EXPECT_EQ(window(FileSamples(path(), TokenFormat::U16, needs, 0), 0, 0, 2), (std::vector<std::int64_t>{0x0201, 0x0403}));
  const SampleNeeds wide{.sequence = 2, .vocab = std::int64_t{1} << 32};
  EXPECT_EQ(window(FileSamples(path(), TokenFormat::U32, wide, 0), 0, 2, 1), (std::vector<std::int64_t>{0x0C0B0A09}));
}

TEST_F(DataFile, WhatIsWrongIsNamed) {
  const auto refusal = [](TokenFormat format, const SampleNeeds& needs) {
    return error_of([&] { FileSamples(path(), format, needs, 0); });
  };
  EXPECT_NE(refusal(TokenFormat::Bytes, kFour).find("a file that can be read"), std::string::npos);
  write("abcd");  // four tokens, but the fourth has no target
  EXPECT_NE(refusal(TokenFormat::Bytes, kFour).find("found 4 tokens, expected at least 5"), std::string::npos);
  write("");
  EXPECT_NE(refusal(TokenFormat::Bytes, kFour).find("found 0 tokens"), std::string::npos);
  write("abcde");
  EXPECT_EQ(refusal(TokenFormat::Bytes, kFour), "no error");
  EXPECT_NE(refusal(TokenFormat::U16, kFour).find("5 bytes, expected tokens of 2 bytes"), std::string::npos);
  EXPECT_NE(refusal(TokenFormat::Bytes, {.sequence = 4, .vocab = 100}).find("token 3: found 100"), std::string::npos);
  EXPECT_NE(refusal(TokenFormat::Bytes, {.features = true}).find("a model that reads tokens"), std::string::npos);
}

TEST(SampleNeeds, OfAPlan) {
  const SampleNeeds gpt = sample_needs(lowered(tiny_gpt(), in_double({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 2}})));
  EXPECT_EQ(gpt.sequence, 16);
  EXPECT_EQ(gpt.vocab, 128);
  EXPECT_FALSE(gpt.features || gpt.labels);
  const SampleNeeds cnn = sample_needs(lowered(tiny_cnn(), in_double({.batch = {.micro = 2}})));
  EXPECT_TRUE(cnn.features && cnn.labels);
}

// A small GPT learns a text of this repository: 300 steps under data, tensor and pipeline parallelism give the loss curve of one
// rank.
struct TextTraining : testing::Test {
  static Model model() {
    Model small = tiny_gpt();
    Transformer& shape = std::get<Transformer>(small.shape);
    shape.layers = 2, shape.ffn_hidden = 64, shape.heads = 2, shape.kv_heads = 2, shape.head_dim = 16, shape.vocab = 256;
    return small;
  }
  static std::vector<StepReport> losses(const Strategy& strategy, DType precision) {
    Strategy at = in_double(strategy);
    at.precision = precision;
    const Plan plan = lowered(model(), at);
    const FileSamples samples(std::string(FORESHARD_SOURCE) + "/LICENSE", TokenFormat::Bytes, sample_needs(plan), 7);
    ExecuteOptions options = training(300);
    options.tensors = false;
    options.samples = &samples;
    options.optimizer = {.learning_rate = 1e-2, .eps = 1e-2};  // a large eps keeps rounding from growing
    return run(plan, options).steps;
  }
  static void compare(DType precision, double tolerance) {
    const auto one = losses({.batch = {.micro = 8}}, precision);
    const auto eight = losses({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 2}}, precision);
    double last = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      ASSERT_NEAR(eight[i].loss, one[i].loss, tolerance) << "step " << i;
      if (i + 20 >= one.size()) last += one[i].loss / 20;
    }
    EXPECT_NEAR(one[0].loss, std::log(256.0), 0.1);  // guessing
    EXPECT_LT(last, one[0].loss / 2);
  }
};

TEST_F(TextTraining, InDoublePrecision) { compare(DType::F64, 1e-9); }
TEST_F(TextTraining, InSinglePrecision) { compare(DType::F32, 1e-3); }

}  // namespace
}  // namespace foreshard::data_test
