// Every key that the readers of clusters, GPUs, models and strategies take: changing it changes the simulated answer, or it is
// said that it does not, or refused. The keys are those that the readers' sources name: a new one without a case fails.
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "core/model/family.h"
#include "core/strategy/strategy_options.h"
#include "tests/cli/option_effect.h"
#include "tests/cli/session.h"
#include "tests/core/support_models.h"
#include "tests/how_many.h"

namespace foreshard::key_effect_test {
namespace {
const std::string kPlay = "simulate --json --granularity stage --ignore-memory --seq 256 --global-batch 64 ";
const std::string kGpt2 = kPlay + "--model gpt2-124m --cluster ";

struct KeyCase {
  std::string path = {}, value = {};  // of --set
  std::string job = {};
  std::string elsewhere = {};  // no step takes longer for it: where it is seen
};

// "fp64", "1 TFLOP/s": the A100 with another value.
std::string gpu_with(const std::string& key, const std::string& value) {
  const std::string gpu = read_text(std::string(FORESHARD_SOURCE) + "/topologies/gpus/a100-80.json");
  std::string text = "[" + with_json_value(gpu, key, value, "gpu") + "]";
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  return text;
}

std::vector<KeyCase> cluster_cases() {
  const std::string a100 = kGpt2 + "dgx-a100", two = kGpt2 + "dgx-a100-x2", many = kGpt2 + "dgx-a100-x8";
  const std::string pcie = kGpt2 + "pcie-a100-8 --tp 2 --pp 2", mesh = kGpt2 + "dgx1-v100 --precision fp16";
  const std::string cards = kGpt2 + "@/cards.json";
  const std::string narrow = many + " --set cluster.fabric.oversubscription=16";
  const std::string leaves = narrow + " --set cluster.fabric.nodes_per_leaf=1";
  const std::string shown = "show cluster --json";
  return {{"cluster.name", "other", a100},
          {"cluster.source", "other", a100, shown},
          {"cluster.nodes", "2", a100},
          {"cluster.nodes", R"([{"shape":"dgx-a100","count":1},{"shape":"dgx-h100","count":1,"name":"new"}])", a100},
          {"cluster.gpu", "h200", a100},
          {"cluster.gpus_per_node", "4", a100},
          {"cluster.nvlink.kind", "mesh", a100},
          {"cluster.nvlink.bandwidth", "1 GB/s", a100},
          {"cluster.nvlink.latency", "0.1 ms", a100},
          {"cluster.nvlink.sharp", "false", kGpt2 + "dgx-h100 --tp 2 --algorithm nvlink-sharp"},
          {"cluster.nvlink.pairs", "[[0,1]]", mesh},
          {"cluster.pcie.bandwidth", "1 GB/s", pcie},
          {"cluster.pcie.switches", "1", pcie},
          {"cluster.pcie.gpus_per_switch", "4", cards},
          {"cluster.pcie.uplink", "1 GB/s", pcie},
          {"cluster.pcie.c2c", "1 GB/s", pcie},
          {"cluster.nics.count", "1", two},
          {"cluster.nics.bandwidth", "1 GB/s", two},
          {"cluster.nics.at", "socket", two},
          {"cluster.nics.rails", "1", leaves},
          {"cluster.nics.latency", "1 ms", two},
          {"cluster.sockets", "1", pcie + " --set cluster.socket_link=1e9"},
          {"cluster.socket_link", "1 GB/s", pcie},
          {"cluster.cores", "3", a100, shown},
          {"cluster.host_memory", "1 GiB", a100, shown},
          {"cluster.host_memory_bandwidth", "1 GB/s", a100, shown},
          {"cluster.nvme.capacity", "1 GB", a100, shown},
          {"cluster.nvme.bandwidth", "1 GB/s", a100, shown},
          {"cluster.nvme.queue_depth", "1", a100, shown},
          {"cluster.nvme.block", "4 KiB", a100, shown},
          {"cluster.nvme.latency", "1 ms", a100, shown},
          {"cluster.fabric.levels", "3", leaves + " --set cluster.fabric.leaves_per_pod=1"},
          {"cluster.fabric.nodes_per_leaf", "1", narrow},
          {"cluster.fabric.leaves_per_pod", "1", leaves + " --set cluster.fabric.levels=3"},
          {"cluster.fabric.oversubscription", "100", many + " --set cluster.fabric.nodes_per_leaf=1"},
          {"cluster.fabric.switch_latency", "1 ms", two},
          {"cluster.fabric.rail_optimised", "false", leaves},
          {"cluster.price_per_gpu_hour", "3", a100},
          {"cluster.capex", R"({"per_node":100000,"years":3})", a100},
          {"cluster.capex.per_node", "5", a100 + R"( --set cluster.capex={"per_node":1,"years":3})"},
          {"cluster.capex.years", "5", a100 + R"( --set cluster.capex={"per_node":1000,"years":3})"},
          {"cluster.capex.electricity_per_kwh", "5", a100 + R"( --set cluster.capex={"per_node":1000,"years":3})"},
          {"cluster.power_per_node", "1 kW", a100},
          {"cluster.power_per_gpu", "100", pcie},
          {"cluster.shape", "dgx-h100", kGpt2 + "@/shape.json"},
          {"cluster.parts[0]", R"(["gpu","gpu0"])", kGpt2 + "@/parts.json"},
          {"cluster.links[0][3]", "1 GB/s", kGpt2 + "@/parts.json"},
          {"cluster.nics.bandwidth", "1 GB/s", kGpt2 + "@/parts.json --nodes 2"},
          {"cluster.nvlink_sharp", "true", kGpt2 + "@/parts.json --tp 2 --algorithm nvlink-sharp"},
          {"cluster.nvme_capacity", "1 TB", kGpt2 + "@/parts.json", shown}};
}

std::vector<KeyCase> gpu_cases() {
  std::vector<KeyCase> cases;
  const auto add = [&](const std::string& key, const std::string& value, const std::string& more = "",
                       const std::string& elsewhere = "") {
    cases.push_back({"cluster.gpus", gpu_with(key, value), kGpt2 + "dgx-a100-x2 " + more, elsewhere});
    cases.back().path += "." + key;  // the list is set as a whole
  };
  for (const char* format : {"fp64", "fp32", "tf32", "fp16", "bf16"})
    add(format, "1 TFLOP/s", std::string("--precision ") + format);
  const std::string shown = "show cluster --json";
  add("fp8", "1000 TFLOP/s", "", shown);
  add("vector_fp32", "1 TFLOP/s");
  add("memory", "40 GiB"), add("memory_bandwidth", "100 GB/s"), add("l2_cache", "1 MiB"), add("sm_count", "50");
  add("clock_ghz", "0.5"), add("launch_overhead", "50 us"), add("power_watts", "50"), add("flash_attention", "false");
  add("architecture", "hopper"), add("source", "another", "", shown);
  return cases;
}

std::vector<KeyCase> model_cases() {
  const std::string on = " --cluster dgx-a100 --tp 2", gpt = kPlay + "--model gpt2-124m" + on,
                    llama = kPlay + "--model llama-2-7b" + on;
  const std::string bert = kPlay + "--model bert-large" + on, own = kPlay + "--model @/own.json" + on;
  const std::string pictures = "simulate --json --granularity stage --global-batch 64 --model resnet-50 --cluster dgx-a100";
  const std::string run = "of the numbers that foreshard run computes", same = "says the same in other words";
  std::vector<KeyCase> cases = {{"num_hidden_layers", "6", llama},
                                {"hidden_size", "2048", llama},
                                {"intermediate_size", "2048", llama},
                                {"num_attention_heads", "16", kPlay + "--model llama-3-8b" + on},
                                {"num_key_value_heads", "4", llama},
                                {"head_dim", "64", llama},
                                {"max_position_embeddings", "256", bert},
                                {"vocab_size", "1000", llama},
                                {"hidden_act", "relu", bert},
                                {"hidden_act", "swish", llama, same},
                                {"rms_norm_eps", "0.1", llama, run},
                                {"rope_theta", "1", llama, run},
                                {"rope_parameters.rope_theta", "1", llama, run},
                                {"attention_bias", "true", llama},
                                {"mlp_bias", "true", llama},
                                {"tie_word_embeddings", "true", llama},
                                {"sliding_window", "10000", llama, same},
                                {"use_sliding_window", "false", kPlay + "--model @/qwen.json" + on, same},
                                {"layer_types", R"(["full_attention"])", llama, same},
                                {"type_vocab_size", "100000", bert},
                                {"layer_norm_eps", "0.1", bert, run},
                                {"architectures", R"(["BertForMaskedLM"])", bert},
                                {"is_decoder", "true", bert},
                                {"position_embedding_type", "relative_key", bert},
                                {"use_parallel_residual", "true", kPlay + "--model @/neox.json" + on},
                                {"n_layer", "6", gpt},
                                {"n_embd", "384", gpt},
                                {"n_inner", "512", gpt},
                                {"n_head", "6", gpt},
                                {"n_positions", "256", gpt},
                                {"activation_function", "relu", gpt},
                                {"layer_norm_epsilon", "0.1", gpt, run},
                                {"rotary_emb_base", "1", kPlay + "--model @/neox.json" + on, run},
                                {"name", "other", pictures},
                                {"source", "other", pictures, "show model"},
                                {"input", "[3,256,256]", pictures},
                                {"classes", "10", pictures},
                                {"layers[0].name", "other", pictures, "names have no cost"},
                                {"layers[0].op", "linear", pictures},
                                {"layers[0].inputs", R"(["nothing"])", pictures},
                                {"layers[0].features", "32", pictures},
                                {"layers[0].kernel", "5", pictures},
                                {"layers[0].stride", "1", pictures},
                                {"layers[0].padding", "2", pictures},
                                {"layers[0].bias", "true", pictures},
                                {"model_type", "nothing", pictures}};
  const std::vector<std::pair<std::string, std::string>> of_own = {{"layers", "2"},
                                                                   {"hidden", "384"},
                                                                   {"ffn_hidden", "100"},
                                                                   {"heads", "6"},
                                                                   {"kv_heads", "4"},
                                                                   {"head_dim", "32"},
                                                                   {"vocab", "1000"},
                                                                   {"norm", "rms_norm"},
                                                                   {"activation", "swiglu"},
                                                                   {"positions", "rope"},
                                                                   {"max_positions", "256"},
                                                                   {"token_types", "1000"},
                                                                   {"causal", "false"},
                                                                   {"qkv_bias", "false"},
                                                                   {"projection_bias", "false"},
                                                                   {"mlp_bias", "false"},
                                                                   {"tied_embeddings", "false"},
                                                                   {"post_norm", "true"},
                                                                   {"embedding_norm", "true"},
                                                                   {"final_norm", "false"},
                                                                   {"lm_head_bias", "true"}};
  for (const auto& [key, value] : of_own) cases.push_back({key, value, own});
  for (const char* head : {"pooler", "mlm_head"}) cases.push_back({head, "true", own + " --set model.causal=false"});
  cases.push_back({"norm_eps", "0.1", own, run});
  cases.push_back({"rope_theta", "5", own + " --set model.positions=rope", run});
  for (KeyCase& one : cases) one.path = "model." + one.path;
  return cases;
}

// Keys of the families of today and of what our own form has for them: what show model prints is another model, or an error.
std::vector<KeyCase> family_cases() {
  std::vector<KeyCase> cases;
  const auto add = [&](const std::string& model, const std::map<std::string, std::string>& pairs, std::string first = "") {
    for (const auto& [key, value] : pairs) cases.push_back({"model." + first + key, value, "show model " + model + " --json"});
  };
  add("qwen3-30b-a3b --set model.use_sliding_window=true --set model.sliding_window=4096", {{"max_window_layers", "3"}});
  add("qwen3-30b-a3b", {{"num_experts", "64"},
                        {"num_local_experts", "7"},
                        {"num_experts_per_tok", "4"},
                        {"moe_intermediate_size", "100"},
                        {"norm_topk_prob", "false"},
                        {"router_aux_loss_coef", "0.5"},
                        {"decoder_sparse_step", "2"},
                        {"mlp_only_layers", "[0]"}});
  add("deepseek-v3", {{"q_lora_rank", "100"},
                      {"kv_lora_rank", "100"},
                      {"qk_nope_head_dim", "64"},
                      {"qk_rope_head_dim", "32"},
                      {"v_head_dim", "64"},
                      {"n_routed_experts", "512"},
                      {"n_shared_experts", "2"},
                      {"scoring_func", "softmax"},
                      {"routed_scaling_factor", "1"},
                      {"topk_method", "greedy"},
                      {"n_group", "4"},
                      {"topk_group", "2"},
                      {"moe_layer_freq", "2"},
                      {"first_k_dense_replace", "1"},
                      {"num_nextn_predict_layers", "0"},
                      {"num_mtp_layers", "3"},
                      {"aux_loss_alpha", "0.5"},
                      {"rope_scaling.factor", "2"},
                      {"rope_scaling.mscale_all_dim", "0.5"}});
  add("gpt-oss-20b", {{"rope_scaling.factor", "2"},
                      {"rope_scaling.attention_factor", "2"},
                      {"rope_scaling.rope_type", "linear"},
                      {"experts_per_token", "3"},
                      {"layer_types", R"(["full_attention"])"}});
  add("llama-4-scout",
      {{"intermediate_size_mlp", "100"},
       {"use_qk_norm", "false"},
       {"attention_chunk_size", "100"},
       {"moe_layers", "[1]"},
       {"interleave_moe_layer_step", "2"}},
      "text_config.");
  add("gemma-2-9b", {{"hidden_activation", "relu"},
                     {"query_pre_attn_scalar", "128"},
                     {"attn_logit_softcapping", "10"},
                     {"final_logit_softcapping", "10"}});
  add("gemma-3-1b", {{"sliding_window_pattern", "3"}, {"_sliding_window_pattern", "3"}, {"rope_local_base_freq", "5"}});
  add("glm-4.5", {{"partial_rotary_factor", "0.25"}});
  add("granite-3.3-8b", {{"attention_multiplier", "0.5"},
                         {"embedding_multiplier", "0.5"},
                         {"residual_multiplier", "0.5"},
                         {"logits_scaling", "0.5"}});
  add("minimax-m2",
      {{"qk_norm_type", "per_head"}, {"rotary_dim", "32"}, {"use_routing_bias", "false"}, {"shared_intermediate_size", "100"}});
  add("@/own.json",
      {{"local_rope_theta", "5"},
       {"rope_scale", "2"},
       {"rotated_dim", "2"},
       {"full_unrotated", "true"},
       {"latent", R"({"query_rank": 4, "key_value_rank": 8, "plain_dim": 8, "rotated_dim": 8, "value_dim": 8})"},
       {"qk_norm", "per_head"},
       {"scale", "0.5"},
       {"score_cap", "5"},
       {"sinks", "true"},
       {"window", "8"},
       {"chunk", "8"}},
      "attention.");
  add("@/own.json --set model.attention.window=8", {{"local", "[true, false, true, false]"}}, "attention.");
  add("@/mixture.json",
      {{"count", "16"},
       {"chosen", "1"},
       {"width", "5"},
       {"shared_width", "7"},
       {"layers", "[true, false, true, false]"},
       {"score", "sigmoid"},
       {"renormalised", "true"},
       {"scale", "2"},
       {"groups", "2"},
       {"chosen_groups", "1"},
       {"best_of_group", "2"},
       {"correction_bias", "true"},
       {"router_bias", "true"},
       {"biases", "true"},
       {"scaled_inputs", "true"},
       {"auxiliary_loss", "0.1"},
       {"z_loss", "0.1"}},
      "experts.");
  add("@/mixture.json --set model.experts.correction_bias=true", {{"bias_speed", "0"}}, "experts.");
  add("@/own.json", {{"embedding", "2"}, {"residual", "2"}, {"logits", "2"}, {"logit_cap", "2"}}, "scales.");
  add("@/own.json", {{"input_norms", "false"}, {"branch_norms", "true"}, {"norms_around_one", "true"}, {"mtp_modules", "1"}});
  return cases;
}

// The names of keys in the source of a reader.
std::set<std::string> keys_in(const std::vector<std::string>& sources) {
  static const std::regex named(R"rx((find|at|has|field|size_or|flag|number|size|visit)\(\{?"([a-z_0-9]+)")rx"),
      listed(R"rx(\{"([a-z_0-9]+)", &)rx");
  std::set<std::string> keys;
  for (const std::string& source : sources) {
    const std::string text = read_text(std::string(FORESHARD_SOURCE) + "/" + source);
    for (std::sregex_iterator one(text.begin(), text.end(), named), end; one != end; ++one) keys.insert((*one)[2]);
    for (std::sregex_iterator one(text.begin(), text.end(), listed), end; one != end; ++one) keys.insert((*one)[1]);
  }
  return keys;
}

std::set<std::string> keys_of(const std::vector<KeyCase>& cases) {
  std::set<std::string> keys;
  static const std::regex word("[a-z_0-9]+");
  for (const KeyCase& one : cases) {
    const std::string text = one.path + (one.value.starts_with("[{\"shape") || one.value.starts_with("{") ? one.value : "");
    for (std::sregex_iterator key(text.begin(), text.end(), word), end; key != end; ++key) keys.insert(key->str());
  }
  return keys;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The answer without what was asked and what the clock says.
std::string numbers(const std::string& out) {
  std::string text = out;
  for (const char* path : {"strategy", "simulation"})
    if (!text.empty() && !json_value(text, path, "answer").empty()) text = with_json_value(text, path, "null", "answer");
  return text;
}

class KeyEffect : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    const auto make = [&](const std::string& name, const std::string& text) { write_file((folder_ / name).string(), text); };
    make("shape.json", R"({"shape": "dgx-a100"})");
    make("parts.json", run_line("show cluster dgx-a100 --json").out);
    Model own = gpt(4, 768, 12, 50257, 1024);
    own.name = "own";
    make("own.json", to_json(own));
    make("mixture.json",
         with_json_value(with_json_value(read_text((folder_ / "own.json").string()), "activation", "swiglu", "test"), "experts",
                         R"({"count": 8, "chosen": 2, "width": 16, "groups": 4, "chosen_groups": 2})", "test"));
    const std::string qwen =
        R"({"model_type": "qwen2", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 4, "num_attention_heads": 12,
            "max_position_embeddings": 1024, "vocab_size": 50257, "sliding_window": 4096, "use_sliding_window": true})";
    make("qwen.json", qwen);
    make("neox.json", R"({"model_type": "gpt_neox", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 4,
                          "num_attention_heads": 12, "max_position_embeddings": 1024, "vocab_size": 50257,
                          "use_parallel_residual": false})");
    make("cards.json", R"({"gpu": "a100-pcie-80", "gpus_per_node": 8,
                           "pcie": {"bandwidth": "10 GB/s", "uplink": "1 GB/s", "gpus_per_switch": 8}})");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  RanLine run(const std::string& job, const std::string& setting) {
    std::vector<std::string> words = words_of(job);
    for (std::string& word : words)
      if (word.starts_with("@/")) word = (folder_ / word.substr(2)).string();
    if (!setting.empty()) words.insert(words.end(), {"--set", setting});
    return run_words(words);
  }

  void expect_effects(const std::vector<KeyCase>& cases) {
    for (const KeyCase& one : cases) {
      // "cluster.gpus.fp64": the list is set as a whole.
      const bool in_gpus = one.path.starts_with("cluster.gpus.");
      const std::string setting = (in_gpus ? "cluster.gpus" : one.path) + "=" + one.value;
      const std::string job = one.job;
      SCOPED_TRACE(job + " --set " + one.path + "=" + one.value.substr(0, 80));
      const RanLine before = in_gpus ? run(job, "cluster.gpus=" + gpu_with("name", "a100-80")) : run(job, "");
      const RanLine after = run(job, setting);
      ASSERT_EQ(before.code, ExitCode::Ok) << before.err;
      ASSERT_NE(after.code, ExitCode::Bug) << after.err;
      const std::string last = one.path.substr(one.path.find_last_of('.') + 1);
      const bool said = after.err.find("--set " + setting + " changes nothing here: time, memory and price are the same") !=
                        std::string::npos;
      if (after.code != ExitCode::Ok) {
        EXPECT_FALSE(after.err.empty() && after.out.empty());
      } else if (!one.elsewhere.empty()) {
        EXPECT_TRUE(said) << after.err;
      } else {
        EXPECT_NE(numbers(before.out), numbers(after.out)) << "the answer is the same";
        EXPECT_TRUE(!said || last == "name") << after.err;
      }
    }
  }

  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / ("keys-" + std::to_string(::getpid()));
};

}  // namespace

TEST_F(KeyEffect, OfClustersAndGpus) {
  std::vector<KeyCase> cases = cluster_cases();
  expect_effects(cases);
  const std::vector<KeyCase> gpus = gpu_cases();
  expect_effects(gpus);
  cases.insert(cases.end(), gpus.begin(), gpus.end());
  const std::set<std::string> tried = keys_of(cases);
  for (const std::string& key :
       keys_in({"core/cluster/cluster_parse.cpp", "core/cluster/cluster_quote.cpp", "core/cluster/gpu.cpp"}))
    EXPECT_TRUE(tried.contains(key)) << key << " has no case";
}

TEST_F(KeyEffect, OfModels) {
  std::vector<KeyCase> cases = model_cases();
  const std::vector<KeyCase> more = family_cases();
  cases.insert(cases.end(), more.begin(), more.end());
  expect_effects(cases);
  std::set<std::string> tried = keys_of(cases);
  std::vector<std::string> readers = {"core/model/model_transformer.cpp", "core/model/model_layers.cpp",
                                      "core/model/transformer_settings_json.cpp"};
  for (const auto& file : std::filesystem::directory_iterator(std::string(FORESHARD_SOURCE) + "/core/family"))
    if (file.path().extension() == ".cpp") readers.push_back("core/family/" + file.path().filename().string());
  std::set<std::string> known = keys_in(readers);
  for (const std::string& key : hugging_face_keys()) known.insert(key);
  for (const std::string& key : known) EXPECT_TRUE(tried.contains(key)) << key << " has no case";
}

// What a file of a strategy says and nothing comes of is said, too: here what every kind of option needs is not there.
TEST_F(KeyEffect, OfStrategyFiles) {
  const std::string plain = "--model gpt2-124m --seq 256 --global-batch 16 --cluster dgx-a100 --gpus 1";
  const RanLine before = run("simulate --json --granularity stage " + plain, "");
  const std::string file = (folder_ / "s.json").string();
  int said = 0;
  for (const StrategyOption& option : strategy_options()) {
    const auto values = other_values().find(option.path);
    ASSERT_TRUE(values != other_values().end()) << option.path;
    for (const std::string& value : some_of(values->second, 1)) {
      Strategy strategy;
      option.set(strategy, option.type == OptionType::Flag ? "true" : value, "test");
      write_file(file, to_json(strategy));
      const RanLine after = run("simulate --json --granularity stage --strategy @/s.json " + plain, "");
      if (option.path == "global_batch" || option.path == "seq") continue;  // the command line wins
      if (after.code != ExitCode::Ok) {
        EXPECT_FALSE(after.err.empty() && after.out.empty()) << option.path << value;
        continue;
      }
      const Strategy held = parse_strategy(json_value(before.out, "strategy", "answer"), "answer");
      if (option.get(held) == option.get(strategy)) continue;  // holds without the file
      const bool told =
          after.err.find("foreshard: " + option.path + " of " + file + " changes nothing here") != std::string::npos;
      said += told;
      EXPECT_TRUE(told || numbers(before.out) != numbers(after.out)) << option.path << " " << value << after.err;
    }
  }
  EXPECT_GT(said, 8);
}
}  // namespace foreshard::key_effect_test
