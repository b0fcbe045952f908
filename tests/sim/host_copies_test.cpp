// Copies to and from host memory on the links of a node.
#include "core/cluster_file/cluster_file.h"
#include "core/cluster_file/cluster_settings.h"
#include "replay/light_clock.h"
#include "replay/replay.h"
#include "sim/simulate.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::host_copies_test {
namespace {

// Seconds on the links of the first parameters that are brought: its set-up is before the first byte.
double first_copy(const Plan& plan, const Result& result) {
  const Role& role = plan.roles.front();
  for (const Span& span : result.trace.spans) {
    const Action& action = role.actions[static_cast<std::size_t>(span.action)];
    const std::size_t segment = action.segment.index(), at = static_cast<std::size_t>(span.instruction);
    if (plan.segments[segment].instructions[at].name != "bring parameters") continue;
    return to_seconds(span.end - span.begin - plan.costs.front().by_segment[segment][at].busy).value;
  }
  ADD_FAILURE() << "no copy";
  return 0;
}

// Time before the first byte of the first parameters that are brought.
Nanoseconds first_set_up(const Plan& plan) {
  for (const Action& action : plan.roles.front().actions) {
    const Segment& segment = plan.segments[action.segment.index()];
    for (std::size_t at = 0; at < segment.instructions.size(); ++at)
      if (segment.instructions[at].name == "bring parameters")
        return plan.costs.front().by_segment[action.segment.index()][at].busy;
  }
  ADD_FAILURE() << "no copy";
  return {};
}

}  // namespace

// Four GPUs and a switch have one link to the processor between them: max-min shares it equally. One below each of the two switches have one
// each.
TEST(HostCopies, GpusUnderOneSwitchShareItsLink) {
  const auto played = [](int dp, bool simgrid) {
    Strategy s{.dp = dp, .batch = {.micro = 1, .seq = 256}};
    s.offload.parameters = Space::PinnedHost;
    const Plan plan = lowered("gpt2-124m", "pcie-a100-8", s).plan;
    const Cluster cluster = load_cluster("pcie-a100-8");
    player::LightClock clock;
    return first_copy(plan, simgrid ? simulate(plan, cluster) : replay(plan, cluster, clock));
  };
  for (const bool simgrid : {true, false}) {
    const double alone = played(1, simgrid);
    ASSERT_GT(alone, 0);
    for (const int together : {2, 4}) EXPECT_NEAR(played(together, simgrid), together * alone, 2e-9) << together;
    EXPECT_NEAR(played(8, simgrid), 4 * alone, 2e-9);  // four below each switch
  }
}

// One request of 64 KiB at a time at the drive of a workstation: 65,536 bytes in 80 us + 65,536 / 7.877 GB/s. A copy takes its first request's
// 80 us, then its bytes at that rate, on both clocks; two GPUs share it. Eight requests of 1 MiB keep the drive busy.
TEST(HostCopies, ACopyFromADriveHasTheRateOfItsQueue) {
  const auto played = [](const std::vector<std::pair<std::string, std::string>>& settings, int dp, bool simgrid) {
    Strategy s{.dp = dp, .batch = {.micro = 1, .seq = 256}};
    s.offload.parameters = Space::Nvme;
    const Cluster cluster = cluster_with("workstation-rtx4090", settings, "a test");
    const Plan plan = lowered(load_model("gpt2-124m"), cluster, s).plan;
    player::LightClock clock;
    return std::pair{plan, first_copy(plan, simgrid ? simulate(plan, cluster) : replay(plan, cluster, clock))};
  };
  const std::vector<std::pair<std::string, std::string>> one = {{"nvme.queue_depth", "1"}, {"nvme.block", "\"64 KiB\""}};
  for (const bool simgrid : {true, false}) {
    const auto [plan, busy] = played({}, 1, simgrid);
    const auto [same, waits] = played(one, 1, simgrid);
    ASSERT_GT(busy, 0);
    EXPECT_NEAR(waits / busy, 7.877e9 / (65536 / (80e-6 + 65536 / 7.877e9)), 1e-6);
    EXPECT_NEAR(played(one, 2, simgrid).second, 2 * waits, 2e-9);
    EXPECT_GE(first_set_up(plan), Nanoseconds{80'000});
    Strategy in_memory{.dp = 1, .batch = {.micro = 1, .seq = 256}};
    in_memory.offload.parameters = Space::PinnedHost;
    const Plan host = lowered("gpt2-124m", "workstation-rtx4090", in_memory).plan;
    EXPECT_EQ(first_set_up(plan), first_set_up(host) + Nanoseconds{80'000});
  }
}

}  // namespace foreshard::host_copies_test
