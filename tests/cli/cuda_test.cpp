// --device cuda where there is no GPU: one line that says what is missing, and exit code 3. The program itself is started, because
// it looks for the module beside itself.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "exec/nccl/nccl.h"
#include "tests/cli/run_line.h"
#include "tests/cli/session.h"

namespace foreshard::cuda_test {

struct Ended {
  int code = -1;
  std::string said = {};
};

static Ended program(const std::string& words, const std::string& environment = "") {
  Ended ended;
  const std::string line = "env " + environment + " " FORESHARD_PROGRAM " " + words + " 2>&1";
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

// The version that a run would use; 0: none.
static int newest_nccl() {
  try {
    return nccl::open_library([](const char* name) -> const char* { return std::getenv(name); })->version();
  } catch (const DeviceError&) {
    return 0;
  }
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

// With one GPU one rank, whose collectives are copies: that NCCL is there, takes the calls and ends.
TEST(WithGpu, NcclIsRight) {
  if (!std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is no GPU";
  if (newest_nccl() == 0) GTEST_SKIP() << "there is no NCCL";
  const Ended ended = program("selftest --device cuda --quick --nccl");
  EXPECT_EQ(ended.code, 0) << ended.said;
}

// Two ranks at least, on one GPU if need be.
TEST(WithGpu, NcclIsRightWithTwoRanksOnAGpu) {
  if (!std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is no GPU";
  if (newest_nccl() < 23003) GTEST_SKIP() << "NCCL 2.30.3 or later lets ranks share a GPU";
  const Ended ended = program("selftest --device cuda --quick --nccl --all", "NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_MAX_CTAS=4");
  EXPECT_EQ(ended.code, 0) << ended.said;
  EXPECT_NE(ended.said.find(" ranks: all_reduce fp32"), std::string::npos) << ended.said;
}

// A word that no comparison has in its name.
TEST(Selftest, SaysThatNothingIsCompared) {
  const std::string said = run_in_shell(FORESHARD_TWIN_PROGRAM " selftest --only nonsense 2>&1", ".");
  EXPECT_NE(said.find("--only: found \"nonsense\", expected part of the name of a comparison"), std::string::npos) << said;
}

TEST(Selftest, ComparesWithTheHost) {
  const RanLine ran = run_line("selftest --device host");
  EXPECT_EQ(ran.code, ExitCode::WrongInput);
  EXPECT_NE(ran.err.find("the host is what the kernels are compared with"), std::string::npos) << ran.err;
}

}  // namespace foreshard::cuda_test
