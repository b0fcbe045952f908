// Measured rows, their predictions and scores.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "core/base/error.h"
#include "core/json/json.h"
#include "strategy/cost/operator_style.h"
#include "tests/changed_text.h"
#include "tests/cli/run_line.h"
#include "tests/how_many.h"
#include "validation/measured.h"
#include "validation/measured_case.h"
#include "validation/measured_prediction.h"
#include "validation/validation.h"
#include "validation/validation_text.h"

namespace foreshard::validate_test {

static const std::string kData = std::string(FORESHARD_SOURCE) + "/data/measured/";

static MeasuredRow row_of_175b() {
  for (const MeasuredRow& row : load_measured(kData + "korthikanti2022.csv"))
    if (row.text("model_name").find("175B") != std::string::npos && row.text("measured_quantity") == "iter_time_s") return row;
  ADD_FAILURE() << "no row of the 175B model";
  return {};
}

// What the row of the 175B model with other cells asks for.
static MeasuredCase asked(const std::map<std::string, std::string>& cells) {
  MeasuredRow row = row_of_175b();
  for (const auto& [column, text] : cells) row.cells[column] = text;
  return std::get<MeasuredCase>(measured_case(row));
}

static ValidatedRow scored(double measured, double predicted, const std::string& gpu = "A100") {
  return {.source = "table", .gpu = gpu, .framework = "megatron", .measured = measured, .predicted = predicted, .sweep = "one"};
}

// nanotron's figure divides 6 N + 12 L h s FLOPs per token, with the tied table once for each end of a pipeline, its log what we count: by hand
// 11.28 and 9.66 GFLOP for 1.34B on two stages, 9.66 on one.
TEST(Measured, TheMfuOfAFigureAndTheTeraflopsOfItsLog) {
  int checked = 0;
  for (const MeasuredRow& row : load_measured(kData + "nanotron.csv")) {
    if (row.text("measured_quantity") != "mfu" || row.text("layers") != "16" || row.text("num_gpus") != "8") continue;
    for (const char* pp : {"1", "2"}) {
      const auto predicted = [&](const char* quantity) {
        MeasuredRow other = row;
        other.cells["measured_quantity"] = quantity, other.cells["pp"] = pp, other.cells["dp"] = "unknown";
        other.cells["zero_stage_or_fsdp"] = "zero1", other.cells["pp_schedule"] = "1F1B";
        return Predictor().predict(std::get<MeasuredCase>(measured_case(other))).value;
      };
      const double share = predicted("mfu") / 100 * 989.4 / predicted("tflops_per_gpu");
      EXPECT_NEAR(share, *pp == '2' ? 1.167 : 1.0, 0.003) << row.text("row_id");
      ++checked;
    }
  }
  EXPECT_EQ(checked, 2);
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
  const auto message = [&](const std::string& text) { return error_of([&] { parse_measured(text, "t.csv"); }); };
  const auto fast = parse_measured(header + "\n" + cells + "fast\n", "t.csv");  // wrong is this row, not the table
  EXPECT_EQ(error_of([&] { expect_measured(fast.at(0)); }),
            "t.csv:2: measured_value: found \"fast\", expected a number from 1e-12 to 1e+15, or OOM");
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

// What a row says of its run's environment picks the preset; the framework that it names stays its cell's.
TEST(Measured, FlagsOfTheRunPickThePreset) {
  const auto with = [](const char* flags) { return asked({{"framework", "megatron-deepspeed"}, {"framework_flags", flags}}); };
  EXPECT_EQ(with("").framework, "megatron-deepspeed");
  EXPECT_EQ(with("CUDA_LAUNCH_BLOCKING=0").framework, "megatron-deepspeed");
  const MeasuredCase blocking = with("NCCL_ASYNC_ERROR_HANDLING=1 CUDA_LAUNCH_BLOCKING=1");
  EXPECT_EQ(blocking.framework, "megatron-deepspeed-blocking");
  EXPECT_EQ(blocking.stack, "megatron-deepspeed");
}

TEST(Measured, PlainFsdpUnderTheCompilerHasAPreset) {
  const MeasuredCase question = asked({{"framework", "fsdp (PyTorch, torch.compile)"},
                                       {"tp", "1"},
                                       {"pp", "1"},
                                       {"vpp", "1"},
                                       {"dp", row_of_175b().text("num_gpus")},
                                       {"zero_stage_or_fsdp", "hsdp (shard in the node, replicate between)"}});
  EXPECT_EQ(question.framework, "fms-fsdp");
  EXPECT_EQ(std::ranges::count(question.assumed, "framework"), 0);
  EXPECT_EQ(question.candidates.front().zero.group, 8);
}

// Megatron's runs of 2020 and early 2021 wait for tensor-parallel sums of gradients, those until 2022 split transfers; an A100 of 2020 had
// 40 GB.
TEST(Measured, TheSourceOfARowDatesIt) {
  const auto of = [](const char* source, const char* gpu) {
    return asked({{"framework", "megatron"}, {"source", source}, {"gpu", gpu}});
  };
  const MeasuredCase first = of("Megatron-LM README 2020 (arXiv:1909.08053 follow-up)", "A100 (DGX A100)");
  EXPECT_EQ(first.framework, "megatron-2020");
  EXPECT_EQ(first.stack, "megatron");
  EXPECT_EQ(first.cluster.nodes.front().shape.gpu, "a100-40");
  EXPECT_FALSE(first.candidates.front().communication.overlap->tp);
  const MeasuredCase second = of("Megatron-LM SC'21 Table 1", "A100-80GB");
  EXPECT_EQ(second.framework, "megatron-2020");
  EXPECT_EQ(second.cluster.nodes.front().shape.gpu, "a100-80");
  const MeasuredCase later = of("Korthikanti et al. 2022 (arXiv:2205.05198)", "A100 (DGX A100)");
  EXPECT_EQ(later.framework, "megatron-2022");
  EXPECT_EQ(later.cluster.nodes.front().shape.gpu, "a100-80");
  EXPECT_TRUE(later.candidates.front().communication.overlap->tp);
}

// Megatron v1.1.5 has no fused kernels in these runs, and keeps the inputs of layers in host memory.
TEST(Measured, TheOldBranchKeepsInputsInHostMemory) {
  const MeasuredCase question = asked({{"framework", "megatron-deepspeed"},
                                       {"pp", "1"},
                                       {"vpp", "1"},
                                       {"dp", "8"},
                                       {"notes", "'Megatron + Deepspeed ZeRO (old branch)' / 'Performance'"},
                                       {"offload", "checkpoint-in-cpu"}});
  EXPECT_EQ(question.framework, "megatron-deepspeed-2020");
  EXPECT_EQ(question.stack, "megatron-deepspeed");
  EXPECT_EQ(question.candidates.front().offload.activations, OffloadedActivations::Inputs);
  EXPECT_EQ(question.candidates.front().offload.optimizer, Space::Device);
}

// MLPerf's runs with adapters: all drop out inputs of adapters, some keep inputs of the activation in 8 bits. The flag has two names.
TEST(Measured, RunsWithAdaptersHaveTheirKernels) {
  const auto with = [](const char* model, const char* flags) {
    return asked({{"framework", "nemo"}, {"model_name", model}, {"framework_flags", flags}});
  };
  EXPECT_EQ(with("GPT-3 175B", "FP8_DPA=1").framework, "nemo");
  EXPECT_EQ(with("Llama-2-70B LoRA r16", "FP8_DPA=1").framework, "nemo-lora");
  EXPECT_EQ(with("Llama-2-70B LoRA r16", "FP8_ACTIVATION=False").framework, "nemo-lora");
  EXPECT_EQ(with("Llama-2-70B LoRA r16", "FP8_ACTIVATION=True FP8_DPA=1").framework, "nemo-lora-fp8-inputs");
  EXPECT_EQ(with("Llama-2-70B LoRA r16", "FP8_DPA=1 FP8_ACT=1").stack, "nemo");
  EXPECT_EQ(with("Llama-2-70B LoRA r16", "FP8_DPA=1 FP8_ACT=1").framework, "nemo-lora-fp8-inputs");
}

// Current scaling has a pass for the largest magnitude, scales of blocks do not.
TEST(Measured, TheScalingOfMegatronBridgePicksThePreset) {
  const auto with = [](const char* precision) { return asked({{"framework", "megatron-bridge"}, {"precision", precision}}); };
  EXPECT_EQ(with("fp8-cs").framework, "megatron-bridge-current");
  EXPECT_EQ(with("fp8 (current scaling)").framework, "megatron-bridge-current");
  EXPECT_EQ(with("fp8-cs").stack, "megatron-bridge");
  EXPECT_EQ(with("mxfp8").framework, "megatron-bridge");
  EXPECT_EQ(with("fp8-mx / blockwise").framework, "megatron-bridge");
  EXPECT_EQ(with("bf16").framework, "megatron-bridge");
}

// The zero-bubble paper's tables of zb-v are in its arXiv version alone; the others were measured with an older Megatron-LM.
TEST(Measured, TheTableOfARowPicksTheRelease) {
  const auto of = [](const char* table) { return asked({{"framework", "megatron-zero-bubble"}, {"table_or_url", table}}); };
  EXPECT_EQ(of("arXiv:2401.10241v1 Table 6 (full text)").framework, "megatron-zero-bubble");
  EXPECT_EQ(of("arXiv:2401.10241v1 Table 7 (full text)").framework, "megatron-zero-bubble");
  const MeasuredCase older = of("arXiv:2401.10241v1 Table 4 (full text)");
  EXPECT_EQ(older.framework, "megatron-zero-bubble-2023-09");
  EXPECT_EQ(older.stack, "megatron-zero-bubble");
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
  EXPECT_EQ(reason("ep", "8"), "unknown_experts");
  EXPECT_EQ(reason("framework_flags", "--multi-latent-attention"), "mla");
  EXPECT_EQ(reason("precision", "mxfp4"), "fp4");
  EXPECT_EQ(reason("precision", "int4"), "precision");
  EXPECT_EQ(reason("model_name", "Llama-2-70B LoRA"), "lora");
  EXPECT_EQ(reason("notes", "tokenizer of Mixtral-8x7B"), "predicted");
  EXPECT_EQ(reason("pp_schedule", "DualPipeV"), "predicted");
  EXPECT_EQ(reason("pp_schedule", "a schedule of ours"), "schedule");
  EXPECT_EQ(reason("layers", "unknown"), "unknown_shape");
  EXPECT_EQ(reason("tp", "unknown"), "unknown_degree");
  EXPECT_EQ(reason("global_batch", "unknown"), "unknown_batch");
  EXPECT_EQ(reason("gpu", "unknown"), "unknown_gpu");
  EXPECT_EQ(reason("gpu", "RTX 3090 Ti 24GB"), "unknown_gpu");
  EXPECT_EQ(reason("gpu", "RTX 3090 24GB"), "predicted");
  EXPECT_EQ(reason("pp_schedule", "ZB-3p"), "schedule");
  EXPECT_EQ(reason("offload", "optimizer to CPU"), "offload");
}

// What moves over PCIe takes time and leaves room on the device.
TEST(Measured, HostMemoryIsPartOfTheQuestion) {
  int hosted = 0;
  for (const MeasuredRow& row : load_measured(kData + "llmq.csv")) {
    const auto answer = measured_case(row);
    ASSERT_TRUE(std::holds_alternative<MeasuredCase>(answer)) << row.where();
    const auto& question = std::get<MeasuredCase>(answer);
    EXPECT_EQ(question.offload.inputs, row.mentions("offload", "offload-residual")) << row.where();
    if (row.text("row_id") != "llmq-4090x1-14B-fp8" || question.quantity != Quantity::IterationTime) continue;
    ++hosted;
    MeasuredCase plain = question;
    plain.offload = {}, plain.candidates.front().offload = {};
    Predictor predictor;
    const Prediction with = predictor.predict(question), without = predictor.predict(plain);
    EXPECT_GT(with.value, 1.02 * without.value);  // most of the copies are hidden
    EXPECT_TRUE(with.fits);
    EXPECT_FALSE(without.fits);
  }
  EXPECT_EQ(hosted, 1);
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

// Three rows are too few for an interval: none is said, and no share of the rows inside it; one that was given beforehand stays.
TEST(Validation, FewRowsSayNoIntervalOfTheirOwn) {
  std::vector<ValidatedRow> rows = {scored(10, 11), scored(20, 18), scored(5, 6)};
  const Validation none = validate(rows, {});
  EXPECT_EQ(none.time.coverage90, std::nullopt);
  EXPECT_NE(validation_text(none).find("too few rows for an interval"), std::string::npos) << validation_text(none);
  EXPECT_NE(validation_rows_text(none).find("90 % interval -\n"), std::string::npos) << validation_rows_text(none);
  EXPECT_NE(validation_json(none, false).find("\"coverage90\": null"), std::string::npos);
  for (ValidatedRow& row : rows) row.interval.low = row.predicted * 0.9, row.interval.high = row.predicted * 1.05;
  // 9.9 to 11.55 holds 10, 16.2 to 18.9 does not hold 20, 5.4 to 6.3 does not hold 5.
  EXPECT_DOUBLE_EQ(*validate(rows, {}).time.coverage90, 1 / 3.0);
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

// Off by 0.5, 2, 5 and 20 %: how many are within 1, 3 and 8 %. 95th of {0.005, 0.02, 0.05, 0.2}: at 2.85 of 3, so
// 0.05 + 0.85 * 0.15.
TEST(Validation, MemoryIsCountedByQuantity) {
  std::vector<ValidatedRow> rows;
  for (const double error : {0.005, -0.02, 0.05, 0.2}) {
    rows.push_back(scored(1, 1 + error));
    rows.back().memory = true, rows.back().quantity = "static_mem_gib";
  }
  rows.push_back(scored(1, 2));  // a time
  const Validation v = validate(rows, {});
  ASSERT_EQ(v.memory_quantities.size(), 1U);
  const MemoryQuantity& q = v.memory_quantities.front();
  EXPECT_EQ(q.n, 4);
  EXPECT_EQ(q.within_1, 1);
  EXPECT_EQ(q.within_3, 2);
  EXPECT_EQ(q.within_8, 3);
  EXPECT_NEAR(q.median, 0.035, 1e-12);
  EXPECT_NEAR(q.p95, 0.1775, 1e-12);
}

// Two rows scored, one of them in 8 bits; skipped: one that says all the model needs, one in 8 bits that does, one that does not.
TEST(Validation, CompleteRowsAreDenseIn16Or32Bits) {
  std::vector<ValidatedRow> rows = {scored(1, 1), scored(1, 1)};
  rows[1].narrow = true;
  const SkippedRow complete{.complete = true}, narrow{.narrow = true, .complete = true}, expert{};
  const Validation v = validate(rows, {complete, narrow, expert});
  EXPECT_EQ(v.complete, 2);
  EXPECT_EQ(v.complete_scored, 1);
}

// Of seven times the bytes five are copies at full bandwidth: forward 5 + 2 / 0.5 = 9 times as long, backward 3 + 2 / 0.5 = 7. Rotary
// embeddings have kernels of another speed: forward 1 / 0.8, backward 1 + 2 / 0.8.
TEST(Presets, PlainCopiesStreamAndTheBackwardMayDiffer) {
  const FrameworkPreset preset = parse_framework_preset(
      R"({"summary": "s", "source": "s", "elementwise": 0.5, "vocab_multiple": 64, "norm": {"traffic": 3},
          "rope": {"elementwise": 0.8, "backward": {"traffic": 3, "copies": 1}},
          "softmax": {"kernels": 4, "traffic": 7, "copies": 5, "backward": {"traffic": 5, "copies": 3}}})",
      "mine", "mine.json");
  const auto slowdown = [&](const Operation& op, Phase phase) {
    return slowdown_of({}, preset, {.op = op, .phase = phase, .shapes = {{.dims = {4, 4}}}, .traffic = {1}});
  };
  EXPECT_DOUBLE_EQ(slowdown(ops::Softmax{}, Phase::Forward), 9);
  EXPECT_DOUBLE_EQ(slowdown(ops::Softmax{}, Phase::Recompute), 9);
  EXPECT_DOUBLE_EQ(slowdown(ops::Softmax{}, Phase::InputGrad), 7);
  EXPECT_DOUBLE_EQ(slowdown(ops::Norm{}, Phase::InputGrad), 6);
  EXPECT_DOUBLE_EQ(slowdown(ops::Rope{}, Phase::Forward), 1.25);
  EXPECT_DOUBLE_EQ(slowdown(ops::Rope{}, Phase::InputGrad), 3.5);
  EXPECT_DOUBLE_EQ(slowdown(ops::Add{}, Phase::Forward), 2);
  EXPECT_EQ(with_preset(Model{}, {.framework = "megatron"}).vocab_multiple, 128);
  EXPECT_EQ(with_preset(Model{}, {.framework = "torchtitan"}).vocab_multiple, 1);
  EXPECT_EQ(with_preset(Model{}, {.vocab_multiple = 1, .framework = "megatron"}).vocab_multiple, 1);
}

TEST(Presets, EveryFrameworkHasAFileThatSaysWhereItsNumbersComeFrom) {
  for (const std::string& name : framework_names()) {
    const FrameworkPreset& preset = framework_preset(name);
    EXPECT_FALSE(preset.summary.empty()) << name;
    EXPECT_FALSE(preset.source.empty()) << name;
  }
  EXPECT_EQ(framework_preset("foreshard").host.per_kernel, Seconds{});
  EXPECT_THROW(parse_framework_preset(R"({"summary": "", "source": "", "hosts": 1})", "x", "x.json"), Error);
}

// The tables of docs/validation.md are the limits: no cell may have fewer rows, or a median error more than a fifth and half a
// per cent above the one that stands there. Whoever makes a cell worse has to write so there (scripts/refresh_validation.sh).
constexpr double kWorse = 1.2, kWorseAtLeast = 0.5;  // per cent

struct DocumentedCell {
  int rows = 0;
  double median = 0;  // per cent
};

// "| source | GPU | framework | rows | median % | ..." of time (first table) or of memory (second).
static std::map<std::string, DocumentedCell> documented(bool memory) {
  const std::string text = read_file(std::string(FORESHARD_SOURCE) + "/docs/validation.md");
  const std::size_t begin = text.find(memory ? "## Memory\n" : "## Time and throughput\n");
  std::istringstream lines(text.substr(begin, text.find("\n## ", begin) - begin));
  std::map<std::string, DocumentedCell> cells;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> parts;
    std::istringstream columns(line);
    for (std::string part; std::getline(columns, part, '|');)
      parts.push_back(part.size() > 2 ? part.substr(1, part.size() - 2) : "");
    if (parts.size() < 6 || parts[1] == "source" || parts[1].starts_with("-")) continue;
    cells[parts[1] + "|" + parts[2] + "|" + parts[3]] = {std::stoi(parts[4]), std::stod(parts[5])};
  }
  return cells;
}

class PublishedTable : public testing::TestWithParam<const char*> {};

TEST_P(PublishedTable, StaysWithinWhatTheDocumentSays) {
  const std::string table = kData + GetParam() + ".csv";
  if (!all_of_it() && load_measured(table).size() > 50) GTEST_SKIP() << "of many rows: scripts/long_checks.sh tests";
  const RanLine ran = run_words({"validate", table, "--json"});
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  const JsonReader json = JsonReader::parse(ran.out, GetParam());
  for (const JsonReader& cell : json.at("cells").elements()) {
    const std::string key =
        cell.at("source").as_string() + "|" + cell.at("gpu").as_string() + "|" + cell.at("framework").as_string();
    const auto limits = documented(cell.at("kind").as_string() == "memory");
    ASSERT_TRUE(limits.contains(key)) << key;
    const DocumentedCell& limit = limits.at(key);
    EXPECT_LE(100 * cell.at("median").as_double(), limit.median * kWorse + kWorseAtLeast) << key;
    EXPECT_GE(cell.at("n").as_int(), limit.rows) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublishedTable,
                         testing::Values("aleph_alpha", "bert_dle", "bigscience_a100", "bigscience_v100", "dgxc", "internevo",
                                         "korthikanti2022", "llm_foundry", "llmq", "megatron_bridge", "megatron_golden",
                                         "megatron_older", "megatron_sc21_table1", "nemo_h100", "sc21_table2", "torchtitan",
                                         "vtrain_single", "zero_bubble"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace foreshard::validate_test
