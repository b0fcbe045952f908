// The table of constants that were fitted on measured runs, and presets that refer to it or to each other.
#include "strategy/kernels/fitted_constants.h"

#include <gtest/gtest.h>

#include <utility>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard::fitted_constants_test {
namespace {

const char* kOne = R"({"source": "", "constants": {"a.b": {"value": "20 us", "range": ["10 us", "30 us"], "without": "0 us",
  "mechanism": "m", "fitted_on": ["S"]}}})";

std::string message(const std::string& text) {
  try {
    parse_fitted_constants(text, "c.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = kOne;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(FittedConstants, ReadTimesAndSayWhatIsWrong) {
  const FittedConstant expected{
      .name = "a.b", .mechanism = "m", .value = 20e-6, .low = 10e-6, .high = 30e-6, .without = 0, .fitted_on = {"S"}};
  EXPECT_EQ(parse_fitted_constants(kOne, "c.json"), std::vector<FittedConstant>{expected});
  EXPECT_NE(message(with("\"20 us\"", "\"40 us\"")).find("constants.a.b.value"), std::string::npos);
  EXPECT_NE(message(with("\"20 us\"", "\"40 us\"")).find("a value inside its range"), std::string::npos);
  EXPECT_NE(message(with("[\"10 us\", \"30 us\"]", "[1]")).find("two values"), std::string::npos);
  EXPECT_NE(message(with("[\"S\"]", "[]")).find("the sources of its rows"), std::string::npos);
  EXPECT_NE(message(with("\"mechanism\"", "\"why\"")).find("why"), std::string::npos);
}

// Every constant names sources that the shipped measurements have, so that leaving one out means something.
TEST(FittedConstants, TheShippedOnesNameShippedSources) {
  std::string rows;
  for (const char* file : {"aleph_alpha", "korthikanti2022", "zero_bubble", "megatron_sc21_table1", "llm_foundry", "dgxc",
                           "vtrain_single", "megatron_bridge", "torchtitan"})
    rows += read_file(std::string(FORESHARD_SOURCE) + "/data/measured/" + file + ".csv");
  ASSERT_FALSE(fitted_constants().empty());
  for (const FittedConstant& constant : fitted_constants())
    for (const std::string& source : constant.fitted_on)
      EXPECT_NE(rows.find(source), std::string::npos) << constant.name << ": " << source;
  EXPECT_THROW(fitted("no.such"), Error);
  EXPECT_FALSE(find_fitted("no.such"));
}

FrameworkPreset preset(const std::string& fields) {
  return parse_framework_preset("{\"summary\": \"s\", \"source\": \"o\"" + fields + "}", "x", "x.json");
}

TEST(FittedConstants, PresetsReferToThemByName) {
  EXPECT_EQ(preset(R"(, "elementwise": "elementwise.eager")").elementwise, fitted("elementwise.eager"));
  EXPECT_EQ(preset(R"(, "host_per_kernel": "host.operator")").host.per_kernel.value, fitted("host.operator"));
  EXPECT_EQ(preset(R"(, "host_per_kernel": "7 us")").host.per_kernel.value, 7e-6);
  EXPECT_THROW(preset(R"(, "elementwise": "elementwise.none")"), Error);
  EXPECT_THROW(preset(R"(, "elementwise": "host.operator")"), Error);  // 68e-6 is no share of a bandwidth
}

// What a preset says is written into the origin of a plan, in the option's words, and read again: 1e9 is above what the option takes.
TEST(Presets, DefaultsAreNumbersThatTheOptionTakes) {
  EXPECT_EQ(preset(R"(, "clip_norm": 999999999)").defaults.clip_norm, 999'999'999);
  EXPECT_NO_THROW(parse_strategy(R"({"clip_norm": 999999999})", "s"));
  EXPECT_THROW(preset(R"(, "clip_norm": 1000000000)"), Error);
  EXPECT_THROW(parse_strategy(R"({"clip_norm": 1000000000})", "s"), Error);
}

TEST(Presets, OneIsLikeAnother) {
  const FrameworkPreset base = framework_preset("aleph-alpha-scaling");
  FrameworkPreset like = preset(R"(, "like": "aleph-alpha-scaling", "flash": "1")");
  EXPECT_EQ(like.flash, FlashKernel::One);
  EXPECT_NE(like, base);
  like.name = base.name, like.summary = base.summary, like.source = base.source, like.flash = base.flash;
  EXPECT_EQ(std::exchange(like.like, ""), "aleph-alpha-scaling");
  EXPECT_EQ(like, base);
  EXPECT_THROW(preset(R"(, "like": "no-such")"), Error);
  EXPECT_THROW(preset(R"(, "like": "aleph-alpha-flash1")"), Error);  // which is like another one itself
}

// What runs the kernels of eager PyTorch issues them through its modules: no preset assumes a time of its own.
TEST(FittedConstants, EagerPresetsIssueOperatorsInTheMeasuredTime) {
  int eager = 0;
  for (const std::string& name : framework_names()) {
    const FrameworkPreset& preset = framework_preset(name);
    if (preset.elementwise != fitted("elementwise.eager")) continue;
    EXPECT_EQ(preset.host.per_kernel.value, fitted("host.operator")) << name;
    ++eager;
  }
  EXPECT_GT(eager, 8);
}

}  // namespace
}  // namespace foreshard::fitted_constants_test
