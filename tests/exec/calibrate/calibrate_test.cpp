// What calibrate gives is whole and in order; how fast this machine is, no test can say.
#include "exec/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "exec/calibrate/calibrate_host.h"
#include "tests/exec/training.h"

namespace foreshard::calibrate_test {
namespace {

CalibrateOptions quick() { return {.steps = 2, .dtypes = {DType::F32}, .largest_product = 32}; }

TEST(Calibrate, MeasuresEveryKindOfItsProbes) {
  Strategy strategy{.dp = 1, .tp = 2, .batch = {.micro = 4, .global = 8}, .precision = DType::F32};
  const Plan probe = lowered(tiny_gpt(), strategy);
  std::vector<double> progress;
  CalibrateOptions options = quick();
  options.progress = [&](double fraction) { progress.push_back(fraction); };
  const auto profile = calibrate({probe}, options);
  ASSERT_TRUE(profile);
  std::set<std::tuple<std::string, Phase, std::string>> measured;
  for (const ProfileOp& op : profile->ops) {
    measured.insert({op.op, op.phase, op.variant});
    EXPECT_FALSE(op.samples.empty());
    for (const ProfileSample& sample : op.samples) EXPECT_GT(sample.time.value, 0);
  }
  for (const Segment& segment : probe.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* compute = std::get_if<Compute>(&instruction.what); compute && !compute->shapes.empty()) {
        EXPECT_TRUE(measured.contains({word(compute->op), compute->phase, variant_of(*compute)})) << instruction.name;
      }
  EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
  EXPECT_EQ(progress.back(), 1);
  EXPECT_GT(profile->launch_overhead.value, 0);
  EXPECT_GT(profile->link_latency.value, 0);
  EXPECT_GT(profile->link_bandwidth.value, 0);
  MachineProfile read = parse_machine_profile(to_json(*profile), "p.json");  // sizes grow, kinds stand once
  read.hash = "";
  EXPECT_EQ(read, *profile);
}

TEST(Calibrate, StopsWhenItIsTold) {
  const std::atomic<bool> cancel = true;
  CalibrateOptions options = quick();
  options.cancel = &cancel;
  EXPECT_FALSE(calibrate({}, options));
}

// 2 sizes x 2 sizes x 3 phases, each with the work of its sizes.
TEST(Calibrate, ProductsComeInAllPhases) {
  std::set<std::tuple<Phase, std::int64_t, std::int64_t>> seen;
  measure_products(DType::F64, 8, {16, 32}, [&](const Compute& what, Seconds time) {
    EXPECT_GT(time.value, 0);
    EXPECT_EQ(what.shapes[0].dims[1], 8);
    EXPECT_EQ(what.flops.value, 2.0 * 8 * static_cast<double>(what.shapes[0].dims[2] * what.shapes[0].dims[3]));
    seen.insert({what.phase, what.shapes[0].dims[2], what.shapes[0].dims[3]});
  });
  EXPECT_EQ(seen.size(), 12U);
}

}  // namespace
}  // namespace foreshard::calibrate_test
