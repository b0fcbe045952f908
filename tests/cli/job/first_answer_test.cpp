// A model and a cluster without degrees: where data parallelism alone does not fit, the answer is that of a strategy that fits.
#include "cli/job/first_answer.h"

#include <gtest/gtest.h>

#include <regex>

#include "cli/job/job.h"
#include "tests/cli/run_line.h"

namespace foreshard::first_answer_test {

static const std::string kLarge = "simulate --clock light --model llama-3-8b --cluster dgx-h100 --seq 8192";

// The options in "this is the answer for OPTIONS, which fits".
static std::string named_options(const std::string& note) {
  std::smatch found;
  return std::regex_search(note, found, std::regex("this is the answer for (.*), which (may fit|fits)")) ? found[1].str() : "";
}

TEST(FirstAnswer, IsThatOfTheOptionsThatAreNamed) {
  for (const std::string framework :
       {"", " --framework megatron", " --framework torchtitan", " --set model.num_hidden_layers=36"}) {
    const RanLine first = run_line(kLarge + framework);
    EXPECT_EQ(first.code, ExitCode::Ok) << first.err;
    const std::string options = named_options(first.err);
    EXPECT_FALSE(options.empty()) << first.err;
    const RanLine same = run_line(kLarge + framework + " " + options + " --global-batch 8");
    EXPECT_EQ(same.code, ExitCode::Ok) << same.err;
    EXPECT_EQ(same.out, first.out) << options;
    EXPECT_EQ(same.err.find("no degrees"), std::string::npos) << same.err;
  }
}

// Whoever gives a degree, a ZeRO stage or an offload, or says --as-given, gets that strategy.
TEST(FirstAnswer, LeavesAloneWhatIsAsked) {
  for (const std::string asked : {"--as-given", "--dp 8", "--tp 1", "--pp 1", "--zero 0", "--set strategy.dp=8"}) {
    const RanLine ran = run_line(kLarge + " " + asked);
    EXPECT_EQ(ran.code, ExitCode::Infeasible) << asked;
    EXPECT_EQ(ran.err.find("no degrees"), std::string::npos) << asked << ran.err;
    EXPECT_NE(ran.out.find("Does not fit"), std::string::npos) << asked << ran.out;
  }
  const RanLine played = run_line(kLarge + " --ignore-memory");
  EXPECT_EQ(played.code, ExitCode::Ok);
  EXPECT_NE(played.out.find("dp 8, global batch 8"), std::string::npos) << played.out;
}

TEST(FirstAnswer, KeepsWhatIsGiven) {
  const RanLine ran = run_line(kLarge + " --micro-batch 2 --recompute full --global-batch 32");
  EXPECT_EQ(ran.code, ExitCode::Ok) << ran.err;
  EXPECT_NE(ran.out.find("micro batch 2, global batch 32"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("recompute full"), std::string::npos) << ran.out;
}

TEST(FirstAnswer, OfABatchThatDataParallelismAloneDoesNotDivide) {
  const RanLine ran = run_line("simulate --clock light --model gpt2-355m --cluster dgx-a100-x2 --seq 512 --global-batch 24");
  EXPECT_EQ(ran.code, ExitCode::Ok) << ran.err;
  EXPECT_NE(ran.err.find("is refused (global batch 24 is not a multiple of micro-batch 1 x dp 16"), std::string::npos)
      << ran.err;
  EXPECT_NE(ran.out.find("global batch 24"), std::string::npos) << ran.out;
}

TEST(FirstAnswer, IsTheGivenOneWhereItFits) {
  const RanLine ran = run_line("simulate --clock light --model gpt2-124m --cluster dgx-a100 --seq 512");
  EXPECT_EQ(ran.code, ExitCode::Ok);
  EXPECT_EQ(ran.err, "");
}

// Nothing fits on two small GPUs: the answer is about the strategy as it was given.
TEST(FirstAnswer, IsTheGivenOneWhereNothingFits) {
  const RanLine ran = run_line("simulate --clock light --model llama-3-70b --cluster workstation-rtx4090 --gpus 2 --seq 4096");
  EXPECT_EQ(ran.code, ExitCode::Infeasible);
  EXPECT_NE(ran.out.find("Does not fit"), std::string::npos) << ran.out;
}

}  // namespace foreshard::first_answer_test
