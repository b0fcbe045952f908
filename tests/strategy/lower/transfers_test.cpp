// Split transfers between stages: who sends what, and that every plan is sound.
#include <algorithm>
#include <map>
#include <set>

#include "core/check/check_plan.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::transfers_test {
namespace {

Model small() { return {.name = "small", .shape = small_transformer(8)}; }

Strategy split(int tp, int pp) {
  Strategy s{.tp = tp, .pp = pp, .batch = {.micro = 2, .global = 16}, .precision = DType::BF16};
  s.communication.transfers = Transfers::Split;
  return s;
}

bool gathers(const Instruction& run) { return run.name == "gather input" || run.name == "gather gradient"; }

// Of all instructions of the plan's segments, those between stages: [name]: the bytes that they move.
std::map<std::string, std::set<std::int64_t>> moved(const Plan& plan) {
  std::map<std::string, std::set<std::int64_t>> bytes;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions) {
      if (const auto* exchange = std::get_if<Exchange>(&run.what)) bytes[run.name].insert(exchange->bytes.value);
      if (const auto* gather = std::get_if<Collective>(&run.what); gather && gathers(run))
        bytes["gather"].insert(gather->bytes.value);
    }
  return bytes;
}

constexpr std::int64_t kWhole = 2 * 64 * 64 * 2;  // two samples of 64 tokens, hidden size 64, two bytes

}  // namespace

TEST(Transfers, EachRankSendsItsPartAndGathersTheWhole) {
  const Cluster cluster = load_cluster("dgx-a100-x2");
  for (const int tp : {2, 4, 8})
    for (const Schedule schedule : {Schedule::OneFOneB, Schedule::GPipe, Schedule::ZeroBubbleH1}) {
      Strategy s = split(tp, 2);
      s.pipeline.schedule = schedule;
      const Plan plan = lowered(small(), cluster, s).plan;
      const auto bytes = moved(plan);
      for (const char* name : {"send output", "receive input", "send gradient", "receive gradient"})
        EXPECT_EQ(bytes.at(name), std::set{kWhole / tp}) << name << tp;
      EXPECT_EQ(bytes.at("gather"), std::set{kWhole});
      EXPECT_TRUE(check_plan(plan).empty());
    }
}

// With one tensor rank there are no parts, and with sequence parallelism every rank has only its own.
TEST(Transfers, WhereThereIsNothingToGather) {
  const Cluster cluster = load_cluster("dgx-a100-x2");
  Strategy whole = split(4, 2), alone = split(1, 2), parts = split(4, 2);
  whole.communication.transfers = Transfers::Whole, parts.sequence_parallel = true;
  for (const auto& [s, bytes] : {std::pair{whole, kWhole}, {alone, kWhole}, {parts, kWhole / 4}}) {
    const auto found = moved(lowered(small(), cluster, s).plan);
    EXPECT_EQ(found.at("send output"), std::set{bytes}) << to_json(s);
    EXPECT_FALSE(found.contains("gather"));
  }
  Strategy as_whole = parts;
  as_whole.communication.transfers = Transfers::Whole;
  EXPECT_EQ(lowered(small(), cluster, parts).plan.segments, lowered(small(), cluster, as_whole).plan.segments);
}

TEST(Transfers, AreRefusedBetweenStagesOfTheirOwnDegrees) {
  Strategy s{.stages = parse_stages("4:2x1,4:1x2", "test"), .batch = {.micro = 1, .global = 8}};
  s.communication.transfers = Transfers::Split;
  EXPECT_EQ(refused(small(), load_cluster("dgx-a100"), s).reason,
            "stages that are said one by one cannot have split transfers");
}

TEST(Transfers, SlicesAreReadFromFiles) {
  const Plan plan = lowered(small(), load_cluster("dgx-a100-x2"), split(4, 2)).plan;
  EXPECT_EQ(parse_plan(to_json(plan), "split.plan.json"), plan);
  const auto slice = [](Plan& changed) -> GroupId& {
    for (Segment& segment : changed.segments)
      for (Instruction& run : segment.instructions)
        if (auto* exchange = std::get_if<Exchange>(&run.what); exchange && exchange->slice.valid()) return exchange->slice;
    ADD_FAILURE() << "no slice";
    return std::get<Exchange>(changed.segments[0].instructions[0].what).slice;
  };
  Plan wrong = plan;
  slice(wrong) = {static_cast<std::int32_t>(plan.groups.size())};
  EXPECT_THROW(parse_plan(to_json(wrong), "split.plan.json"), Error);
}

// A gather left out, transfers of other sizes on one side, and slices that the blocks of both sides do not have.
TEST(Transfers, CheckPlanNamesWhatIsMissing) {
  Strategy s = split(4, 2);
  const Plan plan = lowered(small(), load_cluster("dgx-a100-x2"), s).plan;
  ASSERT_TRUE(check_plan(plan).empty());
  const auto names = [](const Plan& wrong, const std::string& rule) {
    return std::ranges::any_of(check_plan(wrong), [&](const PlanDefect& defect) { return defect.rule == rule; });
  };
  int gathers_left_out = 0;
  for (std::size_t g = 0; g < plan.segments.size(); ++g)
    for (std::size_t i = 0; i < plan.segments[g].instructions.size(); ++i) {
      const Instruction& run = plan.segments[g].instructions[i];
      Plan wrong = plan;
      Instruction& there = wrong.segments[g].instructions[i];
      if (gathers(run)) {
        there.what = Mark{};
        EXPECT_TRUE(names(wrong, "slice-not-gathered"));
        ++gathers_left_out;
      } else if (auto* exchange = std::get_if<Exchange>(&there.what)) {
        exchange->bytes = exchange->bytes * 2;
        EXPECT_TRUE(names(wrong, "exchange-mismatch")) << run.name;
      }
    }
  EXPECT_EQ(gathers_left_out, 4);  // of a first and a later micro-batch, in both directions
  Plan wrong = plan;
  for (Segment& segment : wrong.segments)
    for (Instruction& run : segment.instructions)
      if (auto* exchange = std::get_if<Exchange>(&run.what)) exchange->bytes = exchange->bytes * 2;
  EXPECT_TRUE(names(wrong, "operand-missing"));
}

}  // namespace foreshard::transfers_test
