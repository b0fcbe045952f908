// Times of attention against those that NVIDIA/cudnn-frontend published (benchmark/sdpa_benchmark_training/results): points of the shipped
// tables, points left out, and others that the tables do not have.
#include "strategy/kernels/attention_rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "core/base/error.h"

namespace foreshard::attention_rates_test {
namespace {

// Calls `visit` with each measured point.
using Visit = std::function<void(const Gpu&, const AttentionLine&, std::size_t point, bool backward)>;
void each_point(const Visit& visit) {
  for (const AttentionTable& table : shipped_attention_tables()) {
    const Gpu gpu = load_gpu(table.gpu);
    for (const AttentionLine& line : table.lines)
      for (std::size_t point = 0; point < line.keys.size(); ++point)
        for (const bool backward : {false, true})
          if (measured_attention(gpu, line, point, backward).value > 0) visit(gpu, line, point, backward);
  }
}

double predicted(const AttentionRates& rates, const Gpu& gpu, const AttentionWork& work) {
  return attention_formula(gpu, work).value * rates.ratio(gpu, work);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Compute compute_of(const AttentionWork& work) {
  const std::int64_t rows = work.batch * (work.queries * work.heads + work.keys * work.kv_heads);
  const double pairs = static_cast<double>(work.batch * work.heads * work.queries) * static_cast<double>(work.keys);
  return {.op = ops::Attention{.causal = work.causal, .window = work.window, .value_dim = work.values},
          .phase = work.backward ? Phase::InputGrad : Phase::Forward,
          .shapes = {{.dims = {work.batch, work.queries, work.heads, work.dim}, .dtype = DType::BF16},
                     {.dims = {work.batch, work.keys, work.kv_heads, work.dim}, .dtype = DType::BF16}},
          .flops = {(work.backward ? 4 : 2) * pairs * static_cast<double>(work.dim + work.values)},
          .traffic = {2 * rows * (work.dim + work.values) * (work.backward ? 2 : 1)}};
}

TEST(AttentionRates, ExactAtMeasuredPoints) {
  int points = 0;
  each_point([&](const Gpu& gpu, const AttentionLine& line, std::size_t point, bool backward) {
    ++points;
    const AttentionWork work = work_of(line, point, backward);
    EXPECT_NEAR(predicted(attention_rates(), gpu, work) / measured_attention(gpu, line, point, backward).value, 1, 1e-9);
    // An instruction's time, but for the power limit.
    OpTime pieces = op_pieces(gpu, compute_of(work));
    EXPECT_GE(pieces.arithmetic, attention_time(gpu, work, FlashKernel::Newest, true) * attention_rates().ratio(gpu, work));
    pieces.arithmetic = attention_time(gpu, work, FlashKernel::Newest, true) * attention_rates().ratio(gpu, work);
    EXPECT_NEAR(pieces.total().value / (backward ? line.backward : line.forward)[point].value, 1, 1e-9);
  });
  EXPECT_GT(points, 100);
}

// The formula by itself: no table of the GPU, nor of its kind.
TEST(AttentionRates, FormulaAgainstMeasuredPoints) {
  for (const AttentionTable& table : shipped_attention_tables()) {
    std::vector<double> errors;
    each_point([&](const Gpu& gpu, const AttentionLine& line, std::size_t point, bool backward) {
      if (gpu.name != table.gpu) return;
      errors.push_back(std::abs(attention_formula(gpu, work_of(line, point, backward)).value /
                                    measured_attention(gpu, line, point, backward).value -
                                1));
    });
    std::printf("  %-6s formula: median %4.1f %%, most %4.1f %% of %zu\n", table.gpu.c_str(), 100 * median(errors),
                100 * *std::ranges::max_element(errors), errors.size());
    EXPECT_LT(median(errors), 0.05) << table.gpu;
    EXPECT_LT(*std::ranges::max_element(errors), 0.16) << table.gpu;
  }
}

// Each point in turn is predicted from the others, and each GPU of a kind from the other.
TEST(AttentionRates, PointsAndGpusLeftOut) {
  std::vector<double> points, gpus;
  for (std::size_t t = 0; t < shipped_attention_tables().size(); ++t) {
    const AttentionTable& table = shipped_attention_tables()[t];
    const Gpu gpu = load_gpu(table.gpu);
    std::vector<AttentionTable> others = shipped_attention_tables();
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(t));
    const AttentionRates without(others);
    for (std::size_t l = 0; l < table.lines.size(); ++l)
      for (std::size_t point = 0; point < table.lines[l].keys.size(); ++point)
        for (const bool backward : {false, true}) {
          const double measured = measured_attention(gpu, table.lines[l], point, backward).value;
          if (measured <= 0) continue;
          AttentionTable thinned = table;
          (backward ? thinned.lines[l].backward : thinned.lines[l].forward)[point] = {};
          const AttentionWork work = work_of(table.lines[l], point, backward);
          points.push_back(std::abs(predicted(AttentionRates({thinned}), gpu, work) / measured - 1));
          if (gpu.architecture == "blackwell") gpus.push_back(std::abs(predicted(without, gpu, work) / measured - 1));
        }
  }
  std::printf("  points left out: median %4.1f %%, most %4.1f %%; GPUs left out: median %4.1f %%, most %4.1f %%\n",
              100 * median(points), 100 * *std::ranges::max_element(points), 100 * median(gpus),
              100 * *std::ranges::max_element(gpus));
  EXPECT_LT(median(points), 0.05);
  EXPECT_LT(*std::ranges::max_element(points), 0.12);
  EXPECT_LT(median(gpus), 0.05);
}

struct Published {
  const char* gpu;
  std::int64_t keys, batch, heads, kv_heads, dim, values;
  bool causal;
  double forward_ms, backward_ms;
};

// Kimi K2's 64 heads, which no table has, and 32768 keys, whose runs last for up to some seconds, so that the power limit acts on them as on
// training.
TEST(AttentionRates, PublishedTimesThatNoTableHas) {
  const std::vector<Published> published = {{"gb200", 2048, 2, 64, 64, 192, 128, false, 0.237, 0.879},
                                            {"gb200", 2048, 2, 64, 64, 192, 128, true, 0.167, 0.536},
                                            {"gb200", 4096, 2, 64, 64, 192, 128, false, 0.841, 3.009},
                                            {"gb200", 4096, 2, 64, 64, 192, 128, true, 0.518, 1.698},
                                            {"gb200", 8192, 2, 64, 64, 192, 128, false, 3.087, 11.719},
                                            {"gb200", 8192, 2, 64, 64, 192, 128, true, 1.733, 6.005},
                                            {"gb200", 16384, 2, 64, 64, 192, 128, false, 12.457, 50.963},
                                            {"gb200", 16384, 2, 64, 64, 192, 128, true, 6.398, 24.921},
                                            {"gb200", 32768, 2, 64, 8, 128, 128, false, 43.056, 139.364},
                                            {"gb200", 32768, 2, 64, 8, 128, 128, true, 21.692, 71.756},
                                            {"gb200", 32768, 2, 64, 64, 192, 128, false, 51.776, 213.066},
                                            {"gb200", 32768, 2, 64, 64, 192, 128, true, 25.72, 105.445},
                                            {"gb200", 32768, 2, 128, 128, 192, 128, false, 111.031, 421.194},
                                            {"gb200", 32768, 2, 128, 128, 192, 128, true, 50.456, 212.546},
                                            {"gb300", 2048, 2, 64, 64, 192, 128, false, 0.19, 0.819},
                                            {"gb300", 2048, 2, 64, 64, 192, 128, true, 0.136, 0.492},
                                            {"gb300", 4096, 2, 64, 64, 192, 128, false, 0.701, 2.809},
                                            {"gb300", 4096, 2, 64, 64, 192, 128, true, 0.421, 1.548},
                                            {"gb300", 8192, 2, 64, 64, 192, 128, false, 2.632, 10.654},
                                            {"gb300", 8192, 2, 64, 64, 192, 128, true, 1.466, 5.466},
                                            {"gb300", 16384, 2, 64, 64, 192, 128, false, 10.59, 43.165},
                                            {"gb300", 16384, 2, 64, 64, 192, 128, true, 5.442, 21.253},
                                            {"gb300", 32768, 2, 64, 8, 128, 128, false, 38.317, 123.272},
                                            {"gb300", 32768, 2, 64, 8, 128, 128, true, 18.014, 59.024},
                                            {"gb300", 32768, 2, 64, 64, 192, 128, false, 43.698, 182.491},
                                            {"gb300", 32768, 2, 64, 64, 192, 128, true, 21.498, 88.821},
                                            {"gb300", 32768, 2, 128, 128, 192, 128, false, 91.788, 366.969},
                                            {"gb300", 32768, 2, 128, 128, 192, 128, true, 44.189, 177.494},
                                            {"h200", 32768, 1, 64, 8, 128, 128, false, 50.769, 153.841},
                                            {"h200", 32768, 1, 64, 8, 128, 128, true, 25.566, 75.688}};
  std::vector<double> errors, sustained;
  for (const Published& row : published) {
    const Gpu gpu = load_gpu(row.gpu);
    for (const bool backward : {false, true}) {
      const AttentionWork work = {.batch = row.batch,
                                  .queries = row.keys,
                                  .keys = row.keys,
                                  .heads = row.heads,
                                  .kv_heads = row.kv_heads,
                                  .dim = row.dim,
                                  .values = row.values,
                                  .causal = row.causal,
                                  .backward = backward};
      const double time = (backward ? row.backward_ms : row.forward_ms) * 1e-3;
      OpTime pieces = op_pieces(gpu, compute_of(work));
      if (row.keys < 32768)
        pieces.arithmetic = attention_time(gpu, work, FlashKernel::Newest, true) * attention_rates().ratio(gpu, work);
      const double error = pieces.total().value / time - 1;
      (row.keys < 32768 ? errors : sustained).push_back(std::abs(error));
      EXPECT_LT(std::abs(error), 0.12) << row.gpu << ' ' << row.keys << ' ' << row.heads << ' ' << row.causal << backward;
    }
  }
  std::printf("  64 heads: median %4.1f %%; 32768 keys: median %4.1f %%\n", 100 * median(errors), 100 * median(sustained));
  EXPECT_LT(median(errors), 0.05);
  EXPECT_LT(median(sustained), 0.05);
}

// Constant beyond the measured lengths, between measured ones in between; a window as long as the sequence is causal; a GPU without a table
// has the mean of its kind, one of another kind the formula.
TEST(AttentionRates, BetweenAndBeyond) {
  const Gpu gpu = load_gpu("gb200");
  const auto ratio = [](const Gpu& of, std::int64_t keys, std::int64_t window = 0) {
    return attention_rates().ratio(of,
                                   {.queries = keys, .keys = keys, .dim = 64, .values = 64, .causal = true, .window = window});
  };
  EXPECT_DOUBLE_EQ(ratio(gpu, 16384), ratio(gpu, 1 << 20));
  EXPECT_DOUBLE_EQ(ratio(gpu, 2048), ratio(gpu, 256));
  EXPECT_DOUBLE_EQ(ratio(gpu, 8192, 128), ratio(gpu, 8192, 64));
  EXPECT_NEAR(ratio(gpu, 8192, 8191), ratio(gpu, 8192), 1e-4);
  const double low = ratio(gpu, 4096), high = ratio(gpu, 8192), mid = ratio(gpu, 5793);
  EXPECT_NEAR(mid, std::sqrt(low * high), 1e-4);
  EXPECT_NEAR(ratio(load_gpu("b200"), 8192), std::sqrt(high * ratio(load_gpu("gb300"), 8192)), 1e-12);
  EXPECT_DOUBLE_EQ(ratio(load_gpu("h100-80"), 8192), ratio(load_gpu("h200"), 8192));
  EXPECT_EQ(ratio(load_gpu("a100-80"), 8192), 1);
}

TEST(AttentionRates, RefusesBadTables) {
  const auto parse = [](const std::string& line) {
    return parse_attention_table(R"({"gpu": "h200", "source": "x", "lines": [{"mask": )" + line + "}]}", "rates.json");
  };
  const std::string sizes = R"(, "batch": 1, "heads": 2, "kv_heads": 1, "dim": 64, "value_dim": 64)";
  const AttentionTable table = parse(R"("full")" + sizes + R"(, "keys": [8, 16], "forward_ms": [1, 0], "backward_ms": [0, 3])");
  EXPECT_EQ(table.lines.front().forward, (std::vector<Seconds>{{1e-3}, {}}));
  EXPECT_THROW(parse(R"("other")" + sizes + R"(, "keys": [8], "forward_ms": [1], "backward_ms": [1])"), Error);
  EXPECT_THROW(parse(R"("window")" + sizes + R"(, "keys": [8], "forward_ms": [1], "backward_ms": [1])"), Error);
  EXPECT_THROW(parse(R"("full")" + sizes + R"(, "keys": [16, 8], "forward_ms": [1, 2], "backward_ms": [1, 2])"), Error);
  EXPECT_THROW(parse(R"("full")" + sizes + R"(, "keys": [8, 16], "forward_ms": [1], "backward_ms": [1, 2])"), Error);
}

}  // namespace
}  // namespace foreshard::attention_rates_test
