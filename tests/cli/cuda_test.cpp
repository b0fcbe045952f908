// --device cuda where there is no GPU: one line that says what is missing, and exit code 3. The program itself is started, because
// it looks for the module beside itself.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "tests/cli/run_line.h"

namespace foreshard {

struct Ended {
  int code = -1;
  std::string said = {};
};

static Ended program(const std::string& words) {
  Ended ended;
  const std::string line = std::string(FORESHARD_PROGRAM) + " " + words + " 2>&1";
  FILE* pipe = popen(line.c_str(), "r");
  std::array<char, 512> part = {};
  while (fgets(part.data(), part.size(), pipe)) ended.said += part.data();
  ended.code = WEXITSTATUS(pclose(pipe));
  return ended;
}

static bool says_what_is_missing(const std::string& text) {
  for (const char* why : {"built without CUDA", "libforeshard_cuda.so is neither beside", "no NVIDIA driver",
                          "sees no NVIDIA GPU", "cannot open shared object file"})
    if (text.find(why) != std::string::npos) return true;
  return false;
}

class WithoutGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU";
  }
};

TEST_F(WithoutGpu, SelftestSaysWhatIsMissing) {
  const Ended ended = program("selftest --device cuda");
  EXPECT_EQ(ended.code, 3);
  EXPECT_TRUE(says_what_is_missing(ended.said)) << ended.said;
  EXPECT_EQ(ended.said.find('\n'), ended.said.size() - 1) << ended.said;
}

TEST_F(WithoutGpu, CalibrateSaysWhatIsMissing) {
  const Ended ended = program("calibrate --device cuda --quick");
  EXPECT_EQ(ended.code, 3);
  EXPECT_TRUE(says_what_is_missing(ended.said)) << ended.said;
}

TEST_F(WithoutGpu, RunReadsThePlanFirst) {
  const std::string plan = testing::TempDir() + "cuda.plan.json";
  const Ended lowered = program(
      "lower --model gpt2-124m --set model.n_layer=1 --set model.n_embd=32 --set model.n_head=4 "
      "--cluster dgx-a100 --gpus 1 --seq 16 --global-batch 2 --precision fp32 --save-plan " +
      plan);
  ASSERT_EQ(lowered.code, 0) << lowered.said;
  const Ended ended = program("run " + plan + " --device cuda");
  EXPECT_EQ(ended.code, 3);
  EXPECT_TRUE(says_what_is_missing(ended.said)) << ended.said;
  EXPECT_EQ(program("run missing.plan.json --device cuda").code, 1);
  std::filesystem::remove(plan);
}

TEST(WithGpu, SelftestIsRight) {
  if (!std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is no GPU";
  const Ended ended = program("selftest --device cuda --quick");
  EXPECT_EQ(ended.code, 0) << ended.said;
}

TEST(Selftest, ComparesWithTheHost) {
  const RanLine ran = run_line("selftest --device host");
  EXPECT_EQ(ran.code, ExitCode::WrongInput);
  EXPECT_NE(ran.err.find("the host is what the kernels are compared with"), std::string::npos) << ran.err;
}

}  // namespace foreshard
