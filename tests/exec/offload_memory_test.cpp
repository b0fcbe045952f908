// What host memory is for: training in device memory that the plan without it does not fit into, with transfers beside the computes.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/result/memory_timeline.h"
#include "strategy/cost/runtime_policy.h"
#include "tests/exec/training.h"

namespace foreshard::offload_memory_test {
namespace {

Bytes device_arena(const Plan& plan) {
  Bytes most = {};
  for (const Role& role : plan.roles) most = std::max(most, arena_bytes(role, Space::Device));
  return most;
}

Strategy on_two(const OffloadChoice& offload, const char* policy = "auto") {
  Strategy s{.dp = 2, .batch = {.micro = 2}, .policy = policy};
  s.offload = offload;
  s.device_memory.framework = Bytes{0};
  s.communication.bucket = Bytes{20'000};  // places of states are two of the largest
  return in_double(s);
}

// The same weights as the plan that keeps everything, within a limit into which that one does not fit.
void train_within(const Strategy& strategy, const std::string& name) {
  const Plan all = lowered(tiny_gpt(false), on_two({})), plan = lowered(tiny_gpt(false), strategy);
  ASSERT_LT(device_arena(plan), device_arena(all)) << name;
  ExecuteOptions limited = training();
  limited.memory_limit = device_arena(plan);
  EXPECT_TRUE(std::holds_alternative<Infeasible>(execute(all, limited))) << name;
  const auto within = execute(plan, limited);
  ASSERT_TRUE(std::holds_alternative<Execution>(within)) << name << ": " << std::get<Infeasible>(within).reason;
  const Difference apart = difference(run(all, training()), std::get<Execution>(within));
  EXPECT_LT(std::max(apart.loss, apart.values), 1e-12) << name << ", " << apart.worst;
}

}  // namespace

TEST(OffloadMemory, TrainsInADeviceThatIsTooSmallWithout) {
  const Space host = Space::PinnedHost;
  const std::pair<const char*, OffloadChoice> ways[] = {
      {"optimizer", {.optimizer = host}},
      {"optimizer on drives", {.optimizer = Space::Nvme}},
      {"optimizer, updated by the device", {.optimizer = host, .updated_on = UpdatedOn::Device}},
      {"all states", {.optimizer = host, .parameters = host, .gradients = host}},
      {"activations", {.activations = OffloadedActivations::All}}};
  for (const auto& [name, offload] : ways) train_within(on_two(offload), name);
}

TEST(OffloadMemory, PoliciesTrainInADeviceThatIsTooSmallWithout) {
  for (const RuntimePolicy& policy : runtime_policies())
    if (policy.optimizer_on_host && policy.parameters_on_host) train_within(on_two({}, policy.name.c_str()), policy.name);
}

// Wall clock: of the copies of a step some run while a compute of their rank does. All of them in turn would take none.
TEST(OffloadMemory, TransfersRunBesideComputes) {
  // Copies and products of a few microseconds would hardly meet on a busy machine.
  const Plan plan =
      lowered(twice_as_large(twice_as_large(tiny_gpt(false))),
              on_two({.optimizer = Space::PinnedHost, .parameters = Space::PinnedHost, .gradients = Space::PinnedHost}));
  const Trace trace = run(plan, training()).result.trace;
  const auto what = [&](const Span& span) -> const Instruction& {
    const Role& role = plan.roles[trace.classes[span.who.index()].role.index()];
    return plan.segments[role.actions[static_cast<std::size_t>(span.action)].segment.index()]
        .instructions[static_cast<std::size_t>(span.instruction)];
  };
  int copies = 0, beside = 0;
  for (const Span& copy : trace.spans) {
    if (!std::holds_alternative<Copy>(what(copy).what)) continue;
    ++copies;
    beside += std::ranges::any_of(trace.spans, [&](const Span& other) {
      return other.who == copy.who && std::holds_alternative<Compute>(what(other).what) && other.begin < copy.end &&
             copy.begin < other.end;
    });
  }
  EXPECT_GT(copies, 50);
  EXPECT_GT(beside, 0);
}

}  // namespace foreshard::offload_memory_test
