// foreshard run that is stopped by a signal: it ends after the step under way with a checkpoint, and whoever goes on from that has the bits of a
// training that nobody stopped.
#include "tests/cli/processes.h"

namespace foreshard::run_stop_test {
namespace {

class RunStop : public Processes {
 protected:
  // Thirty-two micro-batches a replica: a step takes long beside the moments at which signals come.
  std::string split() const override { return "--gpus 8 --dp 2 --global-batch 64 --micro-batch 1"; }

  // Waits until process 0 has told of a step (the caller removed an older err.0), then a little more, so that the signal comes amid the next one.
  static std::string after_a_step(const std::string& milliseconds) {
    return "for i in $(seq 2000); do grep -qs '\"step\"' err.0 && break; sleep 0.02; done; sleep 0." + milliseconds + "\n";
  }
  static std::string threads(const std::string& options) {
    return "foreshard run p.plan.json --launcher none --patience 60 --progress json " + options + " >out.0 2>err.0 & pid0=$!\n";
  }
  // Steps that a checkpoint says were done.
  int step_of(const std::string& name) const {
    const std::string told = shell("head -c 4000 " + name + " | grep -ao '\"step\": *\"[0-9]*' | grep -o '[0-9]*$'");
    return told.find_first_not_of("0123456789\n") == std::string::npos && !told.empty() ? std::stoi(told) : -1;
  }
  // Two steps more from `kept`, and the same number of steps at once, are the same file to the byte: weights, moments, step, samples.
  void expect_same_bits(const std::string& rest) const {
    const int done = step_of("kept");
    ASSERT_GT(done, 0) << file("err.0");
    ASSERT_LT(done, 2000);
    const std::string resumed = shell(rest);
    const std::string whole =
        shell("foreshard run p.plan.json --launcher none --patience 60 --progress none --save whole --steps " +
              std::to_string(done + 2));
    EXPECT_EQ(step_of("whole"), done + 2) << whole;
    EXPECT_EQ(shell("cmp rest whole && echo equal"), "equal\n") << resumed << whole;
  }
};

TEST_F(RunStop, ThreadsSaveAtTheEndOfTheStepAndGoOnToTheSameBits) {
  for (const char* signal : {"TERM", "INT"})
    for (const char* every : {"", "--save-every 1000000"}) {
      SCOPED_TRACE(std::string(signal) + " " + every);
      shell("rm -f kept rest whole err.0");
      const std::string said =
          shell("trap 'kill -9 $pid0 2>/dev/null' EXIT\n" + threads("--steps 2000 --save kept " + std::string(every)) +
                after_a_step("013") + "kill -" + signal + " $pid0; wait $pid0; echo code $?");
      EXPECT_EQ(said, "code 130\n") << file("err.0");
      const std::string step = std::to_string(step_of("kept"));
      EXPECT_NE(file("err.0").find("foreshard: stopped after step " + step + "; kept holds it: --resume kept goes on\n"),
                std::string::npos)
          << file("err.0");
      EXPECT_NE(file("out.0").find("after " + step + " steps"), std::string::npos) << file("out.0");
      expect_same_bits(
          "foreshard run p.plan.json --launcher none --patience 60 --progress none --steps 2 --resume kept --save rest");
    }
}

// A terminal that is closed ends what was started from it: the run saves as after a SIGTERM, also when whoever read its output has ended, too.
TEST_F(RunStop, AClosedTerminalIsARequestToStop) {
  const std::string said = shell(
      "trap 'kill -9 $pid0 2>/dev/null' EXIT\nmkfifo pipe; sleep 1000 <pipe & reader=$!\n"
      "foreshard run p.plan.json --launcher none --patience 60 --progress json --steps 2000 --save kept --loss-log steps >pipe "
      "2>&1 & pid0=$!\n"
      "for i in $(seq 2000); do grep -qs '^1,' steps && break; sleep 0.02; done\n"
      "kill -STOP $pid0; kill -HUP $pid0; kill -9 $reader; wait $reader; kill -CONT $pid0; wait $pid0; echo code $?");
  EXPECT_TRUE(said.ends_with("code 130\n")) << said;
  EXPECT_GT(step_of("kept"), 0);
}

TEST_F(RunStop, NohupStays) {
  const std::string said =
      shell("trap 'kill -9 $pid0 2>/dev/null' EXIT; trap '' HUP\n" + threads("--steps 2000 --save kept") + after_a_step("0") +
            "kill -HUP $pid0; n=$(grep -c '\"step\"' err.0)\n"
            "for i in $(seq 2000); do [ $(grep -c '\"step\"' err.0) -gt $((n + 3)) ] && break; sleep 0.02; done\n"
            "kill -0 $pid0 && echo trains; kill -TERM $pid0; wait $pid0; echo code $?");
  EXPECT_EQ(said, "trains\ncode 130\n") << file("err.0");
}

// To one process only, whichever, or to all: they agree on the step after which they stop.
TEST_F(RunStop, FourProcessesSaveAtTheEndOfTheSameStepAndGoOnToTheSameBits) {
  for (const char* to : {"$pid0", "$pid2", "$pid0 $pid1 $pid2 $pid3"}) {
    SCOPED_TRACE(to);
    shell("rm -f kept rest whole err.0");
    const std::string said =
        shell("trap 'kill -9 $pid0 $pid1 $pid2 $pid3 2>/dev/null' EXIT\n" +
              start("RANK", "WORLD_SIZE", 4, port(), "--steps 2000 --save kept --progress json") + after_a_step("017") +
              "kill -TERM " + to + "; for r in 0 1 2 3; do eval wait \\$pid$r; echo code $?; done");
    EXPECT_EQ(said, "code 130\ncode 130\ncode 130\ncode 130\n") << file("err.0") << file("err.2");
    EXPECT_NE(file("err.0").find("stopped after step " + std::to_string(step_of("kept"))), std::string::npos) << file("err.0");
    expect_same_bits(start("RANK", "WORLD_SIZE", 4, port(), "--steps 2 --resume kept --save rest") + "wait; cat err.0");
  }
}

// Whoever does not want to wait for the step says so again. Here it cannot end: the other process is stopped.
TEST_F(RunStop, TheSecondSignalEndsAtOnce) {
  const std::string said =
      shell("trap 'kill -9 $pid0 $pid1 2>/dev/null' EXIT\n" +
            start("RANK", "WORLD_SIZE", 2, port(), "--steps 2000 --save kept --progress json") + after_a_step("0") +
            "kill -STOP $pid1; sleep 0.2; kill -TERM $pid0\n"
            "for i in $(seq 2000); do grep -qs 'foreshard: stops after this step' err.0 && break; sleep 0.02; done\n"
            "sleep 1; kill -TERM $pid0; wait $pid0; echo code $?");
  EXPECT_NE(said.find("code 143\n"), std::string::npos) << said << file("err.0");
  EXPECT_FALSE(fs::exists(folder_ / "kept"));
}

// `timeout` sends its signal to the process and to its group, at nearly the same moment: one request.
TEST_F(RunStop, TwoSignalsAtOnceAreOne) {
  const std::string said =
      shell("trap 'kill -9 $pid0 2>/dev/null' EXIT\n" + threads("--steps 2000 --save kept") + after_a_step("0") +
            "kill -TERM $pid0; kill -INT $pid0; kill -TERM $pid0; wait $pid0; echo code $?");
  EXPECT_EQ(said, "code 130\n");
  EXPECT_GT(step_of("kept"), 0) << file("err.0");
}

// Without a file there is nothing to keep; the result is that of the steps done.
TEST_F(RunStop, WithoutAFileItSaysThatNothingIsKept) {
  const std::string said = shell("trap 'kill -9 $pid0 2>/dev/null' EXIT\n" + threads("--steps 2000 --json") +
                                 after_a_step("0") + "kill -TERM $pid0; wait $pid0; echo code $?");
  EXPECT_EQ(said, "code 130\n");
  const JsonReader json = JsonReader::parse(file("out.0"), "out");
  EXPECT_TRUE(json.at("stopped").as_bool());
  EXPECT_LT(json.at("steps").size(), 2000U);
  EXPECT_NE(file("err.0").find("foreshard: stopped after step " + std::to_string(json.at("steps").size()) +
                               "; nothing is kept: --save FILE was not given\n"),
            std::string::npos)
      << file("err.0");
}

// A process that is asked to stop and killed while it saves, as batch systems do: the file is the earlier one or the new one, whole.
TEST_F(RunStop, AKillDuringTheLastSaveLeavesAWholeCheckpoint) {
  int resumed = 0;
  for (int moment = 0; moment < 6; ++moment) {
    shell("rm -f kept; trap 'kill -9 $pid0 2>/dev/null' EXIT\n" + threads("--steps 2000 --save kept --save-every 1") +
          "for i in $(seq 2000); do [ -e kept ] && break; sleep 0.02; done\nkill -TERM $pid0; sleep 0.0" +
          std::to_string(2 * moment) + "; kill -9 $pid0; wait $pid0");
    ASSERT_TRUE(fs::exists(folder_ / "kept")) << file("err.0");
    const std::string told =
        shell("foreshard run p.plan.json --launcher none --patience 60 --progress none --steps 1 --resume kept");
    EXPECT_EQ(told.find("[exit"), std::string::npos) << told;
    resumed += step_of("kept") > 0 ? 1 : 0;
  }
  EXPECT_EQ(resumed, 6);
}

}  // namespace
}  // namespace foreshard::run_stop_test
