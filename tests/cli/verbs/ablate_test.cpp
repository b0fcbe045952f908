// foreshard ablate: rows of a chain, each a sound plan, and the bytes that they send.
#include <gtest/gtest.h>

#include "cli/parts/ablation.h"
#include "core/json/json.h"
#include "tests/cli/run_line.h"

namespace foreshard::ablate_test {

namespace {

const std::string kTiny = "ablate --model bert-large --cluster dgx-a100 --set model.num_hidden_layers=2 --seq 128 ";

}  // namespace

TEST(Ablate, EveryRowIsASoundPlan) {
  const RanLine ran = run_line(kTiny + "--json");
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  const JsonReader json = JsonReader::parse(ran.out, "out");
  ASSERT_EQ(json.at("steps").size(), 4U);
  for (const JsonReader& row : json.at("steps").elements()) {
    EXPECT_TRUE(row.at("feasible").as_bool());
    EXPECT_TRUE(row.at("sound").as_bool());
    EXPECT_GT(row.at("iteration_time_s").as_double(), 0);
    EXPECT_GT(row.at("peak_memory_bytes").as_int(), 0);
  }
  EXPECT_EQ(json.at("steps").at(std::size_t{0}).at("name").as_string(), "none");
  EXPECT_EQ(json.at("steps").at(std::size_t{0}).at("settings").at("tp").as_string(), "8");
  EXPECT_EQ(json.at("steps").at(std::size_t{0}).at("speed_up").as_double(), 1);
  double product = 1;
  for (std::size_t i = 1; i < json.at("steps").size(); ++i) product *= json.at("steps").at(i).at("factor").as_double();
  EXPECT_NEAR(product, json.at("steps").at(json.at("steps").size() - 1).at("speed_up").as_double(), 1e-9);
  const auto sent = [&](std::size_t row) { return json.at("steps").at(row).at("sent_bytes_per_gpu").as_int(); };
  EXPECT_EQ(sent(1), sent(0));  // later, not less
  EXPECT_LT(sent(2), sent(1));
  EXPECT_LT(sent(3), sent(1));
}

// Of 2 tensor-parallel ranks each sends an all-reduce's bytes once. S = 2 samples x 128 tokens x 768 values of 2 bytes: 2 of the forward
// and 2 of the backward of each of 2 layers, one of the token lookup, one before the vocabulary; and 4 + 8 bytes of each token of the loss.
TEST(Ablate, BytesThatARankSends) {
  const RanLine ran = run_line(
      "ablate --model gpt2-124m --cluster dgx-a100 --set model.n_layer=2 --seq 128 --tp 2 --dp 1 --micro-batch 2 --step whole "
      "--step parts:parts=2 --json");
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  const std::int64_t s = 2 * 128 * 768 * 2;
  for (const JsonReader& row : JsonReader::parse(ran.out, "out").at("steps").elements())
    EXPECT_EQ(row.at("sent_bytes_per_gpu").as_int(), (2 * 4 + 2) * s + 12 * 2 * 128);
}

TEST(Ablate, StepsAddUp) {
  const RanLine ran = run_line(kTiny +
                               "--tp 2 --dp 1 --micro-batch 4 --step whole --step overlap:overlap=grad,p2p,tp,recompute=full "
                               "--step parts:parts=2,4 --json");
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  const auto rows = JsonReader::parse(ran.out, "out").at("steps").elements();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at("strategy").at("recompute").at("kind").as_string(), "none");
  EXPECT_EQ(rows[1].at("settings").at("overlap").as_string(), "grad,p2p,tp");
  EXPECT_EQ(rows[2].at("strategy").at("recompute").at("kind").as_string(), "full");
  EXPECT_EQ(rows[2].at("strategy").at("parts").as_string(), "2,4");
}

TEST(Ablate, WhatCannotBeIsARowWithItsReason) {
  const RanLine ran = run_line(kTiny + "--tp 2 --dp 1 --micro-batch 2 --step whole --step cut:parts=4");
  EXPECT_EQ(ran.code, ExitCode::Ok);
  EXPECT_NE(on_one_line(ran.out).find("cut: 4 parts do not divide the 2 samples of a micro-batch"), std::string::npos)
      << ran.out;
  const RanLine none = run_line(kTiny + "--tp 3 --step whole");
  EXPECT_EQ(none.code, ExitCode::Infeasible);
}

TEST(Ablate, AStepThatChangesNothingIsSaid) {
  const RanLine ran = run_line(kTiny + "--tp 1 --micro-batch 4 --step whole --step cut:parts=4");
  EXPECT_NE(ran.err.find("step cut changes nothing here"), std::string::npos) << ran.err;
}

TEST(Ablate, WrongSteps) {
  const auto error = [](const std::string& step) { return run_line(kTiny + "--step a --step " + step).err; };
  EXPECT_EQ(error(":parts=2"), "foreshard: command line: --step: found \":parts=2\", expected NAME:path=value,path=value\n");
  EXPECT_EQ(error("b:2"), "foreshard: command line: --step: found \"b:2\", expected NAME:path=value,path=value\n");
  EXPECT_EQ(error("a:parts=2"), "foreshard: command line: --step: found \"a:parts=2\", expected each name once\n");
  EXPECT_NE(error("b:prts=2").find("--step b: prts: found an unknown option, expected \"parts\""), std::string::npos);
}

}  // namespace foreshard::ablate_test
