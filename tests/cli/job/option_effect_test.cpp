// An option that has no effect is refused or said. Every option of every verb stands in one of the tables below; a new one
// without a case makes a test fail.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "cli/job/unchanged.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "core/model/model.h"
#include "core/strategy/strategy_options.h"
#include "tests/cli/option_effect.h"
#include "tests/how_many.h"

namespace foreshard::option_effect_test {

namespace {

// On the light clock, which needs no process of SimGrid's.
const std::string kSimulate = "simulate --json --ignore-memory --granularity stage --clock light --seq 256 ";
const std::string kGpt = kSimulate + "--model gpt2-124m --set model.n_layer=4 ";
const std::string kTwelveLayers = kSimulate + "--model gpt2-124m ";  // where what is left of the update or of the sums shows
const std::string kMixture = kSimulate + "--model granite-3.1-1b-a400m --set model.num_hidden_layers=4 ";
const std::vector<std::string> kBases = {
    kGpt + "--cluster dgx-a100 --global-batch 64 --micro-batch 2",
    kGpt + "--cluster dgx-a100 --global-batch 32 --micro-batch 2 --tp 2 --pp 2",
    kGpt + "--cluster dgx-a100 --gpus 4 --global-batch 8 --cp 2",
    kGpt + "--cluster dgx-a100 --global-batch 64 --pp 2 --virtual-stages 2",
    kTwelveLayers + "--cluster dgx-a100-x2 --global-batch 64 --zero 1",
    kGpt + "--cluster dgx-a100 --global-batch 64 --zero 3",
    kGpt + "--cluster dgx-a100 --global-batch 64 --optimizer sgd --precision fp16",
    kGpt + "--cluster dgx-a100 --global-batch 8 --gpus 1",
    kGpt + "--cluster eth25-a100-x2 --global-batch 64 --tp 2 --pp 2 --algorithm parameter-server",
    kTwelveLayers + "--cluster dgx-a100 --global-batch 64 --sum-order priority --partition 10MB",
    kGpt + "--cluster dgx-a100 --gpus 2 --pp 2 --global-batch 2 --micro-batch 1",
    kTwelveLayers + "--cluster dgx-a100 --global-batch 64 --offload-optimizer host --offload-activations inputs",
    kGpt + "--cluster dgx-a100 --global-batch 64 --lora-rank 4",
    kGpt + "--cluster dgx-a100 --gpus 2 --pp 2 --global-batch 8 --micro-batch 1 --schedule zb-2p",
    kMixture + "--cluster dgx-a100 --global-batch 64 --ep 4 --expert-load 1.75",
    kMixture + "--cluster dgx-a100-x2 --global-batch 64 --ep 16 --expert-dispatcher once-per-node --expert-capacity 2",
    kMixture + "--cluster dgx-a100-x2 --global-batch 64 --ep 16 --schedule 1f1b-cells --overlap grad,p2p,tp",
    kGpt + "--cluster dgx-a100 --gpus 3 --global-batch 6",
    kGpt + "--cluster eth25-a100-x2 --global-batch 64 --algorithm parameter-server --servers 2",
    "simulate --json --ignore-memory --granularity stage --clock light --model resnet-50 --cluster eth25-a100-x2 "
    "--global-batch 64"};

std::string without(const std::string& json, const std::vector<std::string>& paths) {
  std::string text = json;
  for (const std::string& path : paths)
    if (!json_value(text, path, "answer").empty()) text = with_json_value(text, path, "null", "answer");
  return text;
}

// The answer without what was asked and what the clock says.
std::string numbers(const RanLine& ran) { return ran.out.empty() ? "" : without(ran.out, {"strategy", "simulation"}); }

}  // namespace

TEST(OptionEffect, EveryOptionOfTheStrategyChangesTheAnswerOrIsSaid) {
  std::map<std::string, RanLine> plain;
  for (const std::string& base : kBases) {
    plain[base] = run_line(base);
    ASSERT_EQ(plain[base].code, ExitCode::Ok) << base << plain[base].err;
  }
  std::vector<const StrategyOption*> options;
  for (const StrategyOption& option : strategy_options()) options.push_back(&option);
  for (const StrategyOption* one : some_of(options, 30)) {
    const StrategyOption& option = *one;
    const auto values = other_values().find(option.path);
    ASSERT_TRUE(values != other_values().end()) << option.path << " has no case: give values other than its default";
    bool changed = false;
    for (const std::string& base : kBases)
      for (const std::string& value : values->second) {
        if (changed && !all_of_it()) break;
        if ((base + " ").find(" " + option.flag + " " + value + " ") != std::string::npos) continue;  // as it is
        std::vector<std::string> words;
        std::istringstream in(base);
        for (std::string word; in >> word;)
          if (word == option.flag)  // this value instead
            in >> word;
          else
            words.push_back(word);
        words.push_back(option.flag);
        if (option.type != OptionType::Flag) words.push_back(value);
        const RanLine ran = run_words(words);
        if (ran.code != ExitCode::Ok) {
          EXPECT_TRUE(!ran.err.empty() || !ran.out.empty()) << base << " " << option.flag << " " << value;
          continue;
        }
        const bool differs = numbers(ran) != numbers(plain[base]);
        changed |= differs;
        const std::string held = json_value(plain[base].out, "strategy." + option.path, "answer");
        if (held == value || held == "\"" + value + "\"") continue;  // the default, said
        if (value == "best") continue;                               // what is best may be what the base has
        EXPECT_TRUE(differs || ran.err.find(option.flag + " changes nothing here") != std::string::npos)
            << base << " " << option.flag << " " << value << ": the answer is the same and nobody says so";
      }
    const bool is_of_run =
        option.path == "loss_scale" || option.path == "delay_annealing";  // time and memory do not depend on them
    // MemoryPlanner.ExactPackingIsSmallerWhereTheRulesLeaveAGap; RegionChoices.*, OffloadedValues.FreeTime*
    const bool is_rare = option.path == "packing" || option.path == "offload_budget";
    EXPECT_TRUE(changed || is_of_run || is_rare) << option.flag << " changes nothing anywhere";
  }
}

// A what-if of the cluster or the model, too: 16 GPUs below one leaf never cross a spine.
TEST(OptionEffect, ASettingThatChangesNothingIsSaid) {
  const std::string base = kBases[4], note = " changes nothing here: time, memory and price are the same without it";
  const auto said = [&](const std::string& setting) {
    const RanLine ran = run_line(base + " --set " + setting);
    EXPECT_EQ(ran.code, ExitCode::Ok) << ran.err;
    return ran.err.find("--set " + setting + note) != std::string::npos;
  };
  EXPECT_TRUE(said("cluster.fabric.oversubscription=4"));
  EXPECT_TRUE(said("cluster.host_memory=1"));
  EXPECT_FALSE(said("cluster.nics.bandwidth=1e9"));
  EXPECT_FALSE(said("cluster.price_per_gpu_hour=2"));
  EXPECT_FALSE(said("model.n_layer=6"));
  const std::string sweep =
      "sweep --model gpt2-124m --seq 256 --cluster dgx-a100-x2 --global-batch 16 --top 0 --refine 1 "
      "--fix tp=1 --fix pp=1 --fix micro_batch=1 --fix cp=1 --vary ";
  EXPECT_NE(run_line(sweep + "cluster.fabric.oversubscription=1,4").err.find("--vary cluster.fabric.oversubscription changes"),
            std::string::npos);
  EXPECT_EQ(run_line(sweep + "nodes=1,2").err.find("changes nothing"), std::string::npos);
}

TEST(OptionEffect, EveryReasonIsOfAnOption) {
  for (const auto& [path, where] : where_options_matter()) EXPECT_NE(find_option(path), nullptr) << path;
}

// The setting wins over the option, and the option is told.
TEST(OptionEffect, AnOptionThatASettingReplacesIsSaid) {
  for (const std::string verb : {"simulate", "lower", "partition", "search --top 0 --refine 1"}) {
    const RanLine ran =
        run_line(verb + " --model gpt2-124m --global-batch 16 --cluster dgx-a100 --seq 128 --set strategy.seq=256");
    EXPECT_EQ(ran.code, ExitCode::Ok) << verb << ran.err;
    EXPECT_NE(ran.err.find("--seq changes nothing here: --set strategy.seq wins over it"), std::string::npos)
        << verb << ran.err;
  }
}

// Clusters and models can be what a sweep varies; then they are not given beside it.
TEST(OptionEffect, ASweepVariesClustersAndModels) {
  const std::string job = "sweep --seq 128 --global-batch 8 --refine 1 --top 0 --csv ";
  const RanLine clusters = run_line(job + "--model gpt2-124m --vary cluster=dgx-a100,dgx-h100");
  EXPECT_EQ(clusters.code, ExitCode::Ok) << clusters.err;
  EXPECT_NE(clusters.out.find("\ndgx-h100,8,"), std::string::npos) << clusters.out;
  const RanLine models = run_line(job + "--cluster dgx-a100 --vary model=gpt2-124m,bert-large");
  EXPECT_EQ(models.code, ExitCode::Ok) << models.err;
  EXPECT_NE(models.out.find("\nbert-large,8,"), std::string::npos) << models.out;
  EXPECT_EQ(run_line(job + "--cluster dgx-a100 --vary nodes=1,2").err,
            "foreshard: command line: --model: found nothing, expected a name or a file, or --vary model=A,B\n");
}

// A number of nodes that something else replaces.
TEST(OptionEffect, NodesAreSaidOnce) {
  const std::string job = "simulate --model gpt2-124m --seq 128 --set cluster.nodes=4 --cluster ";
  EXPECT_EQ(run_line(job + "dgx-a100-x2").err,
            "foreshard: command line: --set: found \"cluster.nodes=4\", expected no cluster.nodes beside the 2 nodes of "
            "dgx-a100-x2\n");
  EXPECT_EQ(
      run_line(job + "dgx-a100 --nodes 3").err,
      "foreshard: command line: --set: found \"cluster.nodes=4\", expected no cluster.nodes beside the 3 nodes of --nodes\n");
  EXPECT_EQ(run_line(job + "dgx-a100").code, ExitCode::Ok);
}

// What a file says and the search varies is told once.
TEST(OptionEffect, AFileWhoseOptionsAreVariedIsToldOnce) {
  const std::string file = testing::TempDir() + "foreshard-varied.strategy.json";
  write_file(file, R"({"recompute": {"kind": "full"}, "context": "ring"})");
  const std::string job =
      "search --model gpt2-124m --seq 128 --global-batch 8 --cluster dgx-a100 --refine 1 --top 0 --fix cp=1 --strategy " + file;
  const RanLine ran = run_line(job);
  EXPECT_EQ(ran.code, ExitCode::Ok) << ran.err;
  EXPECT_NE(ran.err.find("the search varies its --recompute all the same"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("recompute of"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("context of " + file + " changes nothing"), std::string::npos) << ran.err;
}

// The formats of a checkpoint say nothing of a training.
TEST(OptionEffect, AQuantizedModelIsSaid) {
  const std::string file = testing::TempDir() + "foreshard-quantized.json";
  write_file(file, with_json_value(read_file(model_file("llama-3-8b")), "quantization_config", R"({"bits": 4})", file));
  const RanLine ran = run_line("lower --seq 256 --global-batch 16 --cluster dgx-h100 --zero 3 --model " + file);
  EXPECT_EQ(ran.code, ExitCode::Ok) << ran.err;
  EXPECT_EQ(ran.err,
            "foreshard: quantization_config of " + file + " changes nothing: --precision says what formats it is trained in\n");
}

// What one option says and another one unsays is refused before anything is done.
TEST(OptionEffect, OptionsThatContradictEachOtherAreRefused) {
  const std::string job = " --model gpt2-124m --seq 256 --global-batch 16 --cluster ", search = "search" + job + "dgx-a100 ";
  for (const auto& [line, told] : std::vector<std::pair<std::string, std::string>>{
           {search + "--fix tp=2 --fix tp=4", "--fix: found \"tp=4\", expected tp once"},
           {search + "--tp 2 --fix tp=4", "--fix: found \"tp=4\", expected tp once"},
           {search + "--max-tp 2 --fix tp=4", "--max-tp: found 2, expected no fixed tp"},
           {search + "--max-tp 0", "--max-tp: found \"0\""},
           {search + "--try tp", "--try: found \"tp\", expected one of parts, compress_activations, compress_gradients"},
           {search + "--parts 2 --try compress-gradients,parts", "--try: found \"parts\", expected no --parts beside it"},
           {search + "--json --csv", "--csv: found it beside --json, expected one format"},
           {search + "--json --residuals 3", "--residuals: found --json, expected the table"},
           {search + "--rank 2", "--rank: found 2, expected --save-strategy or --save-plan"},
           {search + "--cluster dgx-h100 --rows 3", "--rows: found several clusters"},
           {search + "--cluster dgx-h100 --residuals 3", "--residuals: found several clusters"},
           {search + "--save-plan same.file --save-strategy same.file", "another file than that of"},
           {search + "--save-plan /no/such/folder/x", "expected a file that can be written"},
           {"sweep --vary tp=1,2 --vary tp=4" + job + "dgx-a100", "--vary: found \"tp=4\", expected tp once"},
           {"sweep --vary nodes=1,2 --json --csv" + job + "dgx-a100", "expected one format"},
           {"simulate --trace x.json --svg ./x.json" + job + "dgx-a100", "another file than that of"},
           {"simulate --straggler 3=2 --straggler 3=4" + job + "dgx-a100",
            "--straggler: found \"3=4\", expected each rank once"},
           {"simulate --straggler 3=1" + job + "dgx-a100", "--straggler: found \"3=1\", expected another factor than 1"},
           {"simulate --gpus 32" + job + "dgx-a100-x2",
            "--gpus: found 32, expected at most the 16 GPUs of dgx-a100-x2; --nodes 4 makes it larger"},
           {"simulate --nodes 2 --gpus 8" + job + "dgx-a100", "--gpus: found 8, expected GPUs of 2 nodes"},
           {"simulate --set cluster.nodes=2 --set cluster.nodes=4" + job + "dgx-a100", "expected one value of cluster.nodes"},
           {"lower --save-plan x.json --save-strategy x.json" + job + "dgx-a100", "another file than that of"}}) {
    const RanLine ran = run_line(line);
    EXPECT_EQ(ran.code, ExitCode::WrongInput) << line;
    EXPECT_NE(ran.err.find(told), std::string::npos) << line << "\n" << ran.err;
  }
}

}  // namespace foreshard::option_effect_test
