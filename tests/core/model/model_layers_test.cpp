// Layer lists and our own transformer form: every way such a file can be wrong.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/model/model.h"

namespace foreshard::model_layers_test {

static std::string message(const std::string& text) {
  try {
    parse_model(text, "net.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

static std::string list(const std::string& layers, const std::string& head = R"("input": [3, 8, 8])") {
  return R"({"model_type": "foreshard-layers", )" + head + R"(, "layers": [)" + layers + "]}";
}

static const char* const conv = R"({"name": "a", "op": "conv2d", "features": 4, "kernel": 3, "padding": 1})";

TEST(LayerList, ShapesAndSourcesFollowTheGraph) {
  // 3x8x8 -> conv stride 2: (8 + 2 - 3) / 2 + 1 = 4 -> 4x4x4; b reads a; c = a + b; pool 2: 2x2; 16 features; 5 classes
  const Model model = parse_model(list(R"({"name": "a", "op": "conv2d", "features": 4, "kernel": 3, "stride": 2,
      "padding": 1, "bias": true}, {"name": "b", "op": "batch_norm"}, {"name": "c", "op": "add", "inputs": ["a", "b"]},
      {"name": "r", "op": "relu"}, {"name": "p", "op": "max_pool", "kernel": 2, "stride": 2}, {"name": "f", "op": "flatten"},
      {"name": "l", "op": "linear", "features": 5})",
                                       R"("input": [3, 8, 8], "classes": 5, "name": "tiny", "source": "here")"),
                                  "net.json");
  EXPECT_EQ(model.name, "tiny");
  EXPECT_EQ(model.source, "here");
  const LayerList& layers = std::get<LayerList>(model.shape);
  const auto shapes = output_shapes(layers);
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(shapes, (std::vector<Shape>{{4, 4, 4}, {4, 4, 4}, {4, 4, 4}, {4, 4, 4}, {4, 2, 2}, {16}, {5}}));
  EXPECT_EQ(input_layers(layers), (std::vector<std::vector<int>>{{-1}, {0}, {0, 1}, {2}, {3}, {4}, {5}}));
  // conv 4 * 3 * 9 + 4, batch norm 2 * 4, linear 16 * 5 without bias
  EXPECT_EQ(parameter_count(model), 112 + 8 + 80);
  EXPECT_EQ(parse_model(to_json(model), "x"), model);
}

TEST(LayerList, TheGraphIsADag) {
  const std::string a = conv;
  EXPECT_EQ(message(list(a + R"(, {"name": "b", "op": "relu", "inputs": ["c"]}, {"name": "c", "op": "relu"})")),
            "net.json: layers[1].inputs[0]: found \"c\", which does not stand earlier (a cycle, or out of order), "
            "expected the "
            "name of an earlier layer or \"input\"");
  EXPECT_EQ(message(list(a + R"(, {"name": "b", "op": "relu", "inputs": ["b"]})")),
            "net.json: layers[1].inputs[0]: found \"b\", which does not stand earlier (a cycle, or out of order), "
            "expected the "
            "name of an earlier layer or \"input\"");
  EXPECT_EQ(message(list(a + R"(, {"name": "bb", "op": "relu"}, {"name": "c", "op": "relu", "inputs": ["bc"]})")),
            "net.json: layers[2].inputs[0]: found \"bc\", expected the name of an earlier layer (nearest: \"bb\")");
  EXPECT_EQ(message(list(a + ", " + a)),
            "net.json: layers[1].name: found \"a\" a second time, expected a name of its own (\"input\" is the sample)");
  EXPECT_EQ(message(list(R"({"name": "input", "op": "relu"})")),
            "net.json: layers[0].name: found \"input\" a second time, expected a name of its own (\"input\" is the sample)");
  EXPECT_EQ(message(list(R"({"name": "", "op": "relu"})")), "net.json: layers[0].name: found \"\", expected a name");
  EXPECT_EQ(message(list(a + R"(, {"name": "b", "op": "relu", "inputs": ["input"]})")),
            "net.json: layers[0] (a): found a layer that no other reads, expected the last layer to be the only end");
  EXPECT_EQ(message(list(a + R"(, {"name": "b", "op": "relu"}, {"name": "c", "op": "relu", "inputs": ["a"]})")),
            "net.json: layers[1] (b): found a layer that no other reads, expected the last layer to be the only end");
}

TEST(LayerList, LayersFitTheirInputs) {
  const std::string a = conv;
  EXPECT_EQ(message(list(R"({"name": "a", "op": "linear", "features": 2})")),
            "net.json: layers[0] (a): found an input of 3 x 8 x 8, expected one dimension (flatten comes first)");
  EXPECT_EQ(message(list(a, R"("input": [3])")),
            "net.json: layers[0] (a): found an input of 3, expected channels x height x width");
  EXPECT_EQ(message(list(a + R"(, {"name": "b", "op": "add", "inputs": ["a", "input"]})")),
            "net.json: layers[1] (b): found inputs of 4 x 8 x 8 and 3 x 8 x 8, expected inputs of one shape");
  EXPECT_EQ(message(list(a + R"(, {"name": "b", "op": "add"})")),
            "net.json: layers[1].inputs: found 1 inputs, expected at least 2");
  EXPECT_EQ(message(list(a + R"(, {"name": "b", "op": "relu", "inputs": ["a", "input"]})")),
            "net.json: layers[1].inputs: found 2 inputs, expected one input");
  EXPECT_EQ(message(list(R"({"name": "a", "op": "avg_pool", "kernel": 9})")),
            "net.json: layers[0].kernel: found 9, expected at most the padded input of 8");
  EXPECT_EQ(message(list(R"({"name": "a", "op": "avg_pool", "kernel": 2, "padding": 2})")),
            "net.json: layers[0].padding: found 2, expected less than the kernel of 2");
  EXPECT_EQ(message(list(a, R"("input": [3, 8, 8], "classes": 10)")),
            "net.json: layers[0] (a): found an output of 4 x 8 x 8, expected the 10 classes, one feature each");
  EXPECT_EQ(message(list(R"({"name": "a", "op": "conv2d", "features": 1000000000, "kernel": 1}, {"name": "b",
                            "op": "conv2d", "features": 1000000000, "kernel": 1})",
                         R"("input": [1, 8, 8])")),
            "net.json: layers[1] (b): found more than 1e16 parameters up to here, expected fewer");
  EXPECT_EQ(message(list(R"({"name": "a", "op": "conv2d", "features": 1000000000, "kernel": 1})", R"("input": [1, 800, 800])")),
            "net.json: layers[0] (a): found an output of 1000000000 x 800 x 800, expected at most 1e12 elements");
}

TEST(LayerList, AListBuiltByHandIsCheckedToo) {
  LayerList list{.input = {3, 8, 8}, .layers = {{.name = "a", .op = LayerOp::MaxPool, .kernel = 2, .stride = 0}}};
  EXPECT_THROW(output_shapes(list), Error);
  list.layers[0] = {.name = "a", .op = LayerOp::MaxPool};
  EXPECT_THROW(output_shapes(list), Error);
  list.input = {};
  EXPECT_THROW(output_shapes(list), Error);
}

TEST(LayerList, KeysAndValuesAreStrict) {
  EXPECT_EQ(message(list(R"({"name": "a", "op": "relu", "kernel": 3})")),
            "net.json: layers[0].kernel: found an unknown key with value 3, expected one of name, op, inputs");
  EXPECT_EQ(message(list(R"({"name": "a", "op": "conv"})")),
            "net.json: layers[0].op: found \"conv\", expected one of \"conv2d\", \"batch_norm\", \"relu\", \"max_pool\", "
            "\"avg_pool\", \"add\", \"flatten\", \"linear\" (nearest: \"conv2d\")");
  EXPECT_EQ(message(list(R"({"op": "relu"})")), "net.json: layers[0].name: found nothing, expected a value for this key");
  EXPECT_EQ(message(list(R"({"name": "a", "op": "linear"})")),
            "net.json: layers[0].features: found nothing, expected a value for this key");
  EXPECT_EQ(message(list(R"({"name": "a", "op": "max_pool", "kernel": 2, "stride": 0})")),
            "net.json: layers[0].stride: found 0, expected an integer from 1 to 1000000");
  EXPECT_EQ(message(list(R"({"name": "a", "op": "linear", "features": 2, "bias": 1})")),
            "net.json: layers[0].bias: found 1, expected true or false");
  EXPECT_EQ(message(list(R"({"name": "a", "op": "relu"})")),
            "net.json: layers: found an array of 1, expected at least one layer with parameters");
  EXPECT_EQ(message(list("3")), "net.json: layers[0]: found 3, expected an object with name and op");
  EXPECT_EQ(message(list("")), "net.json: layers: found an array of 0, expected from 1 to 100,000 layers");
  EXPECT_EQ(message(list(conv, R"("input": [3, 8])")),
            "net.json: input: found an array of 2, expected [features] or [channels, height, width]");
  EXPECT_EQ(message(list(conv, R"("input": [0])")), "net.json: input[0]: found 0, expected an integer from 1 to 1000000000");
  EXPECT_EQ(message(list(conv, R"("input": [1000000, 1000000, 2])")),
            "net.json: input: found an array of 3, expected at most 1e12 elements");
  EXPECT_EQ(message(list(conv, R"("input": [3, 8, 8], "clases": 4)")).substr(0, 71),
            "net.json: clases: found an unknown key with value 4, expected \"classes\"");
}

TEST(TransformerFile, KeysAndValuesAreStrict) {
  const auto with = [](const std::string& more) {
    return message(R"({"model_type": "foreshard-transformer", "layers": 2, "hidden": 8, "heads": 4, "vocab": 10,
                       "max_positions": 16)" +
                   more + "}");
  };
  EXPECT_EQ(with(""), "no error");
  EXPECT_EQ(with(R"(, "qkv_bais": true)").substr(0, 77),
            "net.json: qkv_bais: found an unknown key with value true, expected \"qkv_bias\"");
  EXPECT_EQ(with(R"(, "kv_heads": 3)"), "net.json: kv_heads: found 3, expected a divisor of the 4 heads");
  EXPECT_EQ(with(R"(, "norm": "layernorm")"),
            "net.json: norm: found \"layernorm\", expected one of \"layer_norm\", \"rms_norm\" (nearest: \"layer_norm\")");
  EXPECT_EQ(with(R"(, "pooler": true)"),
            "net.json: pooler: found true, expected false: only an encoder (causal false) has this head");
  EXPECT_EQ(with(R"(, "positions": "rope", "head_dim": 5)"),
            "net.json: head_dim: found 5, expected an even number: rotary embeddings turn pairs");
  EXPECT_EQ(with(R"(, "norm_eps": 2)"), "net.json: norm_eps: found 2, expected a number from 0 to 1");
  EXPECT_EQ(message(R"({"model_type": "foreshard-transformer", "layers": 2, "hidden": 9, "heads": 4, "vocab": 1,
                       "max_positions": 1})"),
            "net.json: heads: found 4, expected a divisor of the hidden size 9");
}

}  // namespace foreshard::model_layers_test
