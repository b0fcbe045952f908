// The option table: complete, consistent, every value round trips, every wrong value is named.
#include "core/strategy/strategy_options.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/base/error.h"

namespace foreshard::strategy_options_test {

static std::string message_of(const std::string& path, const std::string& value) {
  Strategy strategy;
  try {
    set_option(strategy, path, value, "here");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(StrategyOptions, EveryFieldOnceWithAllItsWords) {
  std::set<std::string> paths, flags;
  for (const StrategyOption& option : strategy_options()) {
    EXPECT_TRUE(paths.insert(option.path).second) << option.path;
    EXPECT_TRUE(flags.insert(option.flag).second) << option.flag;
    EXPECT_FALSE(option.help.empty()) << option.path;
    EXPECT_FALSE(option.group.empty()) << option.path;
    std::string flag = "--" + option.path;
    for (char& c : flag) c = c == '_' ? '-' : c;
    EXPECT_EQ(option.flag, flag);
  }
  // One name per field of Strategy and of its groups: a new field does not compile here until it is added, and then needs its
  // entry.
  [[maybe_unused]] const auto& [dp, tp, cp, pp, virtual_stages, experts, sequence_parallel, context, pipeline, stages, batch,
                                policy, zero, offload, recompute, precision, state_dtypes, attention, dropout, optimizer,
                                vocab_multiple, communication, framework, placement, device_memory] = Strategy{};
  [[maybe_unused]] const auto& [ep, etp, expert_load, expert_capacity, expert_unpadded, dispatcher, node_ranks] = experts;
  [[maybe_unused]] const auto& [layer_split, schedule, microbatch_group, schedule_order, times, delay_wgrad] = pipeline;
  [[maybe_unused]] const auto& [micro, global, seq, packed] = batch;
  [[maybe_unused]] const auto& [zero_stage, zero_group] = zero;
  [[maybe_unused]] const auto& [optimizer_home, optimizer_kept, updated_on, update_per_layer, parameters, gradients,
                                activations, activation_home, activation_layers, budget] = offload;
  [[maybe_unused]] const auto& [param, grad, state] = state_dtypes;
  [[maybe_unused]] const auto& [kind, momentum, clip_norm, loss_scale, delay_annealing, lora] = optimizer;
  [[maybe_unused]] const auto& [lora_rank, lora_alpha, lora_targets] = lora;
  [[maybe_unused]] const auto& [bucket, overlap, algorithm, servers, server_placement, transfers, asynchronous, sum_order,
                                partition, credit, compressed_gradients, compress_group, compressed_activations,
                                compressed_dispatch, parts] = communication;
  [[maybe_unused]] const auto& [framework_memory, reserve, exact_packing] = device_memory;
  EXPECT_EQ(paths.size(), 74u);
}

TEST(StrategyOptions, DefaultsRoundTrip) {
  for (const StrategyOption& option : strategy_options()) {
    Strategy strategy;
    option.set(strategy, option.get(Strategy{}), "here");
    EXPECT_EQ(strategy, Strategy{}) << option.path;
  }
}

// A value that is not the default, per option: set changes the strategy, get gives it back.
TEST(StrategyOptions, EveryOptionCanBeSetAndRead) {
  const std::vector<std::pair<std::string, std::string>> values = {{"dp", "3"},
                                                                   {"tp", "8"},
                                                                   {"pp", "16"},
                                                                   {"policy", "fsdp2"},
                                                                   {"cp", "2"},
                                                                   {"context", "ring"},
                                                                   {"sequence_parallel", "true"},
                                                                   {"ep", "8"},
                                                                   {"etp", "2"},
                                                                   {"expert_load", "gini:0.15"},
                                                                   {"expert_capacity", "1.25"},
                                                                   {"expert_unpadded", "true"},
                                                                   {"expert_dispatcher", "once-per-node"},
                                                                   {"expert_node_ranks", "4"},
                                                                   {"virtual_stages", "2"},
                                                                   {"schedule", "gpipe"},
                                                                   {"schedule_order", "0F0 0B0; 1F0 1B0"},
                                                                   {"schedule_times", "2,2.5,1,0.125"},
                                                                   {"microbatch_group", "4"},
                                                                   {"delay_wgrad", "true"},
                                                                   {"layer_split", "2,3x14,2"},
                                                                   {"stages", "10:2x1,22:1x2"},
                                                                   {"placement", "dp,tp,cp,role"},
                                                                   {"micro_batch", "2"},
                                                                   {"global_batch", "1536"},
                                                                   {"seq", "4096"},
                                                                   {"packed_length", "1024"},
                                                                   {"lora_rank", "16"},
                                                                   {"lora_alpha", "32"},
                                                                   {"lora_targets", "all"},
                                                                   {"zero", "3"},
                                                                   {"zero_group", "8"},
                                                                   {"recompute", "full:2"},
                                                                   {"framework_memory", "1073741824"},
                                                                   {"reserve", "0.1"},
                                                                   {"packing", "exact"},
                                                                   {"offload_optimizer", "nvme"},
                                                                   {"offload_kept", "0.25"},
                                                                   {"updated_on", "device"},
                                                                   {"update_per_layer", "true"},
                                                                   {"offload_parameters", "host"},
                                                                   {"offload_gradients", "host"},
                                                                   {"offload_activations", "inputs"},
                                                                   {"offload_to", "nvme"},
                                                                   {"offload_layers", "3"},
                                                                   {"offload_budget", "10737418240"},
                                                                   {"precision", "tf32"},
                                                                   {"param_dtype", "fp32"},
                                                                   {"grad_dtype", "fp32"},
                                                                   {"state_dtype", "bf16"},
                                                                   {"attention", "unfused"},
                                                                   {"dropout", "0.1"},
                                                                   {"optimizer", "sgd"},
                                                                   {"momentum", "0.9"},
                                                                   {"clip_norm", "1"},
                                                                   {"loss_scale", "0"},
                                                                   {"delay_annealing", "100"},
                                                                   {"vocab_multiple", "128"},
                                                                   {"bucket", "25000000"},
                                                                   {"overlap", "grad,param"},
                                                                   {"algorithm", "tree"},
                                                                   {"parts", "2,4"},
                                                                   {"servers", "2"},
                                                                   {"server_placement", "nodes"},
                                                                   {"transfers", "split"},
                                                                   {"asynchronous", "true"},
                                                                   {"sum_order", "priority"},
                                                                   {"partition", "1048576"},
                                                                   {"credit", "4096000"},
                                                                   {"compress_gradients", "segmented:4x8"},
                                                                   {"compress_group", "4"},
                                                                   {"compress_activations", "token-topk:0.25,segmented:8"},
                                                                   {"compress_dispatch", "fp8"},
                                                                   {"framework", "megatron"}};
  std::set<std::string> covered;
  for (const auto& [path, value] : values) {
    Strategy strategy;
    set_option(strategy, path, value, "here");
    EXPECT_NE(strategy, Strategy{}) << path;
    EXPECT_EQ(find_option(path)->get(strategy), value);
    covered.insert(path);
  }
  for (const StrategyOption& option : strategy_options()) EXPECT_TRUE(covered.count(option.path)) << option.path;
}

TEST(StrategyOptions, EveryWordOfAChoiceIsTaken) {
  for (const StrategyOption& option : strategy_options()) {
    if (option.type != OptionType::Choice && option.type != OptionType::Flag) continue;
    for (const std::string& word : option.values) {
      Strategy strategy;
      option.set(strategy, word, "here");
      EXPECT_EQ(option.get(strategy), word) << option.path;
    }
  }
}

TEST(StrategyOptions, WrongValuesAreNamed) {
  EXPECT_EQ(message_of("tp", "0"), "here: tp: found \"0\", expected an integer from 1 to 1000000");
  EXPECT_EQ(message_of("tp", "8x"), "here: tp: found \"8x\", expected an integer from 1 to 1000000");
  EXPECT_EQ(message_of("tp", ""), "here: tp: found nothing, expected an integer from 1 to 1000000");
  EXPECT_EQ(message_of("tp", "99999999999999999999"),
            "here: tp: found \"99999999999999999999\", expected an integer from 1 to 1000000");
  EXPECT_EQ(message_of("zero", "4"), "here: zero: found \"4\", expected an integer from 0 to 3");
  EXPECT_EQ(
      message_of("compress_gradients", "dcg"),
      "here: compress_gradients: found \"dcg\", expected one of none, segmented, dgc, one-bit, eight-bit (nearest: \"dgc\")");
  EXPECT_EQ(message_of("compress_gradients", "dgc:0"),
            "here: compress_gradients: found \"0\", expected a share above 0 and at most 1");
  EXPECT_EQ(message_of("compress_gradients", "one-bit:-1"),
            "here: compress_gradients: found \"-1\", expected a number of updates");
  EXPECT_EQ(message_of("compress_gradients", "segmented:3"), "here: compress_gradients: found \"3\", expected 2, 4 or 8 bits");
  EXPECT_EQ(message_of("compress_gradients", "segmented:8x2"),
            "here: compress_gradients: found \"8x2\", expected 4, 8 or 16 segments, and at least a level in each");
  EXPECT_EQ(message_of("compress_activations", "dgc"),
            "here: compress_activations: found \"dgc\", expected one of none, token-topk, segmented");
  EXPECT_EQ(message_of("compress_activations", "none:1"),
            "here: compress_activations: found \"none:1\", expected none and nothing behind it");
  EXPECT_EQ(message_of("compress_activations", "segmented:8,segmented:4"),
            "here: compress_activations: found \"segmented:4\", expected one codec beside token-topk");
  EXPECT_EQ(message_of("compress_activations", "token-topk:0.5,token-topk:0.25"),
            "here: compress_activations: found \"token-topk:0.25\", expected one share of the tokens");
  EXPECT_EQ(message_of("compress_activations", "token-topk:0.5,none"),
            "here: compress_activations: found \"token-topk:0.5,none\", expected token-topk and one codec");
  EXPECT_EQ(message_of("compress_activations", "none,segmented:8"),
            "here: compress_activations: found \"none,segmented:8\", expected one codec");
  EXPECT_EQ(message_of("compress_gradients", "dgc:0.1,segmented:8"),
            "here: compress_gradients: found \"dgc:0.1,segmented:8\", expected one codec");
  EXPECT_EQ(message_of("reserve", "100%"),
            "here: reserve: found \"100%\", expected a number of at least 0 and below 1, or a percentage such as 6%");
  EXPECT_EQ(message_of("dropout", "nan"),
            "here: dropout: found \"nan\", expected a number of at least 0 and below 1, or a percentage such as 6%");
  EXPECT_EQ(message_of("momentum", "-0.1"), "here: momentum: found \"-0.1\", expected a number of at least 0 and below 1");
  EXPECT_EQ(message_of("sequence_parallel", "yes"), "here: sequence_parallel: found \"yes\", expected true or false");
  EXPECT_EQ(message_of("schedule", "interleaved"),
            "here: schedule: found \"interleaved\", expected one of auto, gpipe, 1f1b, interleaved-1f1b, zb-h1, zb-h2, "
            "zb-v, looped-bfs, interleaved-zb-1p, v-half, v-min, chimera, dualpipe, dualpipe-v, 1f1b-cells, "
            "interleaved-cells, pipedream, pipedream-2bw, pipemare, zb-2p, file (nearest: "
            "\"interleaved-1f1b\")");
  for (const std::string wrong : {"", "1,1,1", "1,1,1,0,0", "1,1,-1,0", "1,1,1,1e10", "1,,1,0", "1,1,1,"})
    EXPECT_EQ(message_of("schedule_times", wrong),
              "here: schedule_times: found " + (wrong.empty() ? std::string("nothing") : "\"" + wrong + "\"") +
                  ", expected auto, or four times F,I,W,C from 0 to 1e9, such as 2,2,1,0.1");
  EXPECT_EQ(message_of("precision", "bf17"),
            "here: precision: found \"bf17\", expected one of bf16, fp16, fp8, nvfp4, tf32, fp32, fp64 (nearest: \"bf16\")");
  std::string names;
  for (const std::string& name : framework_names()) names += (names.empty() ? "" : ", ") + name;
  EXPECT_EQ(message_of("framework", "megatorn"),
            "here: framework: found \"megatorn\", expected one of " + names + " (nearest: \"megatron\")");
  EXPECT_EQ(message_of("placement", "tp,dp"),
            "here: placement: found \"tp,dp\", expected tp, cp, dp and role (and dp_outer), each once, in "
            "any order, such as tp,cp,dp,role");
  EXPECT_EQ(message_of("bucket", "2000 TiB"),
            "here: bucket: found \"2000 TiB\", expected a size from 0 to 1024 TiB, such as \"40 MB\"");
  EXPECT_TRUE(message_of("recompute", "all").starts_with("here: recompute: found \"all\", expected none"));
  EXPECT_TRUE(message_of("overlap", "").starts_with("here: overlap: found \"\", expected none"));
  for (const std::string wrong : {"", "0", "2,", "2,x", "1025", "auto,2", "2,4,8", "2;", "2x0", "2,4x", "2x99999"})
    EXPECT_EQ(message_of("parts", wrong),
              "here: parts: found " + (wrong.empty() ? "nothing" : "\"" + wrong + "\"") +
                  ", expected auto, or numbers of parts from 1 to 1024, such as 4 or 2,4, or layer by layer 2,4x11;1,8");
  for (const auto& [given, read] : std::map<std::string, std::string>{{"2", "2"},
                                                                      {"2,4", "2,4"},
                                                                      {"2x3", "2"},
                                                                      {"2,4;2,4", "2,4"},
                                                                      {"1x3;4", "1,1x3;4,4"},
                                                                      {"2,4;2,4;1,8x5", "2,4x2;1,8"},
                                                                      {"1;1x4", "1"}}) {
    Strategy strategy;
    set_option(strategy, "parts", given, "here");
    EXPECT_EQ(find_option("parts")->get(strategy), read) << given;
  }
  EXPECT_TRUE(message_of("layer_split", "3y").starts_with("here: layer_split: found \"3y\" in \"3y\", expected"));
}

// Any text is a value that reads back, or an Error that leaves the strategy as it was.
TEST(StrategyOptions, AnyTextIsAValueOrAnError) {
  std::mt19937_64 random(99);
  const std::vector<std::string> pieces = {"1",   "0",   "-",    "2x3",  ",",    "full:", "auto", "tp",   "grad",
                                           "%",   ".5",  "e9",   "none", " GiB", "true",  "bf16", "ring", "1f1b",
                                           "nan", "inf", "role", "dp",   "cp",   "\n",    "\xff"};
  int taken = 0;
  for (const StrategyOption& option : strategy_options())
    for (int k = 0; k < 300; ++k) {
      std::string value;
      for (auto n = 1 + random() % 3; n-- > 0;) value += pieces[random() % pieces.size()];
      Strategy strategy, again;
      try {
        option.set(strategy, value, "here");
        option.set(again, option.get(strategy), "here");
        ASSERT_EQ(again, strategy) << option.path << " " << value;
        ++taken;
      } catch (const Error&) {
        ASSERT_EQ(strategy, Strategy{}) << option.path << " " << value;
      }
    }
  EXPECT_GT(taken, 100);
}

TEST(StrategyOptions, UnknownPathsGiveTheNearest) {
  EXPECT_EQ(message_of("micro-batch", "2"), "here: micro-batch: found an unknown option, expected \"micro_batch\"");
  EXPECT_EQ(message_of("qqqqqqqqqqqq", "2"),
            "here: qqqqqqqqqqqq: found an unknown option, expected a path of `foreshard list options`");
}

TEST(StrategyOptions, PartsOfObjects) {
  Strategy strategy;
  set_option(strategy, "overlap.grad", "false", "here");
  set_option(strategy, "overlap.tp", "true", "here");
  EXPECT_EQ(to_text(*strategy.communication.overlap), "p2p,tp");
  set_option(strategy, "recompute.layers", "3", "here");
  EXPECT_EQ(to_text(strategy.recompute), "full:3");
  set_option(strategy, "recompute.layers", "0", "here");
  EXPECT_EQ(to_text(strategy.recompute), "full");
  set_option(strategy, "recompute.layers", "3,0", "here");
  EXPECT_EQ(to_text(strategy.recompute), "full:3,0");
  set_option(strategy, "recompute.only", "0-2", "here");
  EXPECT_EQ(to_text(strategy.recompute), "layers:0-2");
  set_option(strategy, "recompute.modules", "mlp", "here");
  EXPECT_EQ(to_text(strategy.recompute), "mlp");
  EXPECT_EQ(message_of("overlap.grad", "on"), "here: overlap.grad: found \"on\", expected true or false");
  EXPECT_EQ(message_of("recompute.layers", "-1"),
            "here: recompute.layers: found \"-1\", expected layers per stage, at least 0 (0: all)");
}

TEST(StrategyOptions, PlacementMayNameTheRanksBetweenZeroGroups) {
  Strategy strategy;
  set_option(strategy, "placement", "tp,cp,dp,dp_outer,role", "here");
  EXPECT_EQ(strategy.placement.size(), 5u);
  EXPECT_NE(message_of("placement", "tp,cp,dp_outer,role"), "no error");
  EXPECT_NE(message_of("placement", "tp,cp,dp,dp,role"), "no error");
}

TEST(StrategyOptions, QuantitiesWithUnits) {
  Strategy strategy;
  set_option(strategy, "bucket", "40 MB", "here");
  set_option(strategy, "framework_memory", "1 GiB", "here");
  set_option(strategy, "reserve", "6%", "here");
  EXPECT_EQ(strategy.communication.bucket, Bytes{40'000'000});
  EXPECT_EQ(strategy.device_memory.framework, Bytes{1 << 30});
  EXPECT_EQ(strategy.device_memory.reserve, 0.06);
  set_option(strategy, "framework_memory", "auto", "here");
  EXPECT_EQ(strategy.device_memory.framework, std::nullopt);
}

}  // namespace foreshard::strategy_options_test
