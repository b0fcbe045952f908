// Tables of measurements with rows that cannot be predicted.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "core/json/json.h"
#include "tests/cli/run_line.h"

namespace foreshard::refused_rows_test {

static const std::string kData = std::string(FORESHARD_SOURCE) + "/data/measured/";

// A row with a wrong cell is left out with its reason, on standard error too; the other one is predicted. The exit code says so.
TEST(RefusedRows, AWrongCellIsTheMatterOfItsRow) {
  const std::string header =
      "source,row_id,model_name,layers,hidden,ffn_hidden,heads,kv_heads,seq_len,vocab,precision,gpu,num_gpus,tp,pp,micro_batch,"
      "global_batch,measured_quantity,measured_value\n";
  const auto row = [](const std::string& hidden, const std::string& micro) {
    return "here,a,small,2," + hidden + ",256,4,4,32,128,bf16,A100-80GB,2,1,1," + micro + ",4,iter_time_s,0.002\n";
  };
  const std::string file = testing::TempDir() + "/cells.csv";
  write_file(file, header + row("\"6,144\"", "1") + row("64", "1") + row("64", "1e-06"));
  const RanLine ran = run_line("validate " + file + " --json");
  EXPECT_EQ(ran.code, ExitCode::WrongInput);
  EXPECT_EQ(ran.err,
            "foreshard: " + file +
                ":2: hidden: found \"6,144\", expected a whole number from 1 to 2,097,152; the row is left out\n" +
                "foreshard: " + file +
                ":4: micro_batch: found \"1e-06\", expected a whole number from 1 to 1,048,576; the row is left out\n");
  const JsonReader answer = JsonReader::parse(ran.out, "out");
  const auto skipped = answer.at("skipped").elements();
  ASSERT_EQ(skipped.size(), 2U);
  for (const JsonReader& row : skipped) EXPECT_EQ(row.at("reason").as_string(), "bad_cell");
  EXPECT_EQ(run_line("validate " + file).code, ExitCode::WrongInput);
  write_file(file, header + row("64", "1"));
  EXPECT_EQ(run_line("validate " + file).code, ExitCode::Ok);
}

// calibrate --runs learns from the rows that can be read, and tells the others the same way.
TEST(RefusedRows, LearningLeavesAWrongRowOut) {
  std::string text = read_file(kData + "vtrain_single.csv");
  std::istringstream lines(text);
  std::string header, first, second;
  std::getline(lines, header), std::getline(lines, first), std::getline(lines, second);
  const std::string file = testing::TempDir() + "/runs.csv", profile = testing::TempDir() + "/cells.profile.json";
  std::string wrong = second;
  wrong.replace(wrong.find(",iter_time_s,"), 13, ",iter_time_s,x");
  write_file(file, header + "\n" + first + "\n" + wrong + "\n");
  const RanLine ran = run_line("calibrate --runs " + file + " --json --save-profile " + profile);
  EXPECT_EQ(ran.code, ExitCode::WrongInput) << ran.err;
  EXPECT_NE(ran.err.find(file + ":3: measured_value: found \"x"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("learned"), std::string::npos) << ran.out;
}

}  // namespace foreshard::refused_rows_test
