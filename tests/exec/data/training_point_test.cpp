// What a checkpoint knows beside its tensors, as the texts of its file and back.
#include "exec/data/training_point.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/changed_text.h"

namespace foreshard::training_point_test {
namespace {

TEST(TrainingPointWords, SayTheSameWhenTheyAreReadBack) {
  TrainingPoint point{.step = 300, .samples = 4800, .seed = 9};
  point.loss_scale.exponent = -2, point.loss_scale.good = 17, point.loss_scale.skipped = 3;
  for (const std::optional<SampleSource>& source :
       {std::optional<SampleSource>{}, std::optional<SampleSource>{SampleSource{}},
        std::optional<SampleSource>{SampleSource{.file = "a \"b\".txt", .format = "u16", .bytes = 1200, .hash = "00ff"}}}) {
    point.source = source;
    EXPECT_EQ(point_of(words_of(point), "file"), point);
  }
}

TEST(TrainingPointWords, WhatIsWrongIsNamed) {
  const auto complaint = [](const std::string& key, const std::string& value) {
    auto words = words_of({.source = SampleSource{.file = "a", .format = "bytes", .bytes = 1, .hash = "0"}});
    words[key] = value;
    return error_of([&] { point_of(words, "gpt.ckpt"); });
  };
  EXPECT_EQ(complaint("step", "-1"), "gpt.ckpt: __metadata__.step: found \"-1\", expected a whole number");
  EXPECT_EQ(complaint("seed", ""), "gpt.ckpt: __metadata__.seed: found \"\", expected a whole number");
  EXPECT_EQ(complaint("data_bytes", "many"), "gpt.ckpt: __metadata__.data_bytes: found \"many\", expected a whole number");
  EXPECT_EQ(complaint("loss_scale", "1 2"), "gpt.ckpt: __metadata__.loss_scale: found \"1 2\", expected three whole numbers");
}

// The name does not count: the same bytes read the same way are the same samples.
TEST(SampleSource, IsAlikeByItsBytes) {
  const SampleSource text{.file = "a", .format = "bytes", .bytes = 1, .hash = "0"};
  EXPECT_TRUE(text.alike({.file = "b", .format = "bytes", .bytes = 1, .hash = "0"}));
  EXPECT_FALSE(text.alike({.file = "a", .format = "u16", .bytes = 1, .hash = "0"}));
  EXPECT_FALSE(text.alike({.file = "a", .format = "bytes", .bytes = 1, .hash = "1"}));
  EXPECT_FALSE(text.alike({}));
}

}  // namespace
}  // namespace foreshard::training_point_test
