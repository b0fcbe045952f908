// Measured rows, their predictions and scores.
#include <gtest/gtest.h>

#include <cmath>

#include "cli/measured_case.h"
#include "core/error.h"
#include "core/json.h"
#include "report/measured.h"
#include "report/validation.h"
#include "strategy/framework_preset.h"
#include "tests/cli/run_line.h"

namespace foreshard {

static const std::string kData = std::string(FORESHARD_SOURCE) + "/data/measured/";

static MeasuredRow row_of_175b() {
  for (const MeasuredRow& row : load_measured(kData + "korthikanti2022.csv"))
    if (row.text("model_name").find("175B") != std::string::npos && row.text("measured_quantity") == "iter_time_s") return row;
  ADD_FAILURE() << "no row of the 175B model";
  return {};
}

static ValidatedRow scored(double measured, double predicted, const std::string& gpu = "A100") {
  return {.source = "table", .gpu = gpu, .framework = "megatron", .measured = measured, .predicted = predicted, .sweep = "one"};
}

TEST(Measured, ReadsQuotesAndNamesWhatIsWrong) {
  std::string header;
  for (const std::string& column : measured_columns()) header += (header.empty() ? "" : ",") + column;
  const std::string cells = "\"a, \"\"b\"\"\",r,m,1,2,3,4,5,6,7,bf16,A100,8,1,1,1,8,iter_time_s,";
  const auto rows = parse_measured(header + "\n" + cells + "2.5\n" + cells + "OOM\n", "t.csv");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].text("source"), "a, \"b\"");
  EXPECT_EQ(rows[0].line, 2);
  EXPECT_EQ(rows[0].number("measured_value"), 2.5);
  EXPECT_TRUE(ran_out_of_memory(rows[1]));
  const auto message = [&](const std::string& text) {
    try {
      parse_measured(text, "t.csv");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(header + "\n" + cells + "fast\n"),
            "t.csv:2: measured_value: found \"fast\", expected a positive number or OOM");
  EXPECT_NE(message("source,row_id\n").find("no column \"model_name\""), std::string::npos);
  EXPECT_NE(message(header + "\na,b\n").find("2 cells"), std::string::npos);
  EXPECT_NE(message(header + "\n\"a,b\n").find("a closing quote"), std::string::npos);
}

TEST(Measured, TheRowBecomesTheConfigurationItStates) {
  const auto answer = measured_case(row_of_175b());
  const auto& question = std::get<MeasuredCase>(answer);
  const Strategy& s = question.candidates.front();
  EXPECT_EQ(s.tp, 8);
  EXPECT_EQ(s.pp, 8);
  EXPECT_EQ(s.virtual_stages, 3);
  EXPECT_EQ(s.dp * s.tp * s.pp, question.gpus);
  EXPECT_EQ(question.cluster.nodes.front().shape.gpu, "a100-80");
  EXPECT_EQ(question.quantity, Quantity::IterationTime);
}

TEST(Measured, RowsOutOfReachSayWhy) {
  const auto reason = [](const char* column, const char* value) {
    MeasuredRow row = row_of_175b();
    row.cells[column] = value;
    const auto answer = measured_case(row);
    const auto* skipped = std::get_if<SkipReason>(&answer);
    return skipped ? std::string(name_of(*skipped)) : std::string("predicted");
  };
  EXPECT_EQ(reason("notes", ""), "predicted");
  EXPECT_EQ(reason("ep", "8"), "moe");
  EXPECT_EQ(reason("framework_flags", "--multi-latent-attention"), "mla");
  EXPECT_EQ(reason("precision", "nvfp4"), "fp4");
  EXPECT_EQ(reason("layers", "unknown"), "unknown_shape");
  EXPECT_EQ(reason("tp", "unknown"), "unknown_degree");
  EXPECT_EQ(reason("global_batch", "unknown"), "unknown_batch");
  EXPECT_EQ(reason("gpu", "unknown"), "unknown_gpu");
  EXPECT_EQ(reason("pp_schedule", "ZB-2p"), "schedule");
  EXPECT_EQ(reason("offload", "optimizer to CPU"), "offload");
}

// errors +10 %, -10 %, +20 %, 0: sizes 0, .1, .1, .2 -> median .1, mean .1, 90th .1 + .7 * .1 = .17
TEST(Validation, ErrorsOfACellAndTheMeanOverCells) {
  const Validation v = validate({scored(10, 11), scored(20, 18), scored(5, 6), scored(1, 1), scored(10, 13, "H100")}, {});
  ASSERT_EQ(v.cells.size(), 2U);
  EXPECT_NEAR(v.cells[0].score.median, 0.1, 1e-12);
  EXPECT_NEAR(v.cells[0].score.mean, 0.1, 1e-12);
  EXPECT_NEAR(v.cells[0].score.p90, 0.17, 1e-12);
  EXPECT_NEAR(v.time.mean_of_cells, (0.1 + 0.3) / 2, 1e-12);
}

// Measured 1 < 2 < 3; predicted 2 < 1.5 is wrong for (1, 2) only: 2 of 3 pairs. The best predicted one took 2 instead of 1.
TEST(Validation, OrderAndRegretInsideASweep) {
  const Validation v = validate({scored(1, 2), scored(2, 1.5), scored(3, 4)}, {});
  EXPECT_EQ(v.pairs, 3);
  EXPECT_NEAR(v.order, 2.0 / 3.0, 1e-12);
  EXPECT_NEAR(v.regret, 1.0, 1e-12);
  EXPECT_NEAR(v.rank, 0.5, 1e-12);  // ranks 1,0,2 against 0,1,2: 1 - 6 * 2 / (3 * 8)
}

TEST(Validation, VerdictsCountBothKindsOfMiss) {
  ValidatedRow out = scored(0, 1), ran = scored(1, 1);
  out.ran_out = true, out.checks_memory = ran.checks_memory = true;
  ValidatedRow missed = out, refused = ran;
  out.fits = false, missed.fits = true, ran.fits = true, refused.fits = false;
  const Verdicts t = validate({out, missed, ran, refused}, {}).verdicts;
  EXPECT_EQ(t.true_positive, 1);
  EXPECT_EQ(t.false_negative, 1);
  EXPECT_EQ(t.true_negative, 1);
  EXPECT_EQ(t.false_positive, 1);
  EXPECT_DOUBLE_EQ(t.right(), 0.5);
}

TEST(Presets, EveryFrameworkHasAFileThatSaysWhereItsNumbersComeFrom) {
  for (const std::string& name : framework_names()) {
    const FrameworkPreset& preset = framework_preset(name);
    EXPECT_FALSE(preset.summary.empty()) << name;
    EXPECT_FALSE(preset.source.empty()) << name;
  }
  EXPECT_EQ(framework_preset("foreshard").host_per_kernel, Seconds{});
  EXPECT_THROW(parse_framework_preset(R"({"summary": "", "source": "", "hosts": 1})", "x", "x.json"), Error);
}

// Limits are about a quarter above today's medians: a change that worsens a source by more fails. Of the rows whose
// configuration is complete everything is scored. docs/validation.md has the table, docs/cost-model.md says which constants
// were fitted on which of these rows.
TEST(ValidateVerb, PublishedTablesStayWithinTheirLimits) {
  struct Limit {
    const char* file;
    double median, scored;
  };
  for (const Limit& limit :
       {Limit{"megatron_sc21_table1.csv", 0.035, 1}, Limit{"korthikanti2022.csv", 0.06, 1}, Limit{"llm_foundry.csv", 0.06, 1},
        Limit{"dgxc.csv", 0.07, 1}, Limit{"zero_bubble.csv", 0.06, 0.4}, Limit{"vtrain_single.csv", 0.10, 1},
        Limit{"bert_dle.csv", 0.08, 1}, Limit{"torchtitan.csv", 0.13, 1}}) {
    const RanLine ran = run_words({"validate", kData + limit.file, "--json"});
    ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
    const JsonReader json = JsonReader::parse(ran.out, limit.file);
    EXPECT_LE(json.at("overall").at("time").at("median").as_double(), limit.median) << limit.file;
    EXPECT_GE(json.at("scored_fraction").as_double(), limit.scored) << limit.file;
  }
}

}  // namespace foreshard
