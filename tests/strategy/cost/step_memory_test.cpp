#include "strategy/cost/step_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace foreshard::step_memory_test {
namespace {

StepMemory parsed(const std::string& text) { return read_step_memory(JsonReader::parse(text, "step.json")); }

TEST(StepMemory, WidthsAreSums) {
  const StepMemory step = parsed(
      R"({"rules": "nanotron", "kept": ["2 hidden", "2 query + 4 keys", "1.5 ffn + 4 heads + 0.5 ffn"], "kept_full": ["2 hidden"]})");
  ASSERT_EQ(step.kept.size(), 3U);
  EXPECT_EQ(step.kept[0], (TensorWidth{.hidden = 2}));
  EXPECT_EQ(step.kept[1], (TensorWidth{.query = 2, .keys = 4}));
  EXPECT_EQ(step.kept[2], (TensorWidth{.ffn = 2, .heads = 4}));
  EXPECT_TRUE(step.kept_selective.empty());
}

TEST(StepMemory, RefusesWhatItCannotRead) {
  for (const char* text :
       {R"({"rules": "megatron"})", R"({"rules": "nanotron", "kept": ["two hidden"]})",
        R"({"rules": "nanotron", "kept": ["2 widths"]})", R"({"rules": "nanotron", "kept": ["2 hidden + "]})",
        R"({"rules": "nanotron", "kept": ["2 hidden - 1 ffn"]})", R"({"rules": "nanotron", "kept": ["-2 hidden"]})",
        R"({"rules": "nanotron", "keeps": []})", R"({"kept": []})"})
    EXPECT_THROW(parsed(text), Error) << text;
}

}  // namespace
}  // namespace foreshard::step_memory_test
