// Strategy: state formats, text forms, JSON.
#include "core/strategy/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "core/base/error.h"
#include "core/strategy/strategy_options.h"

namespace foreshard::strategy_test {

template <class Call>
static std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Bytes per parameter with Adam: parameter + gradient + master copy + two moments.
static std::int64_t bytes_per_parameter(const Strategy& strategy) {
  const StateTypes types = state_types(strategy);
  return size_of(types.param).value + size_of(types.grad).value + size_of(types.state).value * (types.master ? 3 : 2);
}

TEST(StateTypes, BytesPerParameterOfEachPrecision) {
  EXPECT_EQ(bytes_per_parameter({}), 16);                                       // ZeRO paper: 2 + 2 + 12
  EXPECT_EQ(bytes_per_parameter({.precision = DType::F16}), 16);                // 2 + 2 + 12
  EXPECT_EQ(bytes_per_parameter({.precision = DType::F32}), 16);                // 4 + 4 + 8
  EXPECT_EQ(bytes_per_parameter({.precision = DType::TF32}), 16);               // stored as fp32
  EXPECT_EQ(bytes_per_parameter({.precision = DType::F64}), 32);                // 8 + 8 + 16
  EXPECT_EQ(bytes_per_parameter({.state_dtypes = {.grad = DType::F32}}), 18);   // 2 + 4 + 12
  EXPECT_EQ(bytes_per_parameter({.state_dtypes = {.param = DType::F32}}), 16);  // 4 + 4 + 8, no master copy
  EXPECT_EQ(bytes_per_parameter({.state_dtypes = {.state = DType::BF16}}), 8);  // 2 + 2 + 4
  EXPECT_EQ(bytes_per_parameter({.precision = DType::F32, .state_dtypes = {.grad = DType::BF16}}), 14);
}

TEST(StateTypes, FrameworksDifferAndOverridesWin) {
  EXPECT_EQ(bytes_per_parameter({.framework = "megatron"}), 18);  // bf16, fp32 main gradients
  EXPECT_EQ(bytes_per_parameter({.precision = DType::F16, .framework = "megatron"}), 16);
  EXPECT_EQ(bytes_per_parameter({.precision = DType::F16, .framework = "deepspeed"}), 18);
  EXPECT_EQ(bytes_per_parameter({.precision = DType::F32, .framework = "megatron"}), 16);
  const StateTypes torchtitan = state_types({.framework = "torchtitan"});
  EXPECT_EQ(torchtitan.compute, DType::BF16);
  EXPECT_EQ(torchtitan.param, DType::F32);
  EXPECT_EQ(torchtitan.grad, DType::F32);
  EXPECT_FALSE(torchtitan.master);
  EXPECT_EQ(bytes_per_parameter({.state_dtypes = {.grad = DType::BF16}, .framework = "megatron"}), 16);
  EXPECT_EQ(bytes_per_parameter({.state_dtypes = {.param = DType::BF16}, .framework = "torchtitan"}), 16);
}

TEST(StateTypes, Tf32IsStoredAsFp32) {
  const StateTypes types = state_types({.precision = DType::TF32});
  EXPECT_EQ(types.compute, DType::TF32);
  EXPECT_EQ(types.param, DType::F32);
  EXPECT_EQ(types.grad, DType::F32);
}

// fp8 is a format of factors: all that is kept is as with bf16, whichever framework keeps it.
TEST(StateTypes, Fp8IsStoredAsBf16) {
  for (const std::string& framework : framework_names()) {
    const StateTypes eighth = state_types({.precision = DType::F8, .framework = framework}),
                     half = state_types({.framework = framework});
    EXPECT_EQ(eighth.compute, half.compute) << framework;
    EXPECT_EQ(eighth.param, half.param) << framework;
    EXPECT_EQ(eighth.grad, half.grad) << framework;
    EXPECT_EQ(eighth.state, half.state) << framework;
    EXPECT_EQ(eighth.master, half.master) << framework;
  }
}

TEST(LayerSplit, CountTimesStages) {
  EXPECT_EQ(parse_layer_split("2,3x2,1", ""), (std::vector<int>{2, 3, 3, 1}));
  EXPECT_EQ(parse_layer_split("7", ""), (std::vector<int>{7}));
  const std::vector<int> layers = parse_layer_split("2,3x14,2", "");
  EXPECT_EQ(layers.size(), 16u);
  EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 46);  // 2 + 42 + 2
}

TEST(LayerSplit, SaysWhichPartIsWrong) {
  const std::string expected = ", expected layers per stage such as \"2,3x14,2\" (3x14: fourteen stages of three layers)";
  for (const std::string part : {"", "00", "-1", "x3", "3x", "3x0", "3x2x2", "3.5", "three", " 3", "99999999999"})
    EXPECT_EQ(message_of([&] { parse_layer_split("2," + part, "s.json"); }),
              "s.json: layer_split: found \"" + part + "\" in \"2," + part + "\"" + expected);
  EXPECT_EQ(message_of([] { parse_layer_split("1x90000,1x90000", "s.json"); }),
            "s.json: layer_split: found \"1x90000,1x90000\", expected at most 100000 stages");
}

// A first stage that holds the embedding alone, a last one that holds the head alone; no empty stage between them.
TEST(LayerSplit, TheEndsMayHaveNoLayer) {
  EXPECT_EQ(parse_layer_split("0,2x2,0", ""), (std::vector<int>{0, 2, 2, 0}));
  for (const std::string text : {"0", "1,0,1", "0x2,1"})
    EXPECT_EQ(message_of([&] { parse_layer_split(text, "s.json"); }),
              "s.json: layer_split: found \"" + text + "\", expected a layer in every stage but the first and the last");
}

TEST(StageText, LayersReplicasAndTensorRanks) {
  const std::vector<StageDegrees> stages = parse_stages("10:2x1,22:1x2", "");
  EXPECT_EQ(stages, (std::vector<StageDegrees>{{10, 2, 1}, {22, 1, 2}}));
  EXPECT_EQ(to_text(stages), "10:2x1,22:1x2");
  EXPECT_EQ(parse_stages("0:1x1,4:2x2,0:8x1", "").size(), 3u);  // embedding and head alone
  EXPECT_EQ(widest_tp({.stages = stages}), 2);
  EXPECT_EQ(widest_tp({.tp = 4}), 4);
}

// As in a layer split: 3x14 are fourteen stages of three layers.
TEST(StageText, EqualStagesInARow) {
  const std::vector<StageDegrees> stages = parse_stages("2:4x1,3x2:2x1,3:1x2", "");
  EXPECT_EQ(stages, (std::vector<StageDegrees>{{2, 4, 1}, {3, 2, 1}, {3, 2, 1}, {3, 1, 2}}));
  EXPECT_EQ(to_text(stages), "2:4x1,3x2:2x1,3:1x2");
  EXPECT_EQ(parse_stages("2:4x1,3x1:2x1,3:2x1,3:1x2", ""), stages);
  EXPECT_EQ(to_text(std::vector<StageDegrees>(32, {1, 2, 1})), "1x32:2x1");
}

// What is printed is read back, and nothing shorter says the same with each part a row of equal stages: as many parts as there are places
// where a stage differs from the one before, and one.
TEST(StageText, RandomStagesReadBackEqual) {
  std::mt19937_64 random(611);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int k = 0; k < 1000; ++k) {
    std::vector<StageDegrees> stages;
    for (int rows = 1 + pick(5); rows-- > 0;) {
      const StageDegrees one{1 + pick(3), 1 + pick(2), 1 + pick(2)};
      stages.insert(stages.end(), static_cast<std::size_t>(1 + pick(12)), one);
    }
    if (stages.size() > 1 && pick(3) == 0) stages.front().layers = 0;
    if (stages.size() > 1 && pick(3) == 0) stages.back().layers = 0;
    std::ptrdiff_t differ = 0;
    for (std::size_t i = 1; i < stages.size(); ++i) differ += stages[i] != stages[i - 1];
    const std::string text = to_text(stages);
    ASSERT_EQ(parse_stages(text, "test"), stages) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), ','), differ) << text;
    EXPECT_EQ(parse_strategy(to_json({.stages = stages}), "test").stages, stages);
  }
}

TEST(StageText, SaysWhichPartIsWrong) {
  for (const std::string part : {"", "10", "10:2", "10:2x", "10:x2", "10:2x1x1", "-1:1x1", "1:0x1", "1:1x0", "a:1x1",
                                 "1:1000001x1", "x2:1x1", "1x:1x1", "1x0:1x1", "1x2x3:1x1"})
    EXPECT_EQ(
        message_of([&] { parse_stages("4:1x1," + part, "s.json"); }),
        "s.json: stages: found \"" + part + "\" (part 2) in \"4:1x1," + part +
            "\", expected LAYERS:DPxTP of each stage such as \"10:2x1,4x3:1x2\" (ten layers on two replicas of one GPU, then "
            "three stages of four layers on one replica of two)");
  EXPECT_EQ(message_of([] { parse_stages("1x90000:1x1,2x20000:1x1", "s.json"); }),
            "s.json: stages: found 90000 and 20000 more, expected at most 100000 stages");
  for (const std::string text : {"0:1x1", "1:1x1,0:2x1,1:1x1", "0x2:1x1,1:1x1"})
    EXPECT_EQ(message_of([&] { parse_stages(text, "s.json"); }),
              "s.json: stages: found \"" + text + "\", expected a layer in every stage but the first and the last");
}

// A file says them as a list; dp and tp are 1 where they are left out.
TEST(StageText, InFiles) {
  const Strategy strategy = parse_strategy(R"({"stages": [{"layers": 10, "dp": 2}, {"layers": 22, "tp": 2}]})", "s.json");
  EXPECT_EQ(strategy.stages, parse_stages("10:2x1,22:1x2", ""));
  EXPECT_EQ(parse_strategy(R"({"stages": "10:2x1,22:1x2"})", "s.json"), strategy);
  EXPECT_EQ(parse_strategy(to_json(strategy), "s.json"), strategy);
  const auto wrong = [](const std::string& stages) {
    return message_of([&] { parse_strategy("{\"stages\": " + stages + "}", "s.json"); });
  };
  EXPECT_NE(wrong(R"([{"dp": 2}])").find("layers"), std::string::npos) << wrong(R"([{"dp": 2}])");
  EXPECT_NE(wrong(R"([{"layers": 2, "dp": 0}])").find("stages[0].dp"), std::string::npos);
  EXPECT_NE(wrong(R"([{"layers": 2, "pp": 2}])").find("stages[0]"), std::string::npos);
  EXPECT_NE(wrong("3"), "no error");
}

TEST(StrategyText, RecomputeForms) {
  for (const std::string text : {"none",
                                 "selective",
                                 "full",
                                 "full:2",
                                 "full:8,6,4x2",
                                 "full:0,3",
                                 "full:3x1",
                                 "layers:0-7,12",
                                 "layers:3",
                                 "auto",
                                 "attention",
                                 "attention,norm",
                                 "rotor",
                                 "rotor:20GiB",
                                 "rotor:1500MiB",
                                 "rotor:77B",
                                 "graph",
                                 "graph:3GiB",
                                 "revolve:0",
                                 "revolve:12",
                                 "best",
                                 "each:full",
                                 "each:8xfull,2xattention+norm,none,selective,mlp"})
    EXPECT_EQ(to_text(parse_recompute(text, "")), text);
  EXPECT_EQ(parse_recompute("full:8,6,4x2", "").per_stage, (std::vector<int>{8, 6, 4, 4}));
  EXPECT_EQ(to_text(parse_recompute("full:1,1,2", "")), "full:1x2,2");
  EXPECT_EQ(parse_recompute("layers:1-3,7", "").only, (std::vector<int>{1, 2, 3, 7}));
  EXPECT_EQ(to_text(parse_recompute("layers:1,2,3,7", "")), "layers:1-3,7");
  EXPECT_EQ(to_text(parse_recompute("norm,attention,norm", "")), "attention,norm");
  const Recompute each = parse_recompute("each:2xfull,norm+attention", "");
  ASSERT_EQ(each.each.size(), 3u);
  EXPECT_EQ(each.each[1].kind, RecomputeKind::Full);
  EXPECT_EQ(each.each[2].modules, (std::vector<std::string>{"attention", "norm"}));
  for (const std::string part : {"", "0xfull", "2x", "xfull", "fully", "norm+", "full+norm", "rotor"})
    EXPECT_EQ(
        message_of([&] { parse_recompute("each:full," + part, "s"); }),
        "s: recompute: found \"" + part + "\" in \"each:full," + part +
            "\", expected none, selective, full or modules of every layer, such as \"each:8xfull,4xattention+norm,none\", "
            "with some of attention,norm,qkv,rope,projection,activation,mlp,dropout");
  EXPECT_EQ(message_of([] { parse_recompute("selectiv", "--recompute"); }),
            "--recompute: recompute: found \"selectiv\", expected none, selective, full, full:N, full:N,N,.., layers:A-B, "
            "each:.., auto, best, rotor, revolve:N, graph or some of attention,norm,qkv,rope,projection,activation,mlp,dropout "
            "(nearest: "
            "\"selective\")");
  EXPECT_EQ(message_of([] { parse_recompute("full:0", "s"); }),
            "s: recompute: found \"full:0\", expected \"full:N\" with N layers per stage, at least 1");
  for (const std::string part : {"", "-1", "2x", "x2", "2x0", "1x2x3", "two", "99999999999"})
    EXPECT_EQ(
        message_of([&] { parse_recompute("full:3," + part, "s"); }),
        "s: recompute: found \"" + part + "\" in \"full:3," + part +
            "\", expected \"full:N\" with N layers of every stage, at least 1, or of each stage such as \"full:8,6,4x2\"");
  EXPECT_EQ(parse_recompute("rotor:1.5 GiB", "").budget, Bytes{3 << 29});
  for (const std::string budget : {"0", "2000TiB"})
    EXPECT_EQ(
        message_of([&] { parse_recompute("graph:" + budget, "s"); }),
        "s: recompute: found \"graph:" + budget + "\", expected a budget above 0 and up to 1024 TiB, such as \"rotor:20GiB\"");
  EXPECT_TRUE(
      message_of([] { parse_recompute("rotor:much", "s"); }).starts_with("s: recompute: found \"much\", expected a size"));
  for (const std::string inputs : {"", "-1", "1001", "two"})
    EXPECT_EQ(
        message_of([&] { parse_recompute("revolve:" + inputs, "s"); }),
        "s: recompute: found \"revolve:" + inputs + "\", expected \"revolve:N\" with N layer inputs kept at once, 0 to 1000");
  for (const std::string part : {"", "2", "3", "9-7", "4-", "-4", "4-5-6", "a"})
    EXPECT_EQ(message_of([&] { parse_recompute("layers:0-3," + part, "s"); }),
              "s: recompute: found \"" + part + "\" in \"layers:0-3," + part +
                  "\", expected layers of the model from 0, rising, such as \"layers:0-7,12\"");
}

TEST(StrategyText, OverlapForms) {
  for (const std::string text : {"none", "grad", "grad,param,p2p,tp", "p2p,tp"})
    EXPECT_EQ(to_text(parse_overlap(text, "")), text);
  EXPECT_EQ(to_text(parse_overlap("p2p,grad", "")), "grad,p2p");
  EXPECT_EQ(message_of([] { parse_overlap("grads", "--overlap"); }),
            "--overlap: overlap: found \"grads\", expected none alone, or some of grad,param,p2p,tp (nearest: \"grad\")");
}

TEST(StrategyJson, DefaultsReadBackAndMissingFieldsKeepTheirs) {
  EXPECT_EQ(parse_strategy(to_json(Strategy{}), "s"), Strategy{});
  EXPECT_EQ(parse_strategy("{}", "s"), Strategy{});
  const Strategy strategy = parse_strategy("{\"tp\": 8, \"recompute\": \"full:2\", \"overlap\": \"grad,p2p\"} // fast", "s");
  EXPECT_EQ(
      strategy,
      (Strategy{.tp = 8, .recompute = {.kind = RecomputeKind::Full, .layers = 2}, .communication = {.overlap = Overlap{}}}));
}

TEST(StrategyJson, BothFormsOfNestedFields) {
  const Strategy text = parse_strategy(R"({"recompute": "attention,norm", "overlap": "param,p2p", "placement": "dp,tp,cp,role",
    "reserve": "10%", "bucket": "40 MB"})",
                                       "s");
  const Strategy nested = parse_strategy(R"({"recompute": {"kind": "modules", "modules": ["norm", "attention"]},
    "overlap": {"grad": false, "param": true}, "placement": ["dp", "tp", "cp", "role"], "reserve": 0.1, "bucket": 40e6})",
                                         "s");
  EXPECT_EQ(text, nested);
  EXPECT_EQ(text.communication.bucket, Bytes{40'000'000});
  EXPECT_EQ(text.device_memory.reserve, 0.1);
}

TEST(StrategyJson, EveryMistakeIsNamed) {
  const auto message = [](const std::string& text) { return message_of([&] { parse_strategy(text, "my.strategy.json"); }); };
  const auto begins = [&](const std::string& text, const std::string& start) {
    EXPECT_EQ(message(text).substr(0, start.size()), start);
  };
  begins(R"({"global_bach": 4})",
         "my.strategy.json: global_bach: found an unknown key with value 4, expected \"global_batch\"");
  begins(R"({"tp": 0})", "my.strategy.json: tp: found \"0\", expected an integer from 1 to 1000000");
  begins(R"({"tp": "8"})", "my.strategy.json: tp: found \"8\", expected an integer");
  begins(R"({"tp": 1.5})", "my.strategy.json: tp: found 1.5, expected an integer");
  begins(R"({"sequence_parallel": 1})", "my.strategy.json: sequence_parallel: found 1, expected true or false");
  begins(R"({"schedule": "2f2b"})", "my.strategy.json: schedule: found \"2f2b\", expected one of auto, gpipe, 1f1b");
  begins(R"({"schedule": null})", "my.strategy.json: schedule: found null, expected a text");
  begins(R"({"recompute": {"kind": "ful"}})", "my.strategy.json: recompute.kind: found \"ful\", expected one of");
  begins(R"({"recompute": {"kind": "selective", "layers": 3}})",
         "my.strategy.json: recompute.layers: found 3, expected no layers");
  begins(R"({"recompute": {"kind": "full", "layers": -1}})",
         "my.strategy.json: recompute.layers: found -1, expected an integer");
  begins(R"({"recompute": {"kind": "full", "layers": [1, -1]}})",
         "my.strategy.json: recompute.layers[1]: found -1, expected an integer");
  begins(R"({"recompute": {"kind": "full", "layers": []}})",
         "my.strategy.json: recompute.layers: found an array of 0, expected");
  begins(R"({"recompute": {"kind": "full", "layers": 2, "only": "1-2"}})", "my.strategy.json: recompute.only: found \"1-2\"");
  begins(R"({"recompute": {"kind": "none", "only": "1-2"}})",
         "my.strategy.json: recompute.only: found \"1-2\", expected no only");
  begins(R"({"recompute": {"kind": "full", "budget": 5}})", "my.strategy.json: recompute.budget: found 5, expected no budget");
  begins(R"({"recompute": {"kind": "rotor", "budget": "much"}})", "my.strategy.json: recompute.budget: found \"much\"");
  begins(R"({"recompute": {"kind": "rotor", "checkpoints": 5}})",
         "my.strategy.json: recompute.checkpoints: found 5, expected no checkpoints");
  begins(R"({"recompute": {"kind": "modules"}})", "my.strategy.json: recompute.modules: found nothing, expected a value");
  begins(R"({"recompute": {"kind": "modules", "modules": []}})", "my.strategy.json: recompute.modules: found an array of 0");
  begins(R"({"recompute": {"kind": "modules", "modules": ["norms"]}})",
         "my.strategy.json: recompute.modules[0]: found \"norms\"");
  begins(R"({"recompute": {"kind": "none", "modules": ["norm"]}})", "my.strategy.json: recompute.modules: found an array of 1");
  begins(R"({"recompute": {}})", "my.strategy.json: recompute.kind: found nothing");
  begins(R"({"overlap": {"gradd": true}})",
         "my.strategy.json: overlap.gradd: found an unknown key with value true, expected \"grad\"");
  begins(R"({"overlap": {"grad": "yes"}})", "my.strategy.json: overlap.grad: found \"yes\", expected true or false");
  begins(R"({"overlap": 3})", "my.strategy.json: overlap: found 3, expected a text");
  begins(R"({"bucket": "40 bananas"})", "my.strategy.json: bucket: found \"40 bananas\"");
  begins(R"({"bucket": -1})", "my.strategy.json: bucket: found");
  begins(R"([])", "my.strategy.json: found an array of 0, expected an object");
}

// A strategy with every field drawn through its option: words for choices, numbers in range elsewhere.
static Strategy random_strategy(std::mt19937_64& random) {
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  Strategy s;
  for (const StrategyOption& option : strategy_options()) {
    if (pick(2) == 0) continue;
    const auto any_word = [&] { return option.values[pick(option.values.size())]; };
    std::string value;
    switch (option.type) {
      case OptionType::Choice:
      case OptionType::Flag: value = any_word(); break;
      case OptionType::Integer: value = std::to_string(option.path == "zero" ? pick(4) : 1 + pick(999)); break;
      case OptionType::Number: value = std::to_string(static_cast<double>(pick(1'000'000)) / 1'000'001.0); break;
      case OptionType::Bytes: value = std::to_string(pick(std::uint64_t{1} << 50)); break;
      case OptionType::List:
        if (option.path == "placement")
          value = pick(2) ? "dp,role,tp,cp" : "";
        else
          value = pick(3) == 0 ? "none" : any_word() + "," + any_word();
        break;
      case OptionType::Text: break;  // below
    }
    if (option.path == "recompute")
      value = std::array<std::string, 13>{"none",
                                          "selective",
                                          "full",
                                          "full:" + std::to_string(1 + pick(99)),
                                          "norm,mlp",
                                          "full:3,0x2",
                                          "layers:2-" + std::to_string(2 + pick(9)),
                                          "rotor",
                                          "graph:5MB",
                                          "revolve:3",
                                          "rotor:3GiB",
                                          "best",
                                          "each:3xfull,none,norm+mlp"}[pick(13)];
    if (option.path == "expert_load")
      value =
          std::array<std::string, 7>{"balanced", "equal", "gini:0.25", "zipf:1.5", "2.5", "worst", "loads:3,0.5;1,2"}[pick(7)];
    if (option.path == "stages" && pick(2))
      value = "0:" + std::to_string(1 + pick(9)) + "x1,7:1x" + std::to_string(1 + pick(9));
    if (option.path == "bucket" && pick(2)) value = "auto";
    if (option.path == "parts")
      value = std::array<std::string, 5>{"1", "auto", "4", "2," + std::to_string(1 + pick(9)), "2,4x3;1,8"}[pick(5)];
    if (option.path == "compress_gradients")
      value = std::array<std::string, 5>{"none", "dgc:0.25", "one-bit:100", "eight-bit", "segmented:4x8"}[pick(5)];
    if (option.path == "compress_activations")
      value = std::array<std::string, 4>{"none", "token-topk:0.5", "segmented:8", "token-topk:0.5,segmented:4x8"}[pick(4)];
    if (option.path == "compress_dispatch") value = std::array<std::string, 3>{"none", "fp8", "eight-bit"}[pick(3)];
    if (option.path == "schedule_order" && pick(2)) value = "0F0 0B0; 1F0 1B0";
    if (option.path == "schedule_times") value = pick(2) ? "auto" : "2,1.5,0.125," + std::to_string(pick(9));
    if (option.path == "layer_split") value = "3x" + std::to_string(1 + pick(9)) + ",2";
    option.set(s, value, "test");
  }
  return s;
}

TEST(StrategyJson, RandomStrategiesReadBackEqual) {
  std::mt19937_64 random(2024);
  for (int k = 0; k < 300; ++k) {
    const Strategy strategy = random_strategy(random);
    ASSERT_EQ(parse_strategy(to_json(strategy), "s"), strategy) << to_json(strategy);
  }
}

// Whatever bytes a file holds, the answer is a strategy or an Error.
TEST(StrategyJson, DamagedFilesNeverCrash) {
  std::mt19937_64 random(7);
  const std::string alphabet = "{}[]\",:0123456789.eE-+ntfuxa %\\\n";
  int read = 0, refused = 0;
  for (int k = 0; k < 4000; ++k) {
    std::string text = to_json(random_strategy(random));
    for (int edits = static_cast<int>(random() % 4); edits-- > 0 && !text.empty();) {
      const std::size_t at = random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0: text[at] = c; break;
        case 1: text.erase(at, 1 + random() % 8); break;
        default: text.insert(at, 1, c);
      }
    }
    try {
      const Strategy strategy = parse_strategy(text, "s");
      ASSERT_EQ(parse_strategy(to_json(strategy), "s"), strategy) << text;
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 400);  // undamaged files and harmless edits
  EXPECT_GT(refused, 400);
}

}  // namespace foreshard::strategy_test
