// Any operator: its words, its settings in files of both versions, its laws where no graph shows them.
#include "core/op/operation.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "core/base/error.h"
#include "core/op/operation_json.h"
#include "tests/changed_text.h"

namespace foreshard::operation_test {
namespace {

std::string json_of(const Operation& operation) {
  JsonWriter json(0);
  json.begin_object();
  write_operation(json, operation);
  return json.end_object().text();
}
Operation read(const std::string& text) { return read_operation(JsonReader::parse(text, "p.json")); }
std::string message(const std::string& text) {
  return error_of([&] { read(text); });
}

}  // namespace

TEST(Operation, EachHasAWordOfItsOwn) {
  const std::vector<std::string>& all = operation_words();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(word(operation_of(i)), all[i]);
}

TEST(Operation, FilesHaveWhatIsNotUsual) {
  EXPECT_EQ(json_of(ops::Add{}), R"({"op":"add"})");
  EXPECT_EQ(json_of(ops::MatMul{}), R"({"op":"matmul"})");
  EXPECT_EQ(json_of(ops::Norm{.kind = NormKind::RmsNorm, .eps = 1e-6}),
            R"({"op":"norm","settings":{"kind":"rmsnorm","eps":1e-06}})");
  EXPECT_EQ(json_of(ops::Attention{.causal = true, .heads = 4, .kv_heads = 2, .dim = 64}),
            R"({"op":"attention","settings":{"causal":true,"heads":4,"kv_heads":2,"dim":64}})");
  EXPECT_EQ(
      json_of(ops::Attention{.heads = 4, .kv_heads = 4, .dim = 8, .split = {.ranks = 2, .chunks = 2}, .blocks = 2, .block = 1}),
      R"({"op":"attention","settings":{"heads":4,"kv_heads":4,"dim":8,"cp":2,"chunks":2,"blocks":2,"block":1}})");
  EXPECT_EQ(read(R"({"op":"rope","settings":{"heads":2,"dim":8,"cp":2,"chunks":0}})"),
            Operation(ops::Rope{.heads = 2, .dim = 8, .split = {.ranks = 2, .chunks = 0}}));
  EXPECT_EQ(read(R"({"op":"norm","settings":{"eps":1e-6,"kind":"rmsnorm"}})"),
            Operation(ops::Norm{.kind = NormKind::RmsNorm, .eps = 1e-6}));
}

TEST(Operation, SettingsOfTodaysAttention) {
  const ops::Attention sinks{.causal = true, .heads = 4, .kv_heads = 2, .dim = 64, .window = 128, .sinks = true};
  EXPECT_EQ(json_of(sinks),
            R"({"op":"attention","settings":{"causal":true,"heads":4,"kv_heads":2,"dim":64,"window":128,"sinks":true}})");
  EXPECT_EQ(read(json_of(sinks)), Operation(sinks));
  // Windows of two sizes are two kernels of a machine profile; heads of two sizes are one.
  EXPECT_EQ(kernel_words(sinks), " causal window=128 sinks");
  EXPECT_EQ(kernel_words(ops::Attention{.causal = true, .dim = 64}), " causal");
  EXPECT_EQ(kernel_words(ops::Attention{.dim = 64, .score_cap = 50, .chunk = 8, .value_dim = 4}),
            " score_cap=50 chunk=8 value_dim=4");
  EXPECT_EQ(json_of(ops::HeadNorm{.over = QkNorm::AllHeads, .heads = 2, .dim = 4}),
            R"({"op":"head_norm","settings":{"over":"all_heads","heads":2,"dim":4}})");
  EXPECT_EQ(json_of(ops::Scale{.factor = 0.5}), R"({"op":"scale","settings":{"factor":0.5}})");
  EXPECT_EQ(json_of(ops::Rope{.heads = 2, .dim = 8, .rotated = 4, .last = true}),
            R"({"op":"rope","settings":{"heads":2,"dim":8,"rotated":4,"last":true}})");
  EXPECT_EQ(json_of(ops::Rope{.heads = 2, .dim = 8, .scale = 1.5}),
            R"({"op":"rope","settings":{"heads":2,"dim":8,"scale":1.5}})");
}

TEST(Operation, FirstKeysOfWindowsAndChunks) {
  const ops::Attention window{.window = 3}, chunk{.chunk = 4}, all;
  for (std::int64_t query = 0; query < 12; ++query) {
    EXPECT_EQ(window.first_key(query), std::max<std::int64_t>(0, query - 2));
    EXPECT_EQ(chunk.first_key(query), query - query % 4);
    EXPECT_EQ(all.first_key(query), 0);
  }
}

TEST(Operation, WhatIsWrongIsNamed) {
  EXPECT_EQ(message(R"({"op":"matmull"})").substr(0, 37), "p.json: op: found \"matmull\", expected");
  EXPECT_EQ(message(R"({"op":"norm","settings":{"epsilon":1}})").substr(0, 60),
            "p.json: settings.epsilon: found an unknown key with value 1,");
  EXPECT_EQ(message(R"({"op":"norm","settings":{"eps":"small"}})"), "p.json: settings.eps: found \"small\", expected a number");
  EXPECT_EQ(message(R"({"op":"norm","settings":{"kind":"batch"}})"),
            "p.json: settings.kind: found \"batch\", expected one of \"layernorm\", \"rmsnorm\"");
  EXPECT_EQ(message(R"({"op":"rope","settings":{"heads":1.5}})").substr(0, 41), "p.json: settings.heads: found 1.5, expect");
  EXPECT_EQ(message(R"({"op":"rope","settings":{"heads":-1}})").substr(0, 40), "p.json: settings.heads: found -1, expect");
}

// The words of version 1, with everything that it wrote beside each operator.
TEST(Operation, Version1) {
  using enum ops::Activation::Function;
  using enum ops::CrossEntropy::Piece;
  using enum ops::CrossEntropy::Target;
  const struct {
    const char *word, *words;
    Operation expected;
    const char* rest = "";
  } cases[] = {
      {"matmul", "", ops::MatMul{}},
      {"matmul", "first_token", ops::MatMul{.first_token = true}},
      {"matmul", "scores causal heads=4 kv=2 dim=8", ops::Scores{.causal = true, .heads = 4, .kv_heads = 2, .dim = 8}},
      {"matmul", "values heads=4 kv=4 dim=8", ops::WeightedValues{.heads = 4, .kv_heads = 4, .dim = 8}},
      {"attention", "causal heads=4 kv=2 dim=8 cp=2 p=0.1 site=3",
       ops::Attention{.causal = true, .heads = 4, .kv_heads = 2, .dim = 8, .split = {.ranks = 2}, .p = 0.1, .site = 3}},
      {"softmax", "causal scale=0.25 cp=2", ops::Softmax{.causal = true, .scale = 0.25, .split = {.ranks = 2}}},
      {"norm", "rmsnorm eps=1e-06 accumulate_weights", ops::Norm{.kind = NormKind::RmsNorm, .eps = 1e-6}, "accumulate_weights"},
      {"norm", "layernorm eps=1e-05", ops::Norm{}},
      {"batch_norm", "eps=1e-05", ops::BatchNorm{}},
      {"activation", "swiglu", ops::Activation{.function = SwiGlu}},
      {"activation", "tanh", ops::Activation{.function = Tanh}},
      {"dropout", "p=0.1 site=2 sequence_parallel accumulate_weights",
       ops::Dropout{.p = 0.1, .site = 2, .sequence_parallel = true}, "accumulate_weights"},
      {"rope", "heads=0 kv=2 dim=8 theta=500000", ops::Rope{.kv_heads = 2, .dim = 8, .theta = 500000}},
      {"embedding", "tokens vocab=50257", ops::TokenEmbedding{.vocab = 50257}},
      {"embedding", "positions types sequence_parallel",
       ops::PositionEmbedding{.positions = true, .types = true, .sequence_parallel = true}},
      {"embedding", "sample", ops::Sample{}},
      {"cross_entropy", "loss_scale=65536 dynamic_scale label classes=10", ops::CrossEntropy{.target = Label, .classes = 10},
       "loss_scale=65536 dynamic_scale"},
      {"cross_entropy", "stage=exp classes=100", ops::CrossEntropy{.piece = Exp, .classes = 100}},
      {"cross_entropy", "classes=2 next_sentence", ops::CrossEntropy{.target = NextSentence, .classes = 2}},
      {"max_pool", "kernel=3 stride=2 padding=1", ops::MaxPool{.kernel = 3, .stride = 2, .padding = 1}},
      {"sgd", "momentum=0.9", ops::Sgd{.momentum = 0.9}},
      {"grad_norm", "divide=2 used=7", ops::GradNorm{.divide = 2, .used = 7}},
      {"clip_scale", "loss_scale=2 max_norm=0.5", ops::ClipScale{.max_norm = 0.5}, "loss_scale=2"},
      {"clip_scale", "growth=2000 start=65536", ops::JudgeOverflow{.growth = 2000, .start = 65536}},
      {"zero", "", ops::Zero{}},
  };
  for (const auto& at : cases) {
    std::string rest;
    EXPECT_EQ(read_old_operation(at.word, at.words, rest), at.expected) << at.word << ": " << at.words;
    EXPECT_EQ(rest, at.rest) << at.word << ": " << at.words;
  }
  std::string rest;
  EXPECT_THROW(read_old_operation("bias", "", rest), std::invalid_argument);
  EXPECT_THROW(read_old_operation("rope", "heads=many", rest), std::invalid_argument);
  EXPECT_THROW(read_old_operation("rope", "kv=1.5", rest), std::invalid_argument);
}

// Every operator of a layer counts what it does in the forward, and knows what its backward needs.
TEST(Operation, SettingsForPeople) {
  EXPECT_EQ(settings_text(ops::Attention{.causal = true, .heads = 4, .kv_heads = 2, .dim = 64}),
            "causal heads=4 kv_heads=2 dim=64");
  EXPECT_EQ(settings_text(ops::Add{}), "");
  EXPECT_EQ(settings_text(ops::Activation{}), "gelu");
  EXPECT_EQ(kernel_words(ops::Attention{.causal = true, .heads = 4, .p = 0.1}), " causal p");
  EXPECT_EQ(kernel_words(ops::CrossEntropy{.classes = 7}), " whole next_token");
}

TEST(Operation, SomeLaws) {
  // What is linear in its operands hands a part of a sum on; products make one where the weight is cut along what is summed over.
  for (std::size_t i = 0; i < operation_words().size(); ++i)
    EXPECT_EQ(
        partial_sums(operation_of(i), Phase::Forward).pass,
        (is<ops::MatMul, ops::Add, ops::Cast, ops::Encode, ops::Decode, ops::TakeRows, ops::PutRows, ops::Rope, ops::Scale>(
            operation_of(i))))
        << operation_words()[i];
  EXPECT_EQ(partial_sums(ops::MatMul{}, Phase::Forward).summed_dim, 1);
  EXPECT_EQ(partial_sums(ops::MatMul{}, Phase::InputGrad).summed_dim, 0);
  EXPECT_EQ(partial_sums(ops::MatMul{}, Phase::WeightGrad).summed_dim, -1);
  // The loss scale goes in with the loss and out with the update, and the norm that is clipped has it.
  EXPECT_TRUE(takes_loss_scale(ops::CrossEntropy{}, Phase::InputGrad));
  EXPECT_FALSE(takes_loss_scale(ops::CrossEntropy{}, Phase::Forward));
  EXPECT_TRUE(takes_loss_scale(ops::Adam{}, Phase::Update));
  EXPECT_TRUE(takes_loss_scale(ops::ClipScale{}, Phase::Update));
  EXPECT_FALSE(takes_loss_scale(ops::GradNorm{}, Phase::Update));
  EXPECT_TRUE(writes_loss(ops::CrossEntropy{}));
  EXPECT_FALSE(writes_loss(ops::CrossEntropy{.piece = ops::CrossEntropy::Piece::Exp}));
  // y [5, 7] = x [5, 3] w [7, 3]^T in bf16 with fp32 weights: 210 FLOPs; 15 + 35 values of 2 bytes, 21 weights of 4.
  const ops::Sizes sizes = {.shapes = {{{1, 5, 7, 3}}}, .param = DType::F32, .inputs_need_grad = false};
  const ops::Works work = works(ops::MatMul{}, sizes);
  EXPECT_EQ(work.forward, (OpWork{{210}, {184}}));
  EXPECT_EQ(work.weight_grad, work.forward);
  EXPECT_EQ(work.input_grad, OpWork{});
}

}  // namespace foreshard::operation_test
