// The same networks in PyTorch (tests/exec/oracle/torch_oracle.py), in double precision from the same weights and tokens: after
// two steps of AdamW the norm and three random projections of every gradient and every weight are equal to 1e-11.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "core/strategy/compression.h"
#include "exec/base/philox.h"
#include "tests/exec/mixture_models.h"
#include "tests/exec/training.h"

namespace foreshard::oracle_test {
namespace {

constexpr double kTolerance = 1e-11;

struct OracleModel {
  std::vector<double> losses = {};
  std::map<std::string, std::vector<double>> gradients = {}, values = {};  // norm, projections
};

std::map<std::string, OracleModel> read_oracle() {
  std::map<std::string, OracleModel> models;
  std::ifstream file(std::string(FORESHARD_SOURCE) + "/tests/exec/oracle/torch.txt");
  OracleModel* model = nullptr;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind;
    if (kind == "model") words >> name, model = &models[name];
    if (kind == "loss") words >> model->losses.emplace_back();
    if (kind != "gradient" && kind != "value") continue;
    words >> name;
    std::vector<double>& numbers = (kind == "value" ? model->values : model->gradients)[name];
    for (double number = 0; words >> number;) numbers.push_back(number);
  }
  return models;
}

std::vector<double> measures(const std::string& name, const WholeTensor& tensor, std::size_t count) {
  std::vector<double> all(count);
  for (const double x : tensor.elements) all[0] += x * x;
  all[0] = std::sqrt(all[0]);
  for (std::size_t v = 1; v < count; ++v) {
    const std::uint64_t stream = mix_keys(name_key("projection of " + name), v - 1);
    for (std::size_t i = 0; i < tensor.elements.size(); ++i) all[v] += tensor.elements[i] * standard_normal(7, stream, i);
  }
  return all;
}

void expect_as_told(const std::map<std::string, std::vector<double>>& told, const Plan& plan,
                    const std::vector<WholeTensor>& tensors) {
  ASSERT_EQ(told.size(), plan.tensors.size());
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const std::string& name = plan.tensors[t].name;
    ASSERT_TRUE(told.contains(name)) << name;
    const std::vector<double>& expected = told.at(name);
    ASSERT_EQ(expected.size(), 4u);
    const std::vector<double> found = measures(name, tensors[t], expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_LE(std::abs(found[i] - expected[i]), kTolerance * expected[0])
          << name << " measure " << i << " of " << expected[i];
  }
}

void compare_with_torch(const std::string& name, Model model, const Strategy& strategy) {
  const OracleModel told = read_oracle()[name];
  ASSERT_EQ(told.losses.size(), 2u);
  if (auto* transformer = std::get_if<Transformer>(&model.shape)) transformer->layers = 2;
  ExecuteOptions options = training(2);
  options.optimizer = {.learning_rate = 1e-2, .eps = 1e-5, .weight_decay = 0.1};
  const Plan plan = lowered(model, in_double(strategy));
  const Execution done = run(plan, options);
  for (std::size_t s = 0; s < 2; ++s) EXPECT_NEAR(done.steps[s].loss, told.losses[s], kTolerance);
  expect_as_told(told.gradients, plan, done.gradients);
  expect_as_told(told.values, plan, done.values);
}

// The references are of models that are twice as large but for their heads and experts.
Model as_in_torch(const ModernModel& which) {
  Model model = modern_model(which);
  Transformer& shape = std::get<Transformer>(model.shape);
  for (auto* size : {&shape.hidden, &shape.ffn_hidden, &shape.vocab, &shape.max_positions}) *size *= 2;
  return model;
}

TEST(Oracle, Gpt) { compare_with_torch("gpt", twice_as_large(tiny_gpt()), {.batch = {.micro = 2}}); }
// Two tensor-parallel ranks that send codes are one device that adds what the codes say (tests/exec/oracle/coded.py).
TEST(Oracle, GptWithActivationsInCodes) {
  for (const char* codec : {"segmented:8", "segmented:4", "segmented:4x8", "token-topk:0.5", "token-topk:0.5,segmented:8",
                            "token-topk:0.3,segmented:4x8"}) {
    SCOPED_TRACE(codec);
    Strategy s{.tp = 2, .batch = {.micro = 2}};
    s.communication.activations = parse_compression(codec, Compressed::Activations, "this test", "codec");
    compare_with_torch("gpt-" + std::string(codec), twice_as_large(tiny_gpt()), s);
  }
}
// With sequence parallelism the rows that are gathered and scattered go as codes, and equally many tokens of each rank's part are kept.
TEST(Oracle, GptWithPartsOfSequencesInCodes) {
  for (const char* codec : {"segmented:8", "token-topk:0.3", "token-topk:0.5,segmented:4x8"}) {
    SCOPED_TRACE(codec);
    Strategy s{.tp = 2, .sequence_parallel = true, .batch = {.micro = 2}};
    s.communication.activations = parse_compression(codec, Compressed::Activations, "this test", "codec");
    compare_with_torch("sequence-" + std::string(codec), twice_as_large(tiny_gpt()), s);
  }
}
TEST(Oracle, Llama) { compare_with_torch("llama", twice_as_large(tiny_llama()), {.batch = {.micro = 2}}); }
TEST(Oracle, Bert) { compare_with_torch("bert", twice_as_large(tiny_bert()), {.batch = {.micro = 2}}); }
TEST(Oracle, GptInUnfusedAttention) {
  compare_with_torch("gpt", twice_as_large(tiny_gpt()), {.batch = {.micro = 2}, .attention = AttentionKernel::Unfused});
}
TEST(Oracle, GptOnEightRanks) {
  compare_with_torch("gpt", twice_as_large(tiny_gpt()),
                     {.dp = 2, .tp = 2, .pp = 2, .sequence_parallel = true, .batch = {.micro = 1}, .zero = {.stage = 1}});
}
// Batch norm by the statistics of each micro-batch of two, on any number of ranks.
TEST(Oracle, Pictures) { compare_with_torch("cnn", tiny_cnn(), {.batch = {.micro = 2}}); }
TEST(Oracle, PicturesOnFourRanks) {
  compare_with_torch("cnn", tiny_cnn(), {.dp = 2, .pp = 2, .batch = {.micro = 2}, .zero = {.stage = 1}});
}
TEST(Oracle, LlamaOnFourRanks) {
  compare_with_torch("llama", twice_as_large(tiny_llama()), {.dp = 2, .tp = 2, .batch = {.micro = 1}, .zero = {.stage = 3}});
}

TEST(Oracle, ModelsOfToday) {
  for (const ModernModel& which : modern_models()) {
    SCOPED_TRACE(which.name);
    compare_with_torch(which.name, as_in_torch(which), {.batch = {.micro = 2}});
  }
}

TEST(Oracle, MixturesOfExperts) {
  for (const ModernModel& which : mixtures()) {
    SCOPED_TRACE(which.name);
    compare_with_torch(which.name, as_in_torch(which), {.batch = {.micro = 2}});
  }
}
TEST(Oracle, RowsOfExpertsInCodes) {
  for (const char* codec : {"fp8", "eight-bit"}) {
    SCOPED_TRACE(codec);
    Strategy split{.dp = 4, .experts = {.ep = 4, .load = {.kind = ExpertLoad::Kind::Worst}}, .batch = {.micro = 2}};
    split.communication.dispatch = parse_compression(codec, Compressed::Dispatch, "this test", "codec");
    compare_with_torch("mixtral-" + std::string(codec), as_in_torch(mixtures().front()), split);
  }
}
TEST(Oracle, MixturesOfExpertsOnFourRanks) {
  for (const ModernModel& which : mixtures()) {
    SCOPED_TRACE(which.name);
    Strategy split{.dp = 4, .experts = {.ep = 4}, .batch = {.micro = 2}, .zero = {.stage = 1}};
    split.experts.load = {.kind = ExpertLoad::Kind::Worst};
    compare_with_torch(which.name, as_in_torch(which), split);
    split.dp = 2, split.tp = 2, split.experts.ep = 2, split.sequence_parallel = true;
    compare_with_torch(which.name, as_in_torch(which), split);
  }
}

}  // namespace
}  // namespace foreshard::oracle_test
