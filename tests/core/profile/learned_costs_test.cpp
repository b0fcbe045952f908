// What runs taught, as a member of a profile's file.
#include "core/profile/learned_costs.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/json/json_edit.h"
#include "core/profile/machine_profile.h"

namespace foreshard::learned_costs_test {
namespace {

MachineProfile taught() {
  MachineProfile profile{.device = "a100-80", .machine = "a test"};
  profile.learned = {.cluster = "eight of them",
                     .runs = 3,
                     .scales = {.machine = 0.04, .compute = 0.2, .communication = 0.3, .reach = 1.5, .noise = 0.01},
                     .shapes = {{{CostPart::Layer, {"megatron", "bf16"}, {11, 12.5}}, 2, 0.75},
                                {{CostPart::Layer, {"megatron", "bf16"}, {12, 12.5}}, 1, -0.5},
                                {{CostPart::Transfer, {"megatron"}, {}}, 3, 1e-7}},
                     .doubt = {{4}, {0.5, 3}, {0, 0.125, 2}}};
  return profile;
}

TEST(LearnedCosts, ReadBackWhatWasWritten) {
  MachineProfile read = parse_machine_profile(to_json(taught()), "p.json");
  read.hash = "";
  EXPECT_EQ(read, taught());
  EXPECT_FALSE(read.measured());
}

// Beside what was measured kernel by kernel.
TEST(LearnedCosts, StandBesideMeasurements) {
  MachineProfile both = taught();
  both.link_bandwidth = {1e9};
  MachineProfile read = parse_machine_profile(to_json(both), "p.json");
  read.hash = "";
  EXPECT_EQ(read, both);
  EXPECT_TRUE(read.measured());
}

std::string message(const std::string& path, const std::string& value) {
  try {
    parse_machine_profile(with_json_value(to_json(taught()), path, value, "test"), "p.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LearnedCosts, WrongFilesAreTold) {
  EXPECT_EQ(message("learned.scales.noise", "0"), "p.json: learned.scales.noise: found 0, expected more than 0");
  EXPECT_NE(message("learned.scales.noises", "1").find("noises"), std::string::npos);
  EXPECT_NE(message("learned.shapes[0].part", "\"layers\"").find("nearest: \"layer\""), std::string::npos);
  EXPECT_EQ(message("learned.shapes[1].place", "[1]"),
            "p.json: learned.shapes[1].place: found an array of 1, expected as many sizes as the part's first shape has");
  EXPECT_EQ(message("learned.shapes[1].words", "[]"),
            "p.json: learned.shapes[1].words: found an array of 0, expected as many words as the part's first shape has");
  EXPECT_NE(message("learned.shapes[1].place", "[11, 12.5]").find("expected a shape that is not listed yet"),
            std::string::npos);
  EXPECT_NE(message("learned.shapes", "[]").find("expected 1 to 10000 shapes"), std::string::npos);
  EXPECT_EQ(message("learned.doubt", "[[4]]"),
            "p.json: learned.doubt: found an array of 1, expected a row for each of 3 shapes");
  EXPECT_NE(message("learned.doubt[1]", "[1, 2, 3]").find("the lower triangle of a matrix"), std::string::npos);
  EXPECT_NE(message("learned.runs", "0").find("learned.runs: found 0"), std::string::npos);
  EXPECT_NE(message("copies", "[]").find("copies"), std::string::npos);  // measured, but without the rest of it
}

}  // namespace
}  // namespace foreshard::learned_costs_test
