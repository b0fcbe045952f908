// Copies to and from host memory on the links of a node.
#include "core/cluster_file/cluster_file.h"
#include "replay/light_clock.h"
#include "replay/replay.h"
#include "sim/simulate.h"
#include "tests/strategy/support_lower.h"

namespace foreshard {
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

}  // namespace foreshard
