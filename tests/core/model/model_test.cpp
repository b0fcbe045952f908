// Shipped models: every parameter count, derived; reading, writing and finding models.
#include "core/model/model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/json/json.h"

namespace foreshard::model_test {

namespace fs = std::filesystem;

static std::int64_t parameters(const std::string& name) { return parameter_count(load_model(name)); }
static const Transformer& transformer(const Model& model) { return std::get<Transformer>(model.shape); }

// GPT: per layer 4 h^2 + 4 h (attention) + 8 h^2 + 5 h (MLP) + 4 h (two LayerNorms) = 12 h^2 + 13 h; then (V + s) h for
// the embeddings (the output projection is tied) and 2 h for the last LayerNorm.
static std::int64_t gpt(std::int64_t layers, std::int64_t h, std::int64_t vocab, std::int64_t positions) {
  return layers * (12 * h * h + 13 * h) + (vocab + positions) * h + 2 * h;
}

// Llama: per layer q and o 2 h^2, k and v 2 h (h g / a), gate, up and down 3 h f, two RMSNorms 2 h; then input and
// output embeddings 2 V h and the last RMSNorm h.
static std::int64_t llama(std::int64_t layers, std::int64_t h, std::int64_t f, std::int64_t a, std::int64_t g,
                          std::int64_t vocab) {
  return layers * (2 * h * h + 2 * h * (h / a * g) + 3 * h * f + 2 * h) + 2 * vocab * h + h;
}

TEST(ShippedModels, Gpt2) {
  // 12 (12 * 768^2 + 13 * 768) = 85,054,464; (50257 + 1024) * 768 = 39,383,808; 2 * 768 = 1536
  EXPECT_EQ(parameters("gpt2-124m"), 85'054'464 + 39'383'808 + 1536);
  EXPECT_EQ(parameters("gpt2-124m"), 124'439'808);
  EXPECT_EQ(parameters("gpt2-355m"), 354'823'168);
  EXPECT_EQ(parameters("gpt2-774m"), 774'030'080);
  EXPECT_EQ(parameters("gpt2-1.5b"), 1'557'611'200);
  EXPECT_EQ(gpt(24, 1024, 50257, 1024), 354'823'168);
  EXPECT_EQ(gpt(36, 1280, 50257, 1024), 774'030'080);
  EXPECT_EQ(gpt(48, 1600, 50257, 1024), 1'557'611'200);
}

TEST(ShippedModels, Gpt3AndTuring) {
  // 96 (12 * 12288^2 + 13 * 12288) = 173,961,510,912; 52,305 * 12288 = 642,723,840; 24,576
  EXPECT_EQ(parameters("gpt3-175b"), 174'604'259'328);
  EXPECT_EQ(gpt(96, 12288, 50257, 2048), 174'604'259'328);
  // 105 (12 * 20480^2 + 13 * 20480) = 528,510,259,200; 52,305 * 20480 = 1,071,206,400; 40,960
  EXPECT_EQ(parameters("turing-530b"), 529'581'506'560);
  EXPECT_EQ(gpt(105, 20480, 50257, 2048), 529'581'506'560);
}

TEST(ShippedModels, PaddingTheVocabularyAddsRows) {
  // 50257 -> 51200 is 943 rows of 12288
  EXPECT_EQ(parameter_count(load_model("gpt3-175b"), 1024), 174'604'259'328 + 943 * 12288);
  // 50257 -> 50304 is 47 rows of 768
  EXPECT_EQ(parameter_count(load_model("gpt2-124m"), 128), 124'439'808 + 47 * 768);
  // Llama has two such tables: 32000 -> 32256 is 256 rows of 4096, twice
  EXPECT_EQ(parameter_count(load_model("llama-2-7b"), 768), 6'738'415'616 + 2 * 256 * 4096);
}

// SC'21 table 1 prints billions of 12 L h^2 (1 + 13 / (12 h) + (V + s) / (12 L h)), one digit after the point; we count
// the last LayerNorm's 2 h too.
TEST(ShippedModels, MegatronTable) {
  struct Row {
    const char* name;
    std::int64_t layers, hidden, heads, exact;
    double printed;
  };
  const Row rows[] = {
      {"megatron-1.7b", 24, 2304, 24, 1'652'230'656, 1.7},        {"megatron-3.6b", 30, 3072, 32, 3'562'168'320, 3.6},
      {"megatron-7.5b", 36, 4096, 32, 7'467'786'240, 7.5},        {"megatron-18b", 40, 6144, 48, 18'449'756'160, 18.4},
      {"megatron-39b", 48, 8192, 64, 39'096'041'472, 39.1},       {"megatron-76b", 60, 10240, 80, 76'050'739'200, 76.1},
      {"megatron-145b", 80, 12288, 96, 145'622'261'760, 145.6},   {"megatron-310b", 96, 16384, 128, 310'130'540'544, 310.1},
      {"megatron-530b", 105, 20480, 128, 529'600'819'200, 529.6}, {"megatron-1t", 128, 25600, 160, 1'008'038'758'400, 1008.0}};
  for (const Row& row : rows) {
    const Model model = load_model(row.name);
    EXPECT_EQ(parameter_count(model), row.exact) << row.name;
    EXPECT_EQ(parameter_count(model), gpt(row.layers, row.hidden, 51200, 2048)) << row.name;
    EXPECT_EQ(transformer(model).heads, row.heads);
    const double paper = static_cast<double>(row.exact - 2 * row.hidden) * 1e-9;
    EXPECT_EQ(std::round(paper * 10) / 10, row.printed) << row.name;
  }
  EXPECT_NEAR(static_cast<double>(parameters("megatron-1t")) * 1e-9, 1008.04, 0.005);
}

TEST(ShippedModels, Llama) {
  // 32 (4 * 4096^2 + 3 * 4096 * 11008 + 2 * 4096) + 2 * 32000 * 4096 + 4096
  EXPECT_EQ(parameters("llama-2-7b"), 6'738'415'616);
  EXPECT_EQ(llama(32, 4096, 11008, 32, 32, 32000), 6'738'415'616);
  EXPECT_EQ(parameters("llama-2-13b"), 13'015'864'320);
  EXPECT_EQ(llama(40, 5120, 13824, 40, 40, 32000), 13'015'864'320);
  EXPECT_EQ(parameters("llama-2-70b"), 68'976'648'192);
  EXPECT_EQ(llama(80, 8192, 28672, 64, 8, 32000), 68'976'648'192);
  EXPECT_EQ(parameters("llama-3-8b"), 8'030'261'248);
  EXPECT_EQ(llama(32, 4096, 14336, 32, 8, 128256), 8'030'261'248);
  EXPECT_EQ(parameters("llama-3-70b"), 70'553'706'496);
  EXPECT_EQ(llama(80, 8192, 28672, 64, 8, 128256), 70'553'706'496);
  EXPECT_EQ(parameters("llama-3-405b"), 405'853'388'800);
  EXPECT_EQ(llama(126, 16384, 53248, 128, 8, 128256), 405'853'388'800);
}

TEST(ShippedModels, BertLarge) {
  // Embeddings (30522 + 512 + 2) * 1024 and their LayerNorm 2048: 31,782,912. 24 layers of 12 h^2 + 13 h = 302,309,376.
  // Pooler h^2 + h = 1,049,600: 335,141,888, the body (BertModel). Masked-language head: h^2 + h, LayerNorm 2 h, bias
  // 30,522 = 1,082,170; next-sentence head 2 h + 2 = 2050. The decoder is tied.
  EXPECT_EQ(parameters("bert-large"), 335'141'888 + 1'082'170 + 2050);
  EXPECT_EQ(parameters("bert-large"), 336'226'108);
}

TEST(ShippedModels, ConvolutionalNetworks) {
  // torchvision: resnet50 25,557,032; vgg16 138,357,544 = 14,714,688 (convolutions) + 123,642,856 (fully connected).
  EXPECT_EQ(parameters("resnet-50"), 25'557'032);
  EXPECT_EQ(parameters("vgg-16"), 138'357'544);
  const LayerList vgg = std::get<LayerList>(load_model("vgg-16").shape);
  EXPECT_EQ(output_shapes(vgg).at(vgg.layers.size() - 6), (std::vector<std::int64_t>{25088}));  // flattened 512 x 7 x 7
  const LayerList resnet = std::get<LayerList>(load_model("resnet-50").shape);
  const auto shapes = output_shapes(resnet);
  EXPECT_EQ(shapes.at(3), (std::vector<std::int64_t>{64, 56, 56}));
  EXPECT_EQ(shapes.at(shapes.size() - 4), (std::vector<std::int64_t>{2048, 7, 7}));
}

TEST(ShippedModels, ToyMatmul) {
  EXPECT_EQ(parameters("toy-matmul"), 5 * 8);
  EXPECT_EQ(std::get<LayerList>(load_model("toy-matmul").shape).classes, 0);
}

static std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

TEST(ShippedModels, EachHasItsNameASourceAndARowInTheReadme) {
  const std::string readme = read_file(std::string(FORESHARD_SOURCE) + "/models/README.md");
  const auto names = shipped("models");
  EXPECT_EQ(names.size(), 59u);
  for (const std::string& name : names) {
    const Model model = load_model(name);
    EXPECT_EQ(model.name, name);
    EXPECT_GT(model.source.size(), 20u) << name;
    const auto row = readme.find("| `" + name + "` |");
    ASSERT_NE(row, std::string::npos) << name;
    const std::string line = readme.substr(row, readme.find('\n', row) - row);
    EXPECT_NE(line.find("| " + with_commas(parameter_count(model)) + " |"), std::string::npos) << line;
  }
}

TEST(ModelFile, WrittenModelsReadBackEqual) {
  for (const std::string& name : shipped("models")) {
    const Model model = load_model(name);
    EXPECT_EQ(parse_model(to_json(model), "other.json"), model) << name;
  }
}

TEST(ModelFile, EveryFieldOfATransformerIsWritten) {
  Transformer t{.causal = false, .layers = 3, .hidden = 24, .ffn_hidden = 7, .heads = 6, .kv_heads = 2, .head_dim = 10};
  t.vocab = 11, t.max_positions = 13, t.token_types = 5, t.norm = NormKind::RmsNorm, t.activation = ActivationKind::Relu;
  t.positions = PositionKind::None, t.qkv_bias = t.projection_bias = t.mlp_bias = t.tied_embeddings = false;
  t.post_norm = t.embedding_norm = t.pooler = t.mlm_head = t.lm_head_bias = true, t.final_norm = false;
  t.block.norm_eps = 0.1, t.attention.rope_theta = 1.0 / 3;
  const Model model{.name = "odd \"one\"", .source = "made up", .shape = t};
  EXPECT_EQ(parse_model(to_json(model), "x.json"), model);
  // Counted by hand: q 24*60, k and v 2*24*20, o 60*24, MLP 2*24*7, norms 2*24: 4224 per layer; tables (11 + 5) * 24,
  // embedding norm 24, head 11 * 24 + 11 and 24*24 + 24 + 24, pooler 24*24 + 24 + 2*24 + 2.
  EXPECT_EQ(parameter_count(model), 3 * 4224 + 384 + 24 + 275 + 624 + 650);
}

class ModelFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("foreshard-model-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "Llama-Mini");
    write_file(folder_ / "Llama-Mini" / "config.json", read_file(data_directory() + "/models/llama-2-7b.json"));
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(ModelFolder, APathOrACheckpointFolderIsAModelToo) {
  const std::string folder = folder_ / "Llama-Mini";
  EXPECT_EQ(load_model(folder).name, "Llama-Mini");
  EXPECT_EQ(load_model(folder + "/config.json").name, "Llama-Mini");
  EXPECT_EQ(load_model(folder + "/config.json").shape, load_model("llama-2-7b").shape);
  EXPECT_THROW(load_model(folder_), Error);
  EXPECT_THROW(load_model("missing.json"), Error);
}

TEST(ModelFile, AnUnknownNameSuggestsTheNearest) {
  try {
    load_model("gpt3-175");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "model: found \"gpt3-175\", expected a file or a shipped model (nearest: \"gpt3-175b\")");
  }
}

}  // namespace foreshard::model_test
