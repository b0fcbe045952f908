#include "core/check/check_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/core/support_plan.h"

namespace foreshard::check_plan_test {
namespace {

std::string text(const std::vector<PlanDefect>& defects) {
  std::string all;
  for (const PlanDefect& d : defects) all += d.rule + " | " + d.where + " | " + d.what + "\n";
  return all;
}

// The first defect carries `rule`; the text of all for the message.
::testing::AssertionResult refused(const Plan& plan, const std::string& rule, const CheckPlanOptions& options = {}) {
  const std::vector<PlanDefect> defects = check_plan(plan, options);
  const bool named = std::any_of(defects.begin(), defects.end(), [&](const PlanDefect& d) { return d.rule == rule; });
  if (named) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "no " << rule << " among:\n" << text(defects);
}

Instruction& instruction(Plan& plan, const char* segment, const char* name) { return instruction_named(plan, segment, name); }

}  // namespace

TEST(CheckPlan, TheSmallPlanIsSound) { EXPECT_EQ(text(check_plan(small_plan())), ""); }

// Each: one mistake, and the rule that has to name it.
TEST(CheckPlan, PlantedMistakesAreNamed) {
  struct Mistake {
    const char* what;
    const char* rule;
    std::function<void(Plan&)> plant;
  };
  const std::vector<Mistake> mistakes = {
      {"a receive that does not wait for its slot", "reuse-unordered",
       [](Plan& p) { instruction(p, "forward.1", "receive").waits.clear(); }},
      {"a release on the wrong stream", "release-unordered",
       [](Plan& p) {  // the next receive frees what the compute still reads
         Instruction& compute = instruction(p, "forward.1", "multiply");
         std::erase_if(compute.releases, [](const Block& b) { return b.buffer == BufferId{5}; });
         Instruction mark{.name = "free", .what = Mark{}, .stream = {1}, .releases = {{{5}, {ParamId{1}}}}};
         p.segments[2].instructions.push_back(mark);
         for (Role& role : p.roles) role.layers.clear();
         p.costs.clear();
       }},
      {"a dropped reduction", "gradient-not-reduced", [](Plan& p) { instruction(p, "update", "all_reduce").what = Mark{}; }},
      {"a reduction over nothing", "gradient-not-reduced", [](Plan& p) { p.groups[0].over.clear(); }},
      {"a reduction before the last backward", "access-unordered",
       [](Plan& p) { instruction(p, "update", "all_reduce").waits.clear(); }},
      {"a gradient reduced twice", "gradient-over-reduced",
       [](Plan& p) {
         Segment& update = p.segments[4];
         update.instructions.insert(update.instructions.begin() + 1, update.instructions[0]);
         update.instructions[1].after = {0};
         update.instructions[2].after = {1};
         p.costs.clear();
       }},
      {"shards of different elements summed", "gradient-over-reduced",
       [](Plan& p) {
         p.axes.push_back({.name = "tp", .dense = DenseKind::Tensor, .size = 2}), p.placement.order.clear();
         for (Role& role : p.roles) {
           role.axes.push_back({1});
           role.buffers[1].holds[0].split_by = {{1}};
         }
         p.groups[0].over.push_back({1});
       }},
      {"a gradient overwritten", "gradient-lost",
       [](Plan& p) { std::get<Compute>(instruction(p, "backward.0", "gradient").what).accumulate_weights = false; }},
      {"an optimizer beside the gradients", "update-without-gradient",
       [](Plan& p) { instruction(p, "update", "adam").reads.erase(instruction(p, "update", "adam").reads.begin()); }},
      {"mismatched bytes", "exchange-mismatch",
       [](Plan& p) { std::get<Exchange>(instruction(p, "forward.0", "send").what).bytes = {256}; }},
      {"a lost send", "exchange-mismatch", [](Plan& p) { instruction(p, "forward.0", "send").what = Mark{}; }},
      {"another tag", "exchange-mismatch",
       [](Plan& p) { std::get<Exchange>(instruction(p, "forward.0", "send").what).tag = "x"; }},
      {"a peer beyond the last role", "peer-missing",
       [](Plan& p) { std::get<Exchange>(instruction(p, "forward.0", "send").what).to->role_shift = 2; }},
      {"a peer with other axes", "peer-missing", [](Plan& p) { p.roles[1].axes.clear(); }},
      {"a message larger than its block", "operand-missing",
       [](Plan& p) {
         for (const char* s : {"forward.0", "forward.1"})
           for (const char* name : {"send", "receive"})
             for (Instruction& i : p.segments[segment_named(p, s).index()].instructions)
               if (i.name == name) std::get<Exchange>(i.what).bytes = {1024};
       }},
      {"a reduction of more than its block", "operand-missing",
       [](Plan& p) { std::get<Collective>(instruction(p, "update", "all_reduce").what).bytes = {1028}; }},
      {"a reduction of more than anything has", "operand-missing",
       [](Plan& p) { std::get<Collective>(instruction(p, "update", "all_reduce").what).bytes = {1'000'000'000'000'000}; }},
      {"an all-gather into less than the whole", "operand-missing",
       [](Plan& p) {  // two members: it may read half, but writes all 1,024 bytes
         Instruction& gather = instruction(p, "update", "all_reduce");
         std::get<Collective>(gather.what).kind = CollectiveKind::AllGather;
         gather.writes = {Use{.buffer = {3}, .slot = {0}}};
       }},
      {"a missing wait", "access-unordered", [](Plan& p) { instruction(p, "forward.1", "multiply").after.clear(); }},
      {"a wait for an event of nobody", "wait-without-record",
       [](Plan& p) {
         for (const char* s : {"backward.0", "backward.1"})
           std::erase_if(instruction(p, s, "gradient").records, [](const EventUse& e) { return e.event == EventId{2}; });
       }},
      {"overlapping offsets", "shared-bytes-unordered",
       [](Plan& p) { buffer_named(p.roles[0], "saved").offsets[1] = {3072 + 256}; }},
      {"overlapping resident blocks", "shared-bytes-unordered",
       [](Plan& p) { buffer_named(p.roles[0], "gradient").offsets[0] = {1000}; }},
      {"workspaces of two streams share bytes", "shared-bytes-unordered",
       [](Plan& p) { buffer_named(p.roles[0], "output").offsets[0] = buffer_named(p.roles[0], "incoming").offsets[0]; }},
      {"two slots that are one", "double-acquire", [](Plan& p) { p.roles[0].actions[1].args[1] = 0; }},
      {"a release that is not there", "life-not-closed", [](Plan& p) { p.roles[0].actions[5].args[1] = 1; }},
      {"a use after the release", "use-outside-life",
       [](Plan& p) {
         instruction(p, "forward.1", "multiply").releases.push_back({{3}, {ParamId{1}}});
       }},
      {"a resident block acquired", "resident-acquired",
       [](Plan& p) {
         instruction(p, "update", "adam").acquires.push_back({{0}, {}});
       }},
      {"a lost micro-batch", "work-missing", [](Plan& p) { p.samples = 8, p.microbatches = 4; }},
      {"a micro-batch forgotten by the backward", "work-missing", [](Plan& p) { p.roles[0].actions[2].does.clear(); }},
      {"a micro-batch twice", "work-repeated", [](Plan& p) { p.roles[0].actions[1].does[0].microbatch = 0; }},
      {"a backward first", "work-order", [](Plan& p) { std::swap(p.roles[1].actions[0].does, p.roles[1].actions[1].does); }},
      {"another weight version", "weight-version", [](Plan& p) { p.roles[1].actions[1].does[0].version = 1; }},
      {"more updates than there are", "update-count", [](Plan& p) { p.updates = 7; }},
      {"a stage that is updated twice", "update-count",
       [](Plan& p) { p.roles[1].actions.push_back(p.roles[1].actions.back()); }},
      {"no samples", "index-out-of-range", [](Plan& p) { p.samples = 0; }},
      {"fewer samples than micro-batches", "index-out-of-range", [](Plan& p) { p.samples = 2; }},
      {"an order of an axis that is not there", "index-out-of-range",
       [](Plan& p) {
         p.placement.order = {{1}, Placement::kRole};
       }},
      {"an order that leaves an axis out", "index-out-of-range", [](Plan& p) { p.placement.order = {Placement::kRole}; }},
      {"an order that leaves the role out", "index-out-of-range", [](Plan& p) { p.placement.order = {{0}}; }},
      {"an order with an axis twice", "index-out-of-range",
       [](Plan& p) {
         p.placement.order = {{0}, Placement::kRole, {0}};
       }},
      {"an index out of range", "index-out-of-range", [](Plan& p) { instruction(p, "update", "adam").stream = {9}; }},
  };
  for (const Mistake& mistake : mistakes) {
    Plan plan = small_plan();
    mistake.plant(plan);
    EXPECT_TRUE(refused(plan, mistake.rule)) << mistake.what;
  }
}

// Two roles reduce a tied tensor together and another one alone, on one stream; the second role calls them in the other
// order.
TEST(CheckPlan, SwappedCollectivesAreAMismatchOrADeadlock) {
  Plan plan = small_plan();
  plan.groups.push_back({"tied", {{0}, {1}}, {{0}}});
  plan.groups.push_back({"both", {{0}, {1}}, {}});
  const auto call = [](const char* name, std::int32_t group, std::int64_t bytes) {
    return Instruction{.name = name,
                       .what = Collective{.group = {group}, .bytes = {bytes}},
                       .stream = {3},
                       .reads = {{{8}}},
                       .writes = {{{8}}}};
  };
  Segment first{.name = "first", .instructions = {call("a", 1, 8), call("b", 1, 16), call("c", 2, 8)}};
  plan.costs.clear();
  for (Role& role : plan.roles)
    role.buffers.push_back(Buffer{.name = "sums", .bytes = {64}, .offsets = {{8000}}, .resident = true});
  const auto with = [&](Segment second) {
    Plan p = plan;
    p.segments.push_back(first), p.segments.push_back(std::move(second));
    for (std::int32_t r : {0, 1}) {
      std::vector<Action>& actions = p.roles[static_cast<std::size_t>(r)].actions;
      actions.insert(actions.begin(), Action{.segment = {5 + r}});
      for (Instruction& i : p.segments[static_cast<std::size_t>(5 + r)].instructions) i.waits = {{{2}}};
      instruction(p, r == 0 ? "forward.0" : "forward.1", "multiply").waits.push_back({{2}});
    }
    return p;
  };
  const auto meets = [&](const Plan& p, const char* rule) { return refused(p, rule); };
  Segment second = first;
  EXPECT_FALSE(meets(with(second), "collective-mismatch"));
  EXPECT_FALSE(meets(with(second), "deadlock"));
  std::swap(second.instructions[0], second.instructions[1]);  // one group: the calls do not match
  EXPECT_TRUE(meets(with(second), "collective-mismatch"));
  second = first;
  std::swap(second.instructions[1], second.instructions[2]);  // two groups: each waits for the other
  EXPECT_TRUE(meets(with(second), "deadlock"));
  second.instructions[1].stream = {2};  // on another stream both can go on
  EXPECT_FALSE(meets(with(second), "deadlock"));
}

TEST(CheckPlan, AGroupMustListTheRoleThatCallsIt) {
  Plan plan = small_plan();
  plan.groups[0].roles = {{0}};
  EXPECT_TRUE(refused(plan, "group-without-role"));
}

TEST(CheckPlan, AGroupOfDifferentShapesIsAsymmetric) {
  Plan plan = small_plan();
  plan.axes.push_back({.name = "tp", .dense = DenseKind::Tensor, .size = 2}), plan.placement.order.clear();
  plan.roles[0].axes.push_back({1});
  plan.groups.push_back({"both", {{0}, {1}}, {{0}}});
  EXPECT_TRUE(refused(plan, "group-asymmetric"));
  plan.groups.back().over.push_back({1});
  EXPECT_FALSE(refused(plan, "group-asymmetric"));
}

// Both stages receive before they send, on one stream: the classic deadlock of blocking sends.
TEST(CheckPlan, ReceivesBeforeSendsOnOneStreamDeadlock) {
  Plan plan{.samples = 1, .axes = {{.name = "dp", .size = 1}}};
  const auto side = [](std::int32_t shift, bool receive_first) {
    Instruction send{.what = Exchange{.to = Peer{.role_shift = shift}, .bytes = {8}}, .stream = {0}, .reads = {{{0}}}};
    Instruction receive{.what = Exchange{.from = Peer{.role_shift = shift}, .bytes = {8}}, .stream = {0}, .writes = {{{1}}}};
    return Segment{.instructions = receive_first ? std::vector{receive, send} : std::vector{send, receive}};
  };
  Role role{.streams = {{"one"}}, .actions = {{{0}}}};
  role.buffers = {Buffer{.bytes = {8}, .resident = true}, Buffer{.bytes = {8}, .offsets = {{8}}, .resident = true}};
  plan.roles = {role, role};
  plan.roles[1].actions = {{{1}}};
  plan.stages = 1, plan.microbatches = 1;
  plan.segments = {side(1, true), side(-1, true)};
  EXPECT_TRUE(refused(plan, "deadlock"));
  plan.segments = {side(1, false), side(-1, false)};
  EXPECT_TRUE(refused(plan, "deadlock"));  // a send does not leave before its receive is there
  plan.segments = {side(1, false), side(-1, true)};
  EXPECT_FALSE(refused(plan, "deadlock"));
}

// A ring on an axis: each rank sends to the next and receives from the one before, in one step or not.
TEST(CheckPlan, ARingOnAnAxisMeetsItselfBySymmetry) {
  Plan plan{.samples = 1, .axes = {{.name = "cp", .dense = DenseKind::Context, .size = 4}}};
  Role role{.axes = {{0}}, .streams = {{"one"}}, .actions = {{{0}}}};
  role.buffers = {Buffer{.bytes = {8}, .resident = true}, Buffer{.bytes = {8}, .offsets = {{8}}, .resident = true}};
  plan.roles = {role};
  const Peer next{.axes = {AxisId{0}}, .shift = 1}, before{.axes = {AxisId{0}}, .shift = -1};
  Instruction both{
      .what = Exchange{.to = next, .from = before, .bytes = {8}}, .stream = {0}, .reads = {{{0}}}, .writes = {{{1}}}};
  plan.segments = {Segment{.instructions = {both}}};
  EXPECT_FALSE(refused(plan, "deadlock"));
  EXPECT_FALSE(refused(plan, "exchange-mismatch"));
  std::get<Exchange>(both.what).from = Peer{.axes = {AxisId{0}}, .shift = 3};  // -1 mod 4
  plan.segments = {Segment{.instructions = {both}}};
  EXPECT_FALSE(refused(plan, "exchange-mismatch"));
  std::get<Exchange>(both.what).from = next;  // everybody waits for the wrong side
  plan.segments = {Segment{.instructions = {both}}};
  EXPECT_TRUE(refused(plan, "exchange-mismatch"));
  Instruction send = both, receive = both;  // apart on one stream: the whole ring stands still
  std::get<Exchange>(send.what).from = {};
  std::get<Exchange>(receive.what) = Exchange{.from = before, .bytes = {8}};
  plan.segments = {Segment{.instructions = {send, receive}}};
  EXPECT_TRUE(refused(plan, "deadlock"));
}

// A tensor held by two roles has to be reduced over both.
TEST(CheckPlan, ATiedGradientIsReducedOverAllItsHolders) {
  Plan plan = small_plan();
  for (int b = 0; b < 3; ++b) plan.roles[1].buffers[static_cast<std::size_t>(b)].holds[0].tensor = {0};
  EXPECT_TRUE(refused(plan, "gradient-not-reduced"));
  plan.groups[0].roles = {{0}, {1}};
  EXPECT_EQ(text(check_plan(plan)), "");
}

TEST(CheckPlan, CapacityCountsArenaFrameworkAndReserve) {
  Plan plan = small_plan();
  plan.framework = {1000}, plan.reserve = {344};
  // arena 6656 (the backward space ends there) + 1000 + 344 = 8000
  EXPECT_EQ(text(check_plan(plan, {.capacity = {{"test-gpu", {8000}}}})), "");
  EXPECT_TRUE(refused(plan, "capacity", {.capacity = {{"test-gpu", {7999}}}}));
  plan.placement.explicit_devices = {{0}, {1}, {0}, {1}};  // two ranks on a device: 2 * 6656 + 1344 = 14656
  EXPECT_TRUE(refused(plan, "capacity", {.capacity = {{"test-gpu", {14655}}}}));
  EXPECT_EQ(text(check_plan(plan, {.capacity = {{"test-gpu", {14656}}}})), "");
}

TEST(CheckPlan, HostMemorySumsOverTheRanksOfANode) {
  Plan plan = small_plan();
  for (Role& role : plan.roles) role.buffers.push_back(Buffer{.space = Space::PinnedHost, .bytes = {100}, .resident = true});
  // 4 ranks, 2 per node: 200 bytes
  EXPECT_EQ(text(check_plan(plan, {.host_capacity = {200}, .ranks_per_node = 2})), "");
  EXPECT_TRUE(refused(plan, "host-capacity", {.host_capacity = {199}, .ranks_per_node = 2}));
}

TEST(CheckPlan, StaleWeightsAndTheNumberOfDefectsAreOptions) {
  Plan plan = small_plan();
  plan.roles[1].actions[1].does[0].version = 1;
  EXPECT_EQ(text(check_plan(plan, {.stale_weights_allowed = true})), "");
  plan.samples = 18, plan.microbatches = 9;
  EXPECT_EQ(check_plan(plan, {.most_defects = 3}).size(), 3U);
}

// Everything in the small plan is there for a reason: whichever single wait, record, acquire or release is dropped, it
// shows.
TEST(CheckPlan, NoOrderOrLifeOfTheSmallPlanIsDispensable) {
  const Plan sound = small_plan();
  const auto drop = [&](const char* what, auto member) {
    for (std::size_t s = 0; s < sound.segments.size(); ++s)
      for (std::size_t i = 0; i < sound.segments[s].instructions.size(); ++i)
        for (std::size_t k = 0; k < (sound.segments[s].instructions[i].*member).size(); ++k) {
          Plan plan = sound;
          auto& list = plan.segments[s].instructions[i].*member;
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(k));
          EXPECT_NE(text(check_plan(plan)), "") << what << " " << k << " of " << sound.segments[s].name << ", instruction "
                                                << sound.segments[s].instructions[i].name;
        }
  };
  drop("after", &Instruction::after);
  drop("wait", &Instruction::waits);
  drop("record", &Instruction::records);
  drop("acquire", &Instruction::acquires);
  drop("release", &Instruction::releases);
}

}  // namespace foreshard::check_plan_test
