// simulate from the command line: the documented keys, the files it writes, exit codes, and what each option changes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/json/json.h"
#include "core/plan/plan.h"
#include "core/result/result.h"
#include "strategy/frameworks/online_allocation.h"
#include "tests/cli/run_line.h"
#include "tests/report/summaries.h"

namespace foreshard::simulate_test {

namespace fs = std::filesystem;

static const std::string kSmall = "simulate --model gpt2-124m --cluster dgx-a100 --seq 256 --global-batch 16 ";

static JsonReader answer(const std::string& line, ExitCode expected = ExitCode::Ok) {
  const RanLine r = run_line(line + " --json");
  EXPECT_EQ(r.code, expected) << line << "\n" << r.err;
  return JsonReader::parse(r.out, "output");
}

static double sum_of(const JsonReader& object) {
  double sum = 0;
  for (const auto& [key, value] : object.members()) sum += value.as_double();
  return sum;
}

TEST(Simulate, JsonHasTheDocumentedKeys) {
  const JsonReader json = answer(kSmall + "--tp 2 --pp 2");
  for (const std::string& key : summaries::promised_keys()) EXPECT_TRUE(json.has(key)) << key;
  for (const char* key : {"model", "hardware", "convention"}) EXPECT_TRUE(json.at("flops").has(key)) << key;
  for (const char* key : {"max", "per_stage", "allocated", "with_framework", "reserved"})
    EXPECT_TRUE(json.at("peak_memory_bytes").has(key)) << key;
  for (const char* key : {"wall_time_s", "makespan_s", "clock", "simgrid_events", "granularity", "folding"})
    EXPECT_TRUE(json.at("simulation").has(key)) << key;
  ASSERT_EQ(json.at("stage_times").size(), 2u);
  for (const char* key : {"forward_s", "backward_input_s", "backward_weight_s", "p2p_s"})
    EXPECT_GE(json.at("stage_times").at(0).at(key).as_double(), 0) << key;
  EXPECT_EQ(json.at("memory_by_category").size(), 2u);
  EXPECT_EQ(json.at("bubble_per_stage").size(), 2u);
  // Every default is written out.
  EXPECT_EQ(json.at("strategy").at("dp").as_int(), 2);
  EXPECT_EQ(json.at("strategy").at("schedule").as_string(), "1f1b");
  EXPECT_EQ(json.at("strategy").at("precision").as_string(), "bf16");
}

// The head of the text names what was asked for, sizes as the tables print them.
TEST(Simulate, SizesAreNotPrintedInBytes) {
  const RanLine r = run_line(kSmall + "--policy greedy --offload-budget 10737418240 --bucket 40MiB --partition 4MiB");
  ASSERT_EQ(r.code, ExitCode::Ok) << r.err;
  std::string head = r.out.substr(0, r.out.find("\n\n"));
  std::ranges::replace(head, '\n', ' ');
  EXPECT_NE(head.find("offload budget 10.00 GiB"), std::string::npos) << head;
  EXPECT_NE(head.find("partition 4.00 MiB"), std::string::npos) << head;
}

TEST(Simulate, TheNumbersAgreeWithEachOther) {
  const JsonReader json = answer(kSmall + "--tp 2 --pp 2");
  const double time = json.at("iteration_time_s").as_double(1e-6, 10);
  // 16 sequences of 256 tokens per iteration on 8 GPUs; A100: 312 TFLOP/s dense bf16.
  EXPECT_NEAR(json.at("tokens_per_s").as_double(), 16 * 256 / time, 1e-6 * 16 * 256 / time);
  EXPECT_NEAR(json.at("tokens_per_s_per_gpu").as_double() * 8, json.at("tokens_per_s").as_double(), 1e-3);
  EXPECT_NEAR(json.at("model_flops_utilization").as_double(), json.at("flops").at("model").as_double() / time / 8 / 312e12,
              1e-9);
  EXPECT_NEAR(sum_of(json.at("bubble_by_cause")), json.at("bubble_fraction").as_double(), 1e-9);
  EXPECT_NEAR(json.at("simulation").at("makespan_s").as_double(), time, 1e-9);
  EXPECT_GT(json.at("simulation").at("simgrid_events").as_int(), 0);
}

// Full recomputation makes the forward once more, so the pairs that a causal mask excludes count 4 instead of 3 times; unfused kernels compute
// them all.
TEST(Simulate, UtilisationWithoutThePairsBeyondTheMask) {
  const std::string line =
      "simulate --model gpt2-124m --set model.n_positions=65536 --cluster dgx-a100 --gpus 1 --global-batch 1 "
      "--ignore-memory --as-given --recompute ";
  for (const auto& [recompute, times] : {std::pair("none", 1.0), {"full", 4.0 / 3}}) {
    const JsonReader json = answer(line + recompute);
    const auto beyond = [&](const std::string& of) {
      return json.at(of + "_flops_utilization").as_double() -
             json.at(of == "model" ? "masked_flops_utilization" : "masked_hardware_flops_utilization").as_double();
    };
    EXPECT_GT(beyond("model"), 0.1);
    EXPECT_NEAR(beyond("hardware") / beyond("model"), times, 1e-9);
  }
  const JsonReader unfused = answer(line + "none --attention unfused");
  EXPECT_EQ(unfused.at("masked_hardware_flops_utilization").as_double(), unfused.at("hardware_flops_utilization").as_double());
}

TEST(Simulate, AResultHasTheIntervalAndTheNotes) {
  const std::string file = testing::TempDir() + "notes-" + std::to_string(::getpid()) + ".result";
  const RanLine ran = run_line(kSmall + "--zero-group 2 --json --save-result " + file);
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  const Result result = load_result(file);
  std::filesystem::remove(file);
  const JsonReader origin = JsonReader::parse(result.plan.origin, "origin"), said = JsonReader::parse(ran.out, "answer");
  EXPECT_EQ(origin.at("prediction_interval").at("low_s").as_double(), said.at("prediction_interval").at("low_s").as_double());
  ASSERT_GE(origin.at("notes").size(), 1U);
  EXPECT_NE(ran.err.find("foreshard: " + origin.at("notes").at(0).as_string() + "\n"), std::string::npos) << ran.err;
}

TEST(Simulate, OptionsReachTheSimulator) {
  const JsonReader folded = answer(kSmall + "--tp 2 --pp 2 --granularity stage --folding full");
  const JsonReader unfolded = answer(kSmall + "--tp 2 --pp 2 --granularity op --folding none");
  EXPECT_EQ(folded.at("simulation").at("granularity").as_string(), "stage");
  EXPECT_EQ(unfolded.at("simulation").at("granularity").as_string(), "op");
  EXPECT_EQ(unfolded.at("simulation").at("folding").as_string(), "none");
  EXPECT_GT(unfolded.at("simulation").at("simgrid_events").as_int(), folded.at("simulation").at("simgrid_events").as_int());
}

// Tests of replay/ hold every span of random plans to 1 ns; here all that the verb prints.
TEST(Simulate, TheLightClockGivesTheSameTimes) {
  const JsonReader simgrid = answer(kSmall + "--tp 2 --pp 2"), light = answer(kSmall + "--tp 2 --pp 2 --clock light");
  const double time = simgrid.at("iteration_time_s").as_double();
  EXPECT_NEAR(light.at("iteration_time_s").as_double(), time, 1e-9 * time);
  EXPECT_NEAR(light.at("bubble_fraction").as_double(), simgrid.at("bubble_fraction").as_double(), 1e-6);
  for (const char* key : {"model", "hardware"})
    EXPECT_EQ(light.at("flops").at(key).as_double(), simgrid.at("flops").at(key).as_double());
  EXPECT_EQ(light.at("peak_memory_bytes").at("allocated").as_int(), simgrid.at("peak_memory_bytes").at("allocated").as_int());
}

TEST(Simulate, AStragglerSlowsTheJobAndIsNamedAsACause) {
  const JsonReader even = answer(kSmall + "--tp 2 --pp 2 --folding none");
  EXPECT_EQ(even.at("bubble_by_cause").at("straggler").as_double(), 0);
  const JsonReader slow = answer(kSmall + "--tp 2 --pp 2 --straggler 3=2");
  // The slow rank computes for twice as long and everybody waits for it, at least for half of the step.
  EXPECT_GT(slow.at("iteration_time_s").as_double(), 1.3 * even.at("iteration_time_s").as_double());
  EXPECT_LT(slow.at("iteration_time_s").as_double(), 2.01 * even.at("iteration_time_s").as_double());
  EXPECT_GT(slow.at("bubble_by_cause").at("straggler").as_double(), 0);
  const std::string expected = "expected RANK=FACTOR with a factor above 0 and at most 1e6, such as 17=1.25\n";
  for (const char* wrong : {"3", "=2", "3=", "-1=2", "3=0", "3=2x", "3=nan", "x=2"})
    EXPECT_EQ(run_line(kSmall + "--straggler " + wrong).err,
              "foreshard: command line: --straggler: found \"" + std::string(wrong) + "\", " + expected);
  EXPECT_EQ(run_line(kSmall + "--straggler 8=2").err,
            "foreshard: options: straggler: found rank 8, expected a rank from 0 to 7\n");
}

TEST(Simulate, WrongOptionsSayWhatWasExpected) {
  EXPECT_EQ(run_line(kSmall + "--folding half").err,
            "foreshard: command line: --folding: found \"half\", expected one of none, tp, full\n");
  EXPECT_EQ(run_line(kSmall + "--profile a100.json").code, ExitCode::WrongInput);
  EXPECT_EQ(run_line("simulate --model gpt2-124m").err,
            "foreshard: command line: --cluster: found nothing, expected a name or a file, or --plan FILE; see \"foreshard "
            "simulate --help\"\n");
  EXPECT_EQ(run_line(kSmall + "--tpp 2").err,
            "foreshard: command line: --tpp: found an unknown option, expected --tp (nearest)\n");
  EXPECT_EQ(run_line("simulate --plan p.plan.json --tp 2").err,
            "foreshard: command line: --tp: found an option of a job, expected only --cluster beside --plan: the plan has its "
            "model and strategy\n");
}

TEST(Simulate, TooMuchMemoryIsAnAnswerWithNumbers) {
  // Adam in mixed precision takes 2 + 2 + 12 bytes for each of 6.7e9 parameters, 108 GB; an A100 has 80 GiB.
  const std::string line = "simulate --model llama-2-7b --cluster dgx-a100 --global-batch 8 --dp 8";
  const JsonReader json = answer(line, ExitCode::Infeasible);
  EXPECT_FALSE(json.at("feasible").as_bool());
  EXPECT_FALSE(json.at("infeasible_reason").as_string().empty());
  EXPECT_TRUE(json.at("iteration_time_s").is_null()) << "it was not played";
  EXPECT_TRUE(json.at("peak_memory_bytes").at("max").is_null());
  EXPECT_GT(json.at("peak_memory_bytes").at("with_framework").as_int(), 80LL << 30);
  EXPECT_GT(json.at("would_help").size(), 0u);
  EXPECT_LT(json.at("fits_margin_bytes").as_int(), 0);
  const JsonReader forced = answer(line + " --ignore-memory", ExitCode::Ok);
  EXPECT_FALSE(forced.at("feasible").as_bool());
  EXPECT_GT(forced.at("iteration_time_s").as_double(), 0);
  // Where no change of the strategy makes room it says so, and where to look.
  const RanLine hopeless = run_line("simulate --model llama-3-70b --cluster dgx-h100");
  EXPECT_EQ(hopeless.code, ExitCode::Infeasible);
  EXPECT_NE(hopeless.out.find("What would help:\n"), std::string::npos) << hopeless.out;
  EXPECT_NE(on_one_line(hopeless.out).find("foreshard search --model llama-3-70b"), std::string::npos) << hopeless.out;
  EXPECT_EQ(hopeless.out.find("iteration time"), std::string::npos);
}

TEST(Simulate, AStrategyWithoutAPlanIsAnAnswerWithTheSameKeys) {
  const JsonReader json =
      answer("simulate --model gpt3-175b --cluster dgx-a100-x64 --tp 8 --pp 64 --global-batch 64", ExitCode::Infeasible);
  for (const std::string& key : summaries::promised_keys()) EXPECT_TRUE(json.has(key)) << key;
  for (const char* key : {"gpus", "parameters", "capacity_bytes", "framework_bytes", "fits_margin_bytes"})
    EXPECT_TRUE(json.at(key).is_null()) << key << ": without a plan nobody knows it";
  EXPECT_TRUE(json.at("flops").at("model").is_null());
  EXPECT_TRUE(json.at("peak_memory_bytes").at("reserved").is_null());
  EXPECT_FALSE(json.at("feasible").as_bool());
  EXPECT_TRUE(json.at("iteration_time_s").is_null());
}

TEST(Simulate, WritesItsFilesAndPlaysASavedPlanAlike) {
  const fs::path folder = fs::temp_directory_path() / ("foreshard-simulate-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto file = [&](const char* name) { return (folder / name).string(); };
  const JsonReader first =
      answer(kSmall + "--tp 2 --pp 2 --save-plan " + file("p.plan.json") + " --trace " + file("t.json") + " --svg " +
             file("t.svg") + " --save-result " + file("r.result") + " --save-strategy " + file("s.strategy.json"));
  for (const char* name : {"p.plan.json", "t.json", "t.svg", "r.result", "s.strategy.json"})
    EXPECT_GT(fs::file_size(file(name)), 500u);
  const JsonReader again = answer("simulate --plan " + file("p.plan.json"));
  EXPECT_EQ(again.at("iteration_time_s").as_double(), first.at("iteration_time_s").as_double());
  EXPECT_EQ(again.at("tokens_per_s").as_double(), first.at("tokens_per_s").as_double());
  const Result saved = load_result(file("r.result"));
  EXPECT_EQ(saved.makespan_s, first.at("simulation").at("makespan_s").as_double());
  EXPECT_EQ(saved.plan, load_plan(file("p.plan.json")));
  Plan other = load_plan(file("p.plan.json"));
  other.costs.front().device_kind = "h100-80";
  save_plan(other, file("other.plan.json"));
  const RanLine refused = run_line("simulate --plan " + file("other.plan.json"));
  EXPECT_EQ(refused.code, ExitCode::WrongInput);
  EXPECT_NE(refused.err.find("other.plan.json: role"), std::string::npos) << refused.err;
  fs::remove_all(folder);
}

TEST(Simulate, ProgressGoesToStandardErrorAsLines) {
  const RanLine r = run_line(kSmall + "--pp 2 --json --progress json");
  EXPECT_EQ(r.code, ExitCode::Ok);
  std::istringstream lines(r.err);
  double last = 0;
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const double progress = JsonReader::parse(line, "progress").at("progress").as_double(0, 1);
    EXPECT_GE(progress, last);
    last = progress;
  }
  EXPECT_GT(count, 0);
  EXPECT_EQ(last, 1.0);
}

// The allocator is given what the saved plan acquires and releases; it rounds up, and reserves whole segments.
TEST(Simulate, SaysWhatACachingAllocatorWouldReserve) {
  const std::string path = (fs::temp_directory_path() / ("allocator" + std::to_string(getpid()) + ".plan.json")).string();
  const std::string line = kSmall + "--pp 2 --zero 1 --micro-batch 1 ";
  const JsonReader held = answer(line + "--caching-allocator --save-plan " + path).at("caching_allocator");
  const Plan plan = load_plan(path);
  fs::remove(path);
  for (const int stage : {0, 1}) {
    const auto at = static_cast<std::size_t>(stage);
    const double asked = held.at("asked_bytes").at(at).as_double(), reserved = held.at("reserved_bytes").at(at).as_double();
    EXPECT_EQ(asked, static_cast<double>(allocate_online(plan, {stage}).asked_peak.value));
    EXPECT_GE(held.at("allocated_bytes").at(at).as_double(), asked);
    EXPECT_GE(reserved, held.at("allocated_bytes").at(at).as_double());
    EXPECT_EQ(static_cast<std::int64_t>(reserved) % (2 << 20), 0);
    EXPECT_NEAR(held.at("fragmentation").at(at).as_double(), reserved / asked - 1, 1e-9);
  }
  EXPECT_NE(held.at("asked_bytes").at(0).as_double(), held.at("asked_bytes").at(1).as_double());
  EXPECT_FALSE(answer(line).has("caching_allocator"));
  const std::string text = run_line(line + "--caching-allocator").out;  // of the fullest stage
  EXPECT_NE(text.find("From PyTorch's caching allocator, stage 1, GiB per GPU\n  peak asked for "), std::string::npos) << text;
}

TEST(Simulate, TheTextSaysWhatWasSimulated) {
  const RanLine r = run_line(kSmall + "--tp 2 --pp 2 --zero 1 --recompute full");
  EXPECT_EQ(r.code, ExitCode::Ok);
  EXPECT_TRUE(r.out.starts_with("gpt2-124m on dgx-a100, 8 GPUs\ntp 2, pp 2, dp 2, ")) << r.out;
  EXPECT_NE(r.out.find("recompute full"), std::string::npos);
}

// Megatron with bf16: 2 + 4 + 12 bytes per parameter (JSON "parameters": the vocabulary padded), cuBLAS and Transformer Engine
// 20.25 MiB on Ampere, and the allocator's rounding: at most 1 MiB for each of the some 150 x 4 tensors.
TEST(Simulate, SaysWhatTheFrameworksAllocatorHolds) {
  const JsonReader json = answer(kSmall + "--dp 1 --framework megatron");
  const JsonReader held = json.at("framework_allocation");
  EXPECT_EQ(held.at("framework").as_string(), "megatron");
  const double states = 18.0 * json.at("parameters").as_double(), mib = 1024.0 * 1024.0;
  EXPECT_GE(held.at("static_bytes").at(0).as_double(), states + 20.25 * mib);
  EXPECT_LE(held.at("static_bytes").at(0).as_double(), states + 20.25 * mib + 600 * mib);
  EXPECT_GT(held.at("allocated_bytes").at(0).as_double(), held.at("static_bytes").at(0).as_double());
  EXPECT_DOUBLE_EQ(held.at("largest_bytes").as_double(),
                   held.at("reserved_bytes").at(0).as_double() + held.at("outside_bytes").as_double());
  EXPECT_TRUE(answer(kSmall + "--dp 1").at("framework_allocation").is_null());
  EXPECT_NE(run_line(kSmall + "--dp 1 --framework megatron").out.find("In megatron's own allocator, rank 0"),
            std::string::npos);
}

// One of twenty runs with Megatron takes at least 1.14 times the memory that is predicted, one at most 0.986 of it.
TEST(Simulate, SaysWhenMemoryIsCloseToTheLimit) {
  const auto with = [](const std::string& samples) {
    return "simulate --model gpt2-1.5b --cluster dgx-a100 --framework megatron --ignore-memory --seq 1024 --micro-batch " +
           samples;
  };
  const RanLine fits = run_line(with("12")), may = run_line(with("16")), not_at_all = run_line(with("20"));
  EXPECT_EQ(fits.out.find("May fit"), std::string::npos) << fits.out;
  EXPECT_NE(fits.out.find("GiB are left; one run in twenty takes at least"), std::string::npos) << fits.out;
  EXPECT_NE(may.out.find("May fit: megatron takes"), std::string::npos) << may.out;
  EXPECT_NE(not_at_all.out.find("Does not fit: megatron takes"), std::string::npos) << not_at_all.out;
  EXPECT_EQ(answer(with("16")).at("verdict").at("kind").as_string(), "may fit");
  EXPECT_TRUE(answer(with("16")).at("framework_allocation").at("close").as_bool());
  EXPECT_FALSE(answer(with("12")).at("framework_allocation").at("close").as_bool());
}

}  // namespace foreshard::simulate_test
