// --set model.KEY=VALUE: keys of the model's own family, applied in order.
#include "core/model/model_settings.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace foreshard::model_settings_test {
namespace {

std::string message(const Settings& settings) {
  try {
    model_with("gpt2-124m", settings, "--set");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// GPT-2 has 12 h^2 + 13 h parameters in a layer and h = 768. From 12 layers to 2: ten layers less.
TEST(ModelSettings, ChangeOneNumberOfTheFile) {
  const Model small = model_with("gpt2-124m", {{"n_layer", "2"}}, "--set");
  EXPECT_EQ(std::get<Transformer>(small.shape).layers, 2);
  EXPECT_EQ(parameter_count(small), 124'439'808 - 10 * (12 * 768 * 768 + 13 * 768));
  EXPECT_EQ(small.name, "gpt2-124m");
}

TEST(ModelSettings, NoneLeaveTheModelAsItIs) { EXPECT_EQ(model_with("gpt2-124m", {}, "--set"), load_model("gpt2-124m")); }

TEST(ModelSettings, TheLastOfTwoForOneKeyCounts) {
  EXPECT_EQ(model_with("gpt2-124m", {{"n_layer", "2"}, {"n_layer", "3"}}, "--set"),
            model_with("gpt2-124m", {{"n_layer", "3"}}, "--set"));
}

// A key that every config.json may hold and no shape follows from, a misspelt one, and the same number under the word of another family.
TEST(ModelSettings, AKeyThatIsNotReadIsRefused) {
  const std::string told = message({{"use_cache", "true"}});
  EXPECT_TRUE(told.starts_with("--set: model.use_cache: found a key that gpt2 models do not read, expected ")) << told;
  EXPECT_NE(message({{"n_layers", "2"}}).find("n_layers: found an unknown key with value 2, expected \"n_layer\""),
            std::string::npos);
  EXPECT_NE(message({{"num_hidden_layers", "2"}}).find("num_hidden_layers: found 2, expected the same as n_layer, 12"),
            std::string::npos);
}

// The value is refused as the file's own would be.
TEST(ModelSettings, AWrongValueIsRefused) {
  const std::string told = message({{"n_layer", "-1"}});
  EXPECT_NE(told.find("n_layer: found -1, expected "), std::string::npos) << told;
}

}  // namespace
}  // namespace foreshard::model_settings_test
