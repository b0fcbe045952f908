#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "core/check/check_plan.h"
#include "core/plan/plan.h"
#include "core/plan/plan_indices.h"
#include "core/plan/ranks.h"
#include "tests/changed_text.h"
#include "tests/core/support_plan.h"
#include "tests/how_many.h"

namespace foreshard::plan_json_test {
namespace {

std::string message(const std::string& text) {
  return error_of([&] { parse_plan(text, "p.json"); });
}

}  // namespace

TEST(PlanJson, ReadsBackWhatItWrote) {
  const Plan plan = small_plan();
  EXPECT_EQ(parse_plan(to_json(plan), "p.json"), plan);
  EXPECT_EQ(parse_plan(to_json(Plan{}), "p.json"), Plan{});
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const Plan random = random_plan(seed);
    ASSERT_EQ(first_bad_index(random), std::nullopt) << seed;
    ASSERT_EQ(parse_plan(to_json(random), "p.json"), random) << "seed " << seed << "\n" << to_json(random);
  }
}

TEST(PlanJson, SavesAndLoadsFiles) {
  const std::string path = testing::TempDir() + "foreshard_small.plan.json";
  save_plan(small_plan(), path);
  EXPECT_EQ(load_plan(path), small_plan());
  std::remove(path.c_str());
  EXPECT_THROW(load_plan(path), Error);
}

TEST(PlanJson, OneLinePerInstructionBufferAndAction) {
  const std::string text = to_json(small_plan());
  EXPECT_NE(text.find(R"({"name":"send","exchange":{"to":[1],"tag":"act","bytes":512},"stream":2,"after":[0],)"
                      R"("records":[[1,"$1"]],"reads":[[4,"$1"]],"releases":[[4,"$1"]]})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"([0,[1,1],["F",0,1,0]])"), std::string::npos);
  EXPECT_NE(text.find(R"({"name":"output","category":"communication","bytes":512,"offsets":[4096,4608]})"), std::string::npos);
}

TEST(PlanJson, MessagesNameFileFieldFoundAndExpected) {
  const std::string text = to_json(small_plan());
  EXPECT_EQ(message("{"), "p.json: line 1, column 2: found the end of the text, expected string literal");
  EXPECT_EQ(message("{}"), "p.json: found an object of 0, expected a plan file, with \"format\": \"foreshard plan\"");
  EXPECT_EQ(message(replaced(text, "\"version\": 2", "\"version\": 3")),
            "p.json: version: found 3, expected an integer from 1 to 2");
  EXPECT_EQ(message(replaced(text, "\"samples\"", "\"sample\"")).substr(0, 66),
            "p.json: sample: found an unknown key with value 6, expected \"sampl");
  EXPECT_EQ(message(replaced(text, "\"stream\":2", "\"stream\":4")),
            "p.json: segments[0].instructions[1].stream: found 4, expected an integer from 0 to 3 in roles[0].actions[0]");
  EXPECT_EQ(message(replaced(text, "\"after\":[0]", "\"after\":[1]")),
            "p.json: segments[0].instructions[1].after[0]: found 1, expected an integer from 0 to 0");
  EXPECT_EQ(message(replaced(text, "[0,[1,1],", "[0,[1,2],")),
            "p.json: roles[0].actions[1].args[1]: found 2, expected an integer from 0 to 1");
  Plan ahead = small_plan();
  ahead.roles[1].ahead = {4, 3};
  EXPECT_EQ(message(to_json(ahead)), "p.json: roles[1].ahead[1]: found 3, expected an integer from 4 to 6");
  ahead.roles[1].ahead = {1, 4};
  EXPECT_EQ(message(to_json(ahead)), "p.json: roles[1].ahead[0]: found 1, expected an integer from 2 to 6");
  ahead.roles[1].ahead = {2, 4};
  EXPECT_EQ(parse_plan(to_json(ahead), "p.json"), ahead);
  EXPECT_EQ(message(replaced(text, "[0,[1,1],", "[0,[1],")),
            "p.json: roles[0].actions[1].args: found 1 entries, expected 2, one per parameter of the segment");
  EXPECT_EQ(message(replaced(text, "[\"F\",0,1,0]", "[\"F\",2,1,0]")),
            "p.json: roles[0].actions[1].does[0].stage: found 2, expected an integer from 0 to 1");
  EXPECT_EQ(message(replaced(text, "[\"F\",0,1,0]", "[\"G\",0,1,0]")).substr(0, 71),
            "p.json: roles[0].actions[1][2][0]: found \"G\", expected one of \"F\", \"B\",");
  EXPECT_EQ(
      message(replaced(text, "\"$1\"", "\"$x\"")),
      "p.json: segments[0].instructions[0].waits[0][1]: found \"$x\", expected a slot: a number, or \"$2\" for parameter 2");
  EXPECT_EQ(message(replaced(text, "\"$1\"", "\"$0\"")),
            "p.json: segments[0].instructions[0].waits[0].slot: found parameter 0, expected a parameter of kind slot");
  EXPECT_EQ(message(replaced(text, "\"exchange\":", "\"mark\":{},\"exchange\":")),
            "p.json: segments[0].instructions[1]: found an object of 8, expected exactly one of compute, host_compute, "
            "exchange, collective, copy, mark");
  EXPECT_EQ(message(replaced(text, "\"size\":2", "\"size\":0")),
            "p.json: axes[0].size: found 0, expected an integer from 1 to 4194304");
  EXPECT_EQ(message(replaced(text, "\"dense\":\"data\"", "\"dense\":\"date\"")).substr(0, 52),
            "p.json: axes[0].dense: found \"date\", expected one of");
  EXPECT_EQ(message(replaced(text, "[0, \"role\"]", "[0, \"rule\"]")),
            "p.json: placement.order[1]: found \"rule\", expected the number of an axis, or \"role\"");
  EXPECT_EQ(message(replaced(text, "[0, \"role\"]", "[1, \"role\"]")),
            "p.json: placement.order[0]: found 1, expected each of 0, \"role\" once, fastest first");
  EXPECT_EQ(message(replaced(text, "\"device_kind\": \"test-gpu\"", "\"device_kind\": \"x\"")),
            "p.json: roles[0].device_kind: found \"x\", expected a device kind that has a cost table");
}

TEST(PlanJson, ServersOfAParameterServerAreNamedOnceEach) {
  const auto found = [](const std::vector<std::int32_t>& members, Algorithm algorithm, int servers) {
    Plan plan = small_plan();
    for (Segment& segment : plan.segments)
      for (Instruction& run : segment.instructions)
        if (auto* what = std::get_if<Collective>(&run.what))
          what->algorithm = algorithm, what->servers = servers, what->served_by = members;
    const std::string said = message(to_json(plan));
    return said.substr(said.find("found"));
  };
  EXPECT_EQ(
      found({0, 0}, Algorithm::ParameterServer, 2),
      "found 2 positions, expected a position for each of the 2 servers of the algorithm parameter_server, each one once");
  EXPECT_EQ(
      found({1}, Algorithm::ParameterServer, 2),
      "found 1 positions, expected a position for each of the 2 servers of the algorithm parameter_server, each one once");
  EXPECT_EQ(
      found({1}, Algorithm::Tree, 1),
      "found 1 positions, expected a position for each of the 1 servers of the algorithm parameter_server, each one once");
  EXPECT_EQ(found({-1}, Algorithm::ParameterServer, 1), "found -1, expected an integer from 0 to 4194303");
}

// Wrong files end in an Error or in a plan that no reader trips over.
TEST(PlanJson, MangledFilesAreRefusedOrHarmless) {
  std::set<std::string> rules;
  int accepted = 0;
  for (std::uint32_t seed = 0; seed < how_many(400U, 2000U); ++seed) {
    const std::string text = mangled(to_json(seed % 2 ? small_plan() : random_plan(seed % 40)), seed);
    try {
      const Plan plan = parse_plan(text, "p.json");
      ++accepted;
      for (const PlanDefect& defect :
           check_plan(plan, {.capacity = {{"kind", {1000}}}, .host_capacity = {10}, .ranks_per_node = 1}))
        rules.insert(defect.rule);
      EXPECT_EQ(program_hash(plan).size(), 16U);
      EXPECT_EQ(parse_plan(to_json(plan), "p.json"), plan);
      if (Ranks ranks(plan); ranks.count() > 0 && !plan.groups.empty()) ranks.members(GroupId{0}, RankId{0});
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted, how_many(40, 200));
  EXPECT_GT(rules.size(), 10U);  // the check was not idle
}

}  // namespace foreshard::plan_json_test
