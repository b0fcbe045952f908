// lower, check-plan and show plan on real files, and how options reach the strategy.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/json/json.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "tests/cli/run_line.h"

namespace foreshard {

namespace fs = std::filesystem;

class PlanVerbs : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("foreshard-plans-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  static std::string small() { return "lower --model gpt2-124m --cluster dgx-a100 --seq 256 --global-batch 16 "; }

 private:
  fs::path folder_;
};

TEST_F(PlanVerbs, ASavedPlanIsSoundAndShown) {
  const std::string plan = file("p.plan.json");
  ASSERT_EQ(run_line(small() + "--tp 2 --pp 2 --save-plan " + plan).code, ExitCode::Ok);
  const RanLine checked = run_line("check-plan " + plan + " --cluster dgx-a100 --json");
  EXPECT_EQ(checked.code, ExitCode::Ok);
  EXPECT_TRUE(JsonReader::parse(checked.out, "out").at("sound").as_bool());
  const RanLine shown = run_line("show plan " + plan);
  EXPECT_EQ(shown.code, ExitCode::Ok);
  // 8 GPUs / (2 x 2) = 2 replicas, so 16 samples are 8 micro-batches of 1 each.
  EXPECT_NE(shown.out.find(": 2 stages, 8 micro-batches, 16 samples"), std::string::npos) << shown.out;
}

// What --set changed of the cluster is in the plan, so it is simulated on what it was made for.
TEST_F(PlanVerbs, ASavedPlanKnowsWhatWasSet) {
  const std::string set = "--dp 8 --set cluster.nvlink.bandwidth=5e9 --set model.n_layer=4 ", path = file("p.plan.json");
  const auto seconds = [](const std::string& line) {
    const RanLine ran = run_line(line + " --json");
    EXPECT_EQ(ran.code, ExitCode::Ok) << ran.err;
    return JsonReader::parse(ran.out, "out").at("iteration_time_s").as_double();
  };
  ASSERT_EQ(run_line(small() + set + "--save-plan " + path).code, ExitCode::Ok);
  const std::string job = "simulate" + small().substr(std::string("lower").size());
  EXPECT_EQ(seconds("simulate --plan " + path), seconds(job + set));
  EXPECT_LT(seconds("simulate --plan " + path + " --cluster dgx-a100"), seconds("simulate --plan " + path));
  ASSERT_EQ(run_line(small() + "--save-plan " + path).code, ExitCode::Ok);
  EXPECT_EQ(load_plan(path).origin.find("settings"), std::string::npos);
}

// A plan has the costs of its own GPUs: on others it has none.
TEST_F(PlanVerbs, APlanForOtherGpusIsRefused) {
  const std::string path = file("p.plan.json");
  ASSERT_EQ(run_line(small() + "--tp 2 --save-plan " + path).code, ExitCode::Ok);
  for (const std::string verb : {"check-plan ", "simulate --plan "}) {
    const auto refused = [&](const std::string& cluster) {
      const RanLine ran = run_line(verb + path + " --cluster " + cluster);
      EXPECT_EQ(ran.code, ExitCode::WrongInput) << verb << cluster << ran.out;
      return ran.err;
    };
    const std::string begin = "foreshard: " + path + ": plan is for ";
    EXPECT_EQ(refused("dgx-h100"), begin + "a100-80, cluster dgx-h100 has h100-80\n");
    EXPECT_EQ(refused("dgx-a100-40gb"), begin + "a100-80, cluster dgx-a100-40gb has a100-40\n");
    EXPECT_EQ(refused("workstation-rtx4090"), begin + "a100-80, cluster workstation-rtx4090 has rtx-4090\n");
    EXPECT_EQ(run_line(verb + path + " --cluster dgx-a100-x2").code, ExitCode::Ok);
  }
  ASSERT_EQ(run_line(small() + "--nodes 2 --save-plan " + path).code, ExitCode::Ok);
  for (const std::string verb : {"check-plan ", "simulate --plan "})
    EXPECT_EQ(run_line(verb + path + " --cluster dgx-a100").err,
              "foreshard: " + path + ": plan is for 16 GPUs, cluster dgx-a100 has 8\n");
}

TEST_F(PlanVerbs, APlanThatWasSpoiledIsRefused) {
  const std::string path = file("p.plan.json");
  ASSERT_EQ(run_line(small() + "--pp 2 --save-plan " + path).code, ExitCode::Ok);
  Plan plan = load_plan(path);
  plan.roles[1].actions.pop_back();  // the last stage never updates its parameters
  save_plan(plan, path);
  const RanLine checked = run_line("check-plan " + path);
  EXPECT_EQ(checked.code, ExitCode::WrongInput);
  EXPECT_NE(checked.out.find("not sound"), std::string::npos) << checked.out;
  // Neither simulated nor run, in the words of check-plan; show plan shows it, and says so.
  const std::string first = checked.out.substr(0, checked.out.find('\n'));
  const RanLine simulated = run_line("simulate --plan " + path);
  EXPECT_EQ(simulated.code, ExitCode::WrongInput);
  EXPECT_EQ(simulated.out, "");
  EXPECT_EQ(simulated.err, "foreshard: " + path + ": " + first + "; the plan is not sound\n");
  EXPECT_EQ(run_line("run " + path).err,
            "foreshard: " + path + ": " + first + "; the plan is not sound, --force runs it all the same\n");
  const RanLine shown = run_line("show plan " + path);
  EXPECT_EQ(shown.code, ExitCode::WrongInput);
  EXPECT_EQ(shown.err, simulated.err);
  EXPECT_NE(shown.out.find(": 2 stages"), std::string::npos) << shown.out;
  plan.roles[1].actions = load_plan(path).roles[1].actions;
  plan.samples = std::int64_t{1} << 40U;
  save_plan(plan, path);
  EXPECT_TRUE(run_line("check-plan " + path)
                  .err.starts_with("foreshard: " + path + ": samples: found 1099511627776, expected at most "));
  std::ofstream(path) << "{}";
  const RanLine broken = run_line("check-plan " + path);
  EXPECT_EQ(broken.code, ExitCode::WrongInput);
  EXPECT_TRUE(broken.err.starts_with("foreshard: " + path + ": ")) << broken.err;
}

// What `partition` saves has the time that it printed.
TEST_F(PlanVerbs, ThePartitionThatWasFoundIsPlayedAgain) {
  const std::string strategy = file("s.strategy.json"), job = "--model vgg-16 --cluster eth25-a100-x8 ";
  const RanLine found = run_line("partition " + job + "--global-batch 512 --micro-batch 8 --json --save-strategy " + strategy);
  ASSERT_EQ(found.code, ExitCode::Ok) << found.err;
  const JsonReader answer = JsonReader::parse(found.out, "out");
  const JsonReader staged = answer.at("staged");
  EXPECT_EQ(to_text(load_strategy(strategy).stages), staged.at("stages").as_string());
  EXPECT_LT(staged.at("simulated_s").as_double(), answer.at("runnable").at("simulated_s").as_double());
  const RanLine simulated = run_line("simulate " + job + "--granularity stage --json --strategy " + strategy);
  ASSERT_EQ(simulated.code, ExitCode::Ok) << simulated.err;
  EXPECT_NEAR(JsonReader::parse(simulated.out, "out").at("iteration_time_s").as_double(), staged.at("simulated_s").as_double(),
              1e-12);
}

// 60 GiB of 80 stay free: every rank makes something again, and says what it chose from.
TEST_F(PlanVerbs, TheBestRecomputationPrintsItsFront) {
  const std::string job = "lower --model gpt2-1.5b --cluster dgx-a100 --pp 2 --micro-batch 8 --global-batch 64 --reserve 75% ";
  const std::string strategy = file("s.strategy.json");
  const RanLine ran = run_line(job + "--recompute best --json --save-strategy " + strategy);
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  const JsonReader ranks = JsonReader::parse(ran.out, "out").at("trades");
  ASSERT_EQ(ranks.size(), 2u);
  for (const JsonReader& rank : ranks.elements()) {
    EXPECT_GT(rank.at("chosen").at("seconds").as_double(), 0);
    EXPECT_GT(rank.at("front").size(), 3u);
  }
  EXPECT_EQ(load_strategy(strategy).recompute.each.size(), 48u);
  const RanLine shown = run_line(job + "--recompute best");
  EXPECT_NE(shown.out.find("Pipeline rank 1: "), std::string::npos) << shown.out;
  EXPECT_EQ(run_line("lower --model gpt2-1.5b --cluster dgx-a100 --strategy " + strategy).code, ExitCode::Ok);
}

TEST_F(PlanVerbs, SearchAndPartitionTakeNoStages) {
  const std::string job = " --model gpt2-124m --cluster dgx-a100 --global-batch 8 ";
  for (const auto& [line, told] :
       {std::pair<std::string, std::string>("search" + job + "--stages 6:2x1,6:1x2", "--stages: found 6:2x1,6:1x2"),
        {"partition" + job + "--set strategy.stages=6:2x1,6:1x2", "strategy.stages: found 6:2x1,6:1x2"}}) {
    const RanLine refused = run_line(line);
    EXPECT_EQ(refused.code, ExitCode::WrongInput);
    EXPECT_TRUE(refused.err.starts_with("foreshard: command line: " + told + ", expected no stages")) << refused.err;
  }
  const RanLine gpus = run_line("simulate --model gpt2-124m --cluster dgx-a100 --global-batch 8 --stages 6:2x1,6:2x1 --gpus 3");
  EXPECT_EQ(gpus.code, ExitCode::WrongInput);
  EXPECT_EQ(gpus.err, "foreshard: command line: --gpus: found 3, expected 4 (those of the stages)\n");
  const RanLine wrong = run_line("simulate --model gpt2-124m --cluster dgx-a100 --global-batch 8 --stages 6:2x1,6");
  EXPECT_EQ(wrong.code, ExitCode::WrongInput);
  EXPECT_NE(wrong.err.find("stages: found \"6\" (part 2) in \"6:2x1,6\", expected LAYERS:DPxTP of each stage"),
            std::string::npos)
      << wrong.err;
}

TEST_F(PlanVerbs, OptionsWinOverTheStrategyFileAndSetOverOptions) {
  std::ofstream(file("s.strategy.json")) << R"({"tp": 4, "zero": 1, "micro_batch": 2})";
  const std::string out = file("out.strategy.json");
  const RanLine r = run_line(small() + "--strategy " + file("s.strategy.json") +
                             " --tp 2 --zero 1 --set strategy.zero=2 --save-strategy " + out);
  ASSERT_EQ(r.code, ExitCode::Ok) << r.err;
  const Strategy strategy = load_strategy(out);
  EXPECT_EQ(strategy.tp, 2);
  EXPECT_EQ(strategy.batch.micro, 2);
  EXPECT_EQ(strategy.zero.stage, 2);
  EXPECT_EQ(strategy.dp, 4);  // the rest of 8 GPUs
}

TEST_F(PlanVerbs, GpusAndNodesChooseThePartOfTheCluster) {
  const std::string out = file("out.strategy.json");
  ASSERT_EQ(run_line(small() + "--gpus 4 --tp 2 --save-strategy " + out).code, ExitCode::Ok);
  EXPECT_EQ(load_strategy(out).dp, 2);
  ASSERT_EQ(run_line(small() + "--nodes 2 --tp 2 --save-strategy " + out).code, ExitCode::Ok);
  EXPECT_EQ(load_strategy(out).dp, 8);
  ASSERT_EQ(run_line(small() + "--set cluster.nodes=2 --tp 2 --save-strategy " + out).code, ExitCode::Ok);
  EXPECT_EQ(load_strategy(out).dp, 8);
  // 12 GPUs stand in 2 of the 4 nodes, which the name of the cluster says.
  EXPECT_TRUE(run_line("simulate --model gpt2-124m --cluster dgx-a100-x4 --seq 256 --gpus 12 --tp 2 --global-batch 18")
                  .out.starts_with("gpt2-124m on dgx-a100-x2, 12 GPUs\n"));
  EXPECT_EQ(run_line(small() + "--gpus 6 --tp 4").err,
            "foreshard: command line: --gpus: found 6, expected a multiple of 4 (tp x cp x pp)\n");
}

TEST_F(PlanVerbs, SetChangesTheModel) {
  // gpt2-124m has 12 layers: 5 stages cannot hold them evenly, with 10 layers they can.
  EXPECT_EQ(run_line(small() + "--gpus 5 --pp 5").code, ExitCode::Infeasible);
  EXPECT_EQ(run_line(small() + "--gpus 5 --pp 5 --set model.n_layer=10").code, ExitCode::Ok);
}

// A key that another family reads, a misspelling and a key of nobody would change nothing.
TEST_F(PlanVerbs, KeysThatTheModelDoesNotReadAreRefused) {
  const auto message = [](const std::string& model, const std::string& rest) {
    const RanLine ran = run_line("simulate --model " + model + " --cluster dgx-h100 --seq 256 --global-batch 16 --set " + rest);
    EXPECT_EQ(ran.code, ExitCode::WrongInput) << ran.out;
    return ran.err;
  };
  const std::string begin = "foreshard: command line: model.",
                    unread = ": found a key that llama models do not read, expected ";
  EXPECT_EQ(message("llama-3-8b", "model.n_layer=4"), begin + "n_layer" + unread + "model.num_hidden_layers\n");
  EXPECT_EQ(message("llama-3-8b", "model.num_hiden_layers=4"),
            begin + "num_hiden_layers" + unread + "model.num_hidden_layers (nearest)\n");
  EXPECT_NE(message("llama-3-8b", "model.rubbish=4").find("expected one of attention_bias, "), std::string::npos);
  EXPECT_EQ(message("gpt2-124m", "model.intermediate_size=100"),
            begin + "intermediate_size: found a key that gpt2 models do not read, expected model.n_inner\n");
  EXPECT_NE(message("llama-3-8b", R"(model.rope_parameters={"theta":5})").find("model.rope_parameters.theta: found a key"),
            std::string::npos);
  EXPECT_NE(message("resnet-50", "model.n_layer=4").find("n_layer"), std::string::npos);
  const std::string sweep = "sweep --model llama-3-8b --cluster dgx-h100 --seq 256 --global-batch 16 --vary ";
  EXPECT_EQ(run_line(sweep + "model.n_layer=4,8").err, begin + "n_layer" + unread + "model.num_hidden_layers\n");
  EXPECT_EQ(run_line(sweep + "global-bach=4,8").err,
            "foreshard: command line: --vary: found \"global-bach\", expected an option of the job or a path that begins with "
            "model., cluster. or strategy. (nearest: global-batch)\n");
}

TEST_F(PlanVerbs, WrongSettingsSayWhatWasExpected) {
  const auto message = [](const std::string& setting) { return run_line(small() + "--set " + setting).err; };
  EXPECT_EQ(message("tp"),
            "foreshard: command line: --set: found \"tp\", expected PATH=VALUE, such as strategy.zero=1 or cluster.nodes=16\n");
  EXPECT_EQ(message("plan.tp=1"),
            "foreshard: command line: --set: found \"plan.tp=1\", expected a path that begins with model., cluster. or "
            "strategy.\n");
  EXPECT_NE(message("strategy.zreo=1").find("zero"), std::string::npos);
  EXPECT_NE(message("cluster.nods=1").find("nodes"), std::string::npos);
  EXPECT_NE(message("strategy.zero=7").find("an integer from 0 to 3"), std::string::npos);
}

TEST_F(PlanVerbs, AStrategyThatCannotBeIsAnAnswer) {
  const RanLine r = run_line("lower --model gpt3-175b --cluster dgx-a100-x64 --tp 8 --pp 64 --global-batch 64 --json");
  EXPECT_EQ(r.code, ExitCode::Infeasible);
  const JsonReader json = JsonReader::parse(r.out, "out");
  EXPECT_FALSE(json.at("feasible").as_bool());
  EXPECT_FALSE(json.at("infeasible_reason").as_string().empty());
  EXPECT_EQ(r.err, "");
}

// Before: "the layers need more memory than all GPUs have".
TEST_F(PlanVerbs, PartitionSaysWhatTheGpuCannotDo) {
  const RanLine ran = run_line("partition --model gpt2-124m --cluster dgx1-v100 --global-batch 8");
  EXPECT_EQ(ran.code, ExitCode::Infeasible);
  EXPECT_NE(ran.err.find("v100-32 has no bf16 arithmetic, only fp16, fp32, fp64\n  would help: --precision fp16"),
            std::string::npos)
      << ran.err;
}

// What the executor or the check finds wrong is told of the file, in one sentence.
TEST_F(PlanVerbs, ARefusedRunNamesThePlanFile) {
  const std::string path = file("cp.plan.json");
  ASSERT_EQ(run_line("lower --model gpt2-124m --cluster dgx-a100 --seq 256 --global-batch 16 --cp 2 --save-plan " + path).code,
            ExitCode::Ok);
  Plan plan = load_plan(path);
  plan.samples = 17;
  save_plan(plan, path);
  const std::string wrong = "foreshard: " + path + ": samples: found 17, expected a multiple of 4 replicas x 4 micro-batches";
  EXPECT_EQ(run_line("run " + path).err, wrong + " [samples-differ]; the plan is not sound, --force runs it all the same\n");
  EXPECT_EQ(run_line("run " + path + " --force").err, wrong + "\n");
  plan.samples = 16, plan.updates = 7;
  save_plan(plan, path);
  EXPECT_EQ(run_line("run " + path).err,
            "foreshard: " + path +
                ": role 0, stage 0: is updated 1 time in a run, the plan says 7 [update-count]; the plan is "
                "not sound, --force runs it all the same\n");
}

TEST_F(PlanVerbs, SizesAndNamesAreThoseThatSaySomething) {
  const std::string path = file("p.plan.json");
  ASSERT_EQ(run_line(small() + "--tp 2 --save-plan " + path).code, ExitCode::Ok);
  EXPECT_NE(run_line("run " + path + " --memory-limit 10KiB").err.find("the limit is 10.0 KiB: "), std::string::npos);
  const std::string shown = run_line("show plan " + path).out;
  EXPECT_NE(shown.find(" MiB\n"), std::string::npos) << shown;
  EXPECT_EQ(run_line("lower --model gpt2-124m --cluster dgx-a100 --global-batch 16 --seq 4096").err,
            "foreshard: seq: found 4096, expected at most the model's 1024 positions\n");
  EXPECT_EQ(run_line(small() + "--overlap none,grad").err,
            "foreshard: command line: overlap: found \"none\", expected none alone, or some of grad,param,p2p,tp\n");
  EXPECT_NE(
      run_line("show schedule 1f1b --pp 1 --micro-batches 1").out.find("1 pipeline rank, 1 micro-batch, 1 stage per rank"),
      std::string::npos);
}

// What the file does not say is not 0, a price has no currency, one is no plural, and -h is help of every verb.
TEST(ShowCluster, SaysWhatTheFileSays) {
  const std::string path = testing::TempDir() + "foreshard-plain-cluster.json";
  write_file(
      path,
      R"({"gpu": "a100-80", "gpus_per_node": 2, "nvlink": {"kind": "switch", "bandwidth": "300 GB/s"}, "nics": {"count": 1,)"
      R"( "bandwidth": "25 GB/s"}, "pcie": {"bandwidth": "20 GB/s"}, "price_per_gpu_hour": 2})");
  const RanLine ran = run_line("show cluster " + path);
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  EXPECT_NE(on_one_line(ran.out).find("1 NIC of 25 GB/s, host memory not said"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("2 per GPU and hour, in the currency of the file"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find('$'), std::string::npos) << ran.out;
  EXPECT_EQ(run_line("simulate -h").code, ExitCode::Ok);
  for (const char* nodes : {"131073", "1000000"})
    EXPECT_NE(run_line("show cluster dgx-a100-x" + std::string(nodes)).err.find("1 to 131072: at most 1048576 GPUs, 8 a node"),
              std::string::npos)
        << run_line("show cluster dgx-a100-x" + std::string(nodes)).err;
}

// 16 convolutions and linear layers, as the name says: what --layer-split counts.
TEST(ShowModel, LayersOfAListAreThoseThatOptionsCount) {
  EXPECT_NE(run_line("show model vgg-16").out.find("layers      16, as --layer-split counts them (37 entries"),
            std::string::npos);
  EXPECT_NE(run_line("list models").out.find("vgg-16                layer list      16"), std::string::npos);
  EXPECT_EQ(run_line("lower --model vgg-16 --cluster dgx-a100 --global-batch 64 --pp 2 --layer-split 3,4").err,
            "foreshard: layer split \"3,4\" adds up to 7 layers, the model has 16\n");
}

}  // namespace foreshard
