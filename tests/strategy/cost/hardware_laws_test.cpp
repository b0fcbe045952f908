// Hardware that can only help is never slower, of isolated collectives. The last slice of a collective jumps by some hundred
// thousandths where another link becomes the busiest: 1e-4 is allowed.
#include <gtest/gtest.h>

#include <string>

#include "strategy/cost/communication_path.h"
#include "tests/how_many.h"
#include "tests/strategy/support_machine.h"

namespace foreshard::hardware_laws_test {
namespace {

constexpr const char* kKinds[] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce", "all-to-all"};

double alone(const Cluster& cluster, const Collective& what, const std::vector<DeviceId>& members) {
  const Network network(cluster);
  const CommunicationPath path = communication_path(network, what, members);
  const Cost cost = collective_cost(network.gpu(members.front()), what, path);
  return to_seconds(cost.busy).value + path.flow.value * cost.wire_factor;
}

}  // namespace

TEST(HardwareLaws, BetterHardwareIsNeverSlower) {
  RandomChoice random(61);
  int pairs = 0, faster = 0, more_nics = 0;
  const int wanted = how_many(600, 3000);
  for (int draw = 0; pairs < wanted && draw < 4 * wanted; ++draw) {
    Machine before = random_machine(random), after = before;
    const std::string what = improve(after, random);
    const Collective collective{
        .kind = random.one_of(
            {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll}),
        .algorithm = random.one_of({Algorithm::Ring, Algorithm::Tree, Algorithm::DoubleTree, Algorithm::Hierarchical}),
        .bytes = {std::int64_t{1} << random(12, 31)}};
    const int all = 8 * before.nodes, step = random.one_of({1, 2, 4, 8});
    std::vector<DeviceId> members;
    for (int device = 0; device < all; device += step) members.push_back({device});
    if (members.size() < 2) continue;
    const double slow = alone(parse_cluster(before.text(), "before.json"), collective, members);
    const double fast = alone(parse_cluster(after.text(), "after.json"), collective, members);
    ++pairs, faster += fast < slow ? 1 : 0, more_nics += after.nics > before.nics ? 1 : 0;
    EXPECT_LE(fast, slow * (1 + 1e-4)) << before.text() << ": " << kKinds[static_cast<std::size_t>(collective.kind)] << ", "
                                       << name_of(collective.algorithm) << ", " << collective.bytes.value
                                       << " bytes over every " << step << " of " << all << ", with better " << what;
  }
  EXPECT_EQ(pairs, wanted);
  EXPECT_GT(faster, wanted / 5);
  EXPECT_GT(more_nics, wanted / 20);
}

}  // namespace foreshard::hardware_laws_test
