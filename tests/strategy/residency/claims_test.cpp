// The greedy offload planner against "Gemini-CPU", where all parameters go back to host memory after every use and come in on demand: the
// ratios that docs/claims.md shows. They are reported, not wished for: what holds is that the planner is faster.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "strategy/residency/plan_offload.h"
#include "tests/strategy/residency/support_page.h"

namespace foreshard::claims_test {

namespace {

struct Sizes {
  std::string name = {};
  std::int64_t layers = 0, hidden = 0, vocabulary = 0, sequence = 0, batch = 0;
};
const std::vector<Sizes> kShapes = {{"GPT-2 medium", 24, 1024, 50257, 1024, 4}, {"BERT-large", 24, 1024, 30522, 512, 8}};

// 16-bit parameters over PCIe at 25 GB/s, matrix products at 150 TFLOP/s; a layer has 12 h^2 parameters, 24 b s h^2 + 4 b s^2 h
// operations in its forward and 34 b s h bytes of activations.
OffloadJob job_of(const Sizes& m) {
  const auto operations = [](double flops) { return Seconds{flops / 150e12}; };
  const auto tokens = static_cast<double>(m.batch * m.sequence), h = static_cast<double>(m.hidden);
  OffloadJob job{.uploads_master = false};
  job.regions.push_back({.parameters = {2 * m.vocabulary * m.hidden},
                         .activations = {2 * m.batch * m.sequence * m.hidden},
                         .forward = operations(tokens * h),
                         .backward = operations(2 * tokens * h)});
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const double flops = tokens * (24 * h * h + 4 * static_cast<double>(m.sequence) * h);
    job.regions.push_back({.parameters = {2 * 12 * m.hidden * m.hidden},
                           .activations = {34 * m.batch * m.sequence * m.hidden},
                           .forward = operations(flops),
                           .backward = operations(2 * flops)});
  }
  return job;
}

// Every region comes in before its forward and before its backward, and nothing is computed meanwhile; gradients go out beside the computes.
double gemini_cpu(const OffloadJob& job) {
  double seconds = 0;
  for (std::size_t r = 0; r < job.regions.size(); ++r) {
    const OffloadRegion& region = job.regions[r];
    seconds += 2 * job.link.time(job.upload(static_cast<int>(r))).value + region.forward.value + region.backward.value;
  }
  return seconds + job.link.time(job.regions.front().parameters).value;
}

std::string page_row(const std::string& first_cell) {
  std::ifstream page(std::string(FORESHARD_SOURCE) + "/docs/claims.md");
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| " + first_cell + " |")) return line;
  return "";
}

constexpr int kCurve[] = {0, 1, 2, 5, 10, 100};  // per cent of the way from the smallest peak to that of keeping everything

Bytes least_peak(const OffloadJob& job) {
  std::vector<RegionChoice> on_demand(job.regions.size());
  for (std::size_t r = 0; r + 1 < on_demand.size(); ++r) on_demand[r] = {static_cast<int>(r)};
  return offload_timing(job, on_demand).peak;
}
Bytes most_peak(const OffloadJob& job) { return offload_timing(job, std::vector<RegionChoice>(job.regions.size())).peak; }

struct CurvePoint {
  Bytes budget = {};
  double milliseconds = 0;
};
std::vector<CurvePoint> curve_of(const OffloadJob& job) {
  const Bytes least = least_peak(job), most = most_peak(job);
  std::vector<CurvePoint> curve;
  for (const int percent : kCurve) {
    const Bytes budget{least.value + (most - least).value * percent / 100};
    const auto answer = plan_offload(job, budget);
    if (!std::holds_alternative<OffloadPlan>(answer)) continue;
    const OffloadTiming& timing = std::get<OffloadPlan>(answer).timing;
    EXPECT_LE(timing.peak, budget);
    curve.push_back({budget, 1e3 * timing.end.value});
  }
  return curve;
}

std::string cells(const std::vector<CurvePoint>& curve, const char* format, auto value) {
  std::string row;
  for (const CurvePoint& point : curve) {
    char cell[32];
    std::snprintf(cell, sizeof cell, format, value(point));
    row += cell;
  }
  if (!row.empty()) row.pop_back();
  return row;
}

}  // namespace

// Three rows of docs/offload-planning.md for each model: budgets, the planner's step and how much longer Gemini-CPU's is.
TEST(Claims, ThePageHasTheCurveAgainstGeminiCpu) {
  for (const Sizes& shape : kShapes) {
    const OffloadJob job = job_of(shape);
    const std::vector<CurvePoint> curve = curve_of(job);
    ASSERT_EQ(curve.size(), std::size(kCurve));
    for (std::size_t i = 1; i < curve.size(); ++i) EXPECT_LE(curve[i].milliseconds, curve[i - 1].milliseconds) << i;
    const double baseline = 1e3 * gemini_cpu(job);
    const auto in_gib = [](const CurvePoint& p) { return static_cast<double>(p.budget.value) / (1 << 30); };
    EXPECT_EQ(offload_page_row(shape.name + ", budget, GiB"), cells(curve, "%.2f | ", in_gib));
    EXPECT_EQ(offload_page_row(shape.name + ", greedy, ms"),
              cells(curve, "%.1f | ", [](const CurvePoint& p) { return p.milliseconds; }));
    EXPECT_EQ(offload_page_row(shape.name + ", Gemini-CPU over it"),
              cells(curve, "%.2f | ", [&](const CurvePoint& p) { return baseline / p.milliseconds; }));
  }
}

TEST(Claims, OffloadPlannerAgainstGeminiCpu) {
  for (const Sizes& shape : kShapes) {
    const OffloadJob job = job_of(shape);
    const double baseline = gemini_cpu(job);
    const Bytes least = least_peak(job), most = most_peak(job);
    std::string row = "| " + shape.name + " |";
    for (const int percent : {0, 25, 50, 100}) {
      const Bytes budget{least.value + (most - least).value * percent / 100};
      const auto answer = plan_offload(job, budget);
      ASSERT_TRUE(std::holds_alternative<OffloadPlan>(answer)) << percent;
      const OffloadPlan& plan = std::get<OffloadPlan>(answer);
      EXPECT_LE(plan.timing.peak, budget);
      EXPECT_GT(baseline / plan.timing.end.value, 1) << shape.name << percent;
      char cell[32];
      std::snprintf(cell, sizeof cell, " %.2fx |", baseline / plan.timing.end.value);
      row += cell;
    }
    EXPECT_EQ(page_row(shape.name), row);
  }
}

}  // namespace foreshard::claims_test
