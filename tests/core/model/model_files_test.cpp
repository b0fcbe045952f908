// The two forms of model files: what is written is read, contradictions are found, and the rounded number of parameters.
#include "core/model/model_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/base/error.h"
#include "tests/core/support_models.h"

namespace foreshard::model_files_test {
namespace {

Transformer mixture() {
  Transformer t = std::get<Transformer>(llama(4, 64, 128, 8, 2, 250).shape);
  t.block.experts = {.count = 8, .chosen = 2, .width = 32, .groups = 4, .chosen_groups = 2, .best_of_group = 2};
  return t;
}

std::string fault(const Transformer& t) {
  const auto found = fault_of(t);
  return found ? found->field + ": " + found->found + ", " + found->expected : "";
}

TEST(ModelFiles, ATransformerReadsBackAsWritten) {
  Transformer t = mixture();
  t.attention = {
      .rope_theta = 5e5, .qk_norm = QkNorm::PerHead, .score_cap = 50, .window = 16, .local = {true, false, true, false}};
  t.block.scales = {.embedding = 8, .logit_cap = 30};
  JsonWriter json;
  json.begin_object().field("model_type", "foreshard-transformer");
  write_transformer(json, t);
  json.end_object();
  EXPECT_EQ(parse_transformer(JsonReader::parse(json.text(), "m.json")), t);
}

// Settings at their defaults are not written, so a file of GPT has no word of experts.
TEST(ModelFiles, DefaultSettingsAreNotWritten) {
  JsonWriter json;
  json.begin_object();
  write_transformer_settings(json, std::get<Transformer>(gpt(2, 64, 8).shape));
  json.end_object();
  EXPECT_TRUE(JsonReader::parse(json.text(), "m.json").members().empty()) << json.text();
}

TEST(ModelFiles, AnUnknownKeyIsRefused) {
  JsonWriter json;
  json.begin_object();
  write_transformer(json, mixture());
  json.field("hiden", 3).end_object();
  EXPECT_THROW(parse_transformer(JsonReader::parse(json.text(), "m.json")), Error);
}

// Eight experts in four groups of two; a token chooses from two groups, so from at most four experts.
TEST(ModelFiles, SettingsThatContradictEachOtherAreFound) {
  EXPECT_EQ(fault(mixture()), "");
  const auto with = [](auto change) {
    Transformer t = mixture();
    change(t);
    return fault(t);
  };
  EXPECT_EQ(with([](Transformer& t) { t.block.experts.chosen = 9; }), "experts.chosen: 9, from 1 to the 8 experts");
  EXPECT_EQ(with([](Transformer& t) { t.block.experts.chosen = 4; }), "");
  EXPECT_EQ(with([](Transformer& t) { t.block.experts.chosen = 5; }),
            "experts.chosen: 5, at most 4, the experts of the chosen groups");
  EXPECT_EQ(with([](Transformer& t) { t.block.experts.groups = 3; }), "experts.groups: 3, a divisor of the 8 experts");
  EXPECT_EQ(with([](Transformer& t) { t.block.experts.best_of_group = 3; }),
            "experts.best_of_group: 3, from 1 to the 2 experts of a group");
  EXPECT_EQ(with([](Transformer& t) { t.attention.window = 4, t.attention.chunk = 8; }),
            "attention.chunk: 8, 0 beside a window of 4");
  EXPECT_EQ(with([](Transformer& t) { t.attention.window = 4, t.attention.local = {true}; }),
            "attention.local: 1, one for each of the 4 layers");
  // Heads of 64 / 8 = 8 elements.
  EXPECT_EQ(with([](Transformer& t) { t.attention.rotated_dim = 10; }),
            "attention.rotated_dim: 10, an even number of at most the head size 8: rotary embeddings turn pairs");
}

// The estimate is the exact number wherever doubles are exact.
TEST(ModelFiles, TheEstimateIsTheNumberOfParameters) {
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int trial = 0; trial < 200; ++trial) {
    const int heads = 1 << draw(0, 4);
    Model model = gpt(draw(1, 20), 8 * heads * draw(1, 4), heads, draw(10, 5000), draw(1, 300));
    Transformer& t = std::get<Transformer>(model.shape);
    t.qkv_bias = draw(0, 1) == 1, t.tied_embeddings = draw(0, 1) == 1;
    if (draw(0, 1) == 1) {
      t.activation = ActivationKind::SwiGlu;
      t.block.experts = {.count = draw(2, 9), .chosen = 1, .width = draw(1, 70), .shared_width = draw(0, 9)};
    }
    EXPECT_EQ(parameter_estimate(t), static_cast<double>(parameter_count(model)));
  }
  // A convolution of 3 channels to 4 with 5 x 5 taps and bias: 4 * 3 * 25 + 4.
  EXPECT_EQ(parameter_estimate(LayerSpec{.op = LayerOp::Conv2d, .features = 4, .kernel = 5, .bias = true}, {3, 8, 8}), 304);
}

// 12 h^2 parameters a layer at h = 1e9 and 1e5 layers: 1.2e24, beyond 63 bits.
TEST(ModelFiles, TheEstimateDoesNotOverflow) {
  const Transformer t = std::get<Transformer>(gpt(static_cast<int>(most_layers), largest_size, 1).shape);
  EXPECT_NEAR(parameter_estimate(t) / 1.2e24, 1, 1e-6);
  EXPECT_GT(parameter_estimate(t), most_parameters);
}

}  // namespace
}  // namespace foreshard::model_files_test
