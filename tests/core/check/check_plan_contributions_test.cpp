// Gradients of micro-batches that do not reach the update. The small plan on one device per stage: no reduction is missing, so only the way of each
// contribution shows the mistake.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/check/check_plan.h"
#include "tests/core/support_plan.h"

namespace foreshard::check_plan_contributions_test {
namespace {

constexpr BufferId kGradient{1}, kMomentum{2};

// Without replicas: 3 samples are 3 micro-batches.
Plan one_replica() {
  Plan plan = small_plan();
  plan.axes[0].size = 1, plan.samples = 3;
  return plan;
}

std::string text(const std::vector<PlanDefect>& defects) {
  std::string all;
  for (const PlanDefect& d : defects) all += d.rule + " | " + d.where + " | " + d.what + "\n";
  return all;
}
bool names(const Plan& plan, const std::string& rule) {
  return std::ranges::any_of(check_plan(plan), [&](const PlanDefect& d) { return d.rule == rule; });
}

Compute& backward(Plan& plan, const char* segment) {
  return std::get<Compute>(instruction_named(plan, segment, "gradient").what);
}

// Stage 0 keeps its gradient in host memory, where the update reads it: every backward copies there what it computed.
Plan with_copies(bool accumulates) {
  Plan plan = one_replica();
  plan.costs.clear();
  Role& role = plan.roles[0];
  Buffer host = role.buffers[kGradient.index()];
  host.name = "gradient on the host", host.space = Space::PinnedHost, host.offsets = {{0}};
  role.buffers.push_back(host);
  role.buffers[kGradient.index()].resident = false;
  const BufferId there{static_cast<std::int32_t>(role.buffers.size()) - 1};
  Segment& segment = plan.segments[segment_named(plan, "backward.0").index()];
  std::get<Compute>(instruction_named(plan, "backward.0", "gradient").what).accumulate_weights = accumulates;
  Instruction& compute = instruction_named(plan, "backward.0", "gradient");
  const auto index = static_cast<std::int32_t>(&compute - segment.instructions.data());
  compute.acquires.push_back({kGradient});
  if (accumulates) {  // first brings back what the host has
    Instruction bring{.name = "bring back", .what = Copy{.bytes = {1024}}, .stream = {0}};
    bring.reads = {{there}}, bring.writes = {{kGradient}}, bring.acquires = {{kGradient}};
    compute.acquires.pop_back();
    segment.instructions.insert(segment.instructions.begin() + index, bring);
  }
  Instruction take{.name = "take away", .what = Copy{.bytes = {1024}}, .stream = {0}};
  take.reads = {{kGradient}}, take.writes = {{there}}, take.releases = {{kGradient}};
  take.records = {instruction_named(plan, "backward.0", "gradient").records.front()};  // the update waits for it
  segment.instructions.push_back(take);
  for (Instruction& run : segment.instructions)
    for (std::int32_t& after : run.after)
      if (accumulates && after >= index) ++after;
  plan.segments.push_back(plan.segments[segment_named(plan, "update").index()]);
  Segment& update = plan.segments.back();
  update.name = "update on the host";
  for (Instruction& run : update.instructions)
    for (std::vector<Use>* uses : {&run.reads, &run.writes})
      for (Use& use : *uses)
        if (use.buffer == kGradient) use.buffer = there;
  role.actions.back().segment = {static_cast<std::int32_t>(plan.segments.size()) - 1};
  return plan;
}

}  // namespace

TEST(Contributions, TheSmallPlanOfOneReplicaIsSound) { EXPECT_EQ(text(check_plan(one_replica())), ""); }

TEST(Contributions, PlantedMistakesAreNamed) {
  struct Mistake {
    const char* what;
    const char* rule;
    std::function<void(Plan&)> plant;
  };
  const std::vector<Mistake> mistakes = {
      {"each backward overwrites", "gradient-lost", [](Plan& p) { backward(p, "backward.0").accumulate_weights = false; }},
      {"zeroed before the update", "gradient-lost",
       [](Plan& p) {
         Segment& update = p.segments[segment_named(p, "update").index()];
         std::swap(update.instructions[1].what, update.instructions[2].what);
         std::swap(update.instructions[1].reads, update.instructions[2].reads);
         std::swap(update.instructions[1].writes, update.instructions[2].writes);
       }},
      {"never read", "gradient-lost", [](Plan& p) { instruction_named(p, "update", "adam").reads[0].buffer = kMomentum; }},
      {"one micro-batch computes no gradient", "gradient-lost",
       [](Plan& p) {
         p.costs.clear();
         p.segments.push_back(p.segments[segment_named(p, "backward.1").index()]);
         Instruction& compute = instruction_named(p, p.segments.back().name = "without", "gradient");
         std::erase_if(compute.writes, [](const Use& use) { return use.buffer == kGradient; });
         for (Action& action : p.roles[1].actions)
           if (!action.does.empty() && action.does[0].work == Work::B && action.does[0].microbatch == 1)
             action.segment = {static_cast<std::int32_t>(p.segments.size()) - 1};
       }},
      {"the update takes it a second time", "gradient-repeated",
       [](Plan& p) {  // nothing sets it to zero
         Segment& update = p.segments[segment_named(p, "update").index()];
         update.instructions.pop_back();
         p.costs.clear();
       }},
  };
  for (const Mistake& mistake : mistakes) {
    Plan plan = one_replica();
    mistake.plant(plan);
    EXPECT_TRUE(names(plan, mistake.rule)) << mistake.what << "\n" << text(check_plan(plan));
  }
}

TEST(Contributions, ACopyThatOverwritesTheGradientsOfEarlierMicroBatchesLosesThem) {
  EXPECT_TRUE(names(with_copies(false), "gradient-lost")) << text(check_plan(with_copies(false)));
  EXPECT_EQ(text(check_plan(with_copies(true))), "");
}

}  // namespace foreshard::check_plan_contributions_test
