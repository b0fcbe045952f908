#include "exec/calibrate/calibrate_collectives.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/error.h"
#include "tests/exec/processes.h"

namespace foreshard::calibrate_collectives_test {
namespace {

using enum MeasuredLink;

std::vector<RankLocation> locations(const std::vector<std::string>& nodes) {
  std::vector<RankLocation> all;
  for (const std::string& node : nodes) all.push_back({.node = node});
  return all;
}

// Groups and sizes of each kind, by link and ranks.
std::map<std::string, int> counts(const std::vector<CollectiveMeasure>& measures) {
  std::map<std::string, int> all;
  for (const CollectiveMeasure& at : measures) {
    ++all[word_of(at.link) + " " + std::to_string(at.nodes) + " " + std::to_string(at.ranks)];
    EXPECT_GT(at.time.value, 0);
    EXPECT_EQ(at.algorithm, MeasuredAlgorithm::Direct);
    EXPECT_EQ(at.bytes.value % (4 * at.ranks), 0);
  }
  return all;
}

// Four processes on two nodes: five kinds, 4 and 16 KiB; process 0 alone has the answers. The profile takes them and reads back.
TEST(CollectiveMeasures, OfProcessesOnTwoNodes) {
  in_processes(4, 4, [](ProcessMesh& mesh) {
    const auto groups = groups_to_measure(locations({"a", "a", "b", "b"}), false);
    const auto ranks = host_ranks(&mesh, 0, {16384});
    const auto measures = measure_collectives(*ranks, &mesh, groups, {.most = {16384}, .most_rounds = 5});
    EXPECT_EQ(measures.empty(), mesh.process() != 0);
    if (mesh.process() != 0) return;
    EXPECT_EQ(counts(measures), (std::map<std::string, int>{{"node 1 2", 10}, {"network 2 2", 10}, {"network 2 4", 10}}));
    MachineProfile profile{.device = "host"};
    take_collectives(profile, measures);
    EXPECT_EQ(parse_machine_profile(to_json(profile), "p").collectives, measures);
  });
}

TEST(CollectiveMeasures, OfThreads) {
  const auto ranks = host_ranks(nullptr, 3, {16384});
  const auto measures =
      measure_collectives(*ranks, nullptr, groups_to_measure(locations({"a", "a", "a"}), true), {.most = {16384}});
  EXPECT_EQ(counts(measures), (std::map<std::string, int>{{"process 1 2", 10}, {"process 1 3", 10}}));
}

// Ranks of a script: what each takes in which round.
class ScriptedRanks : public CollectiveRanks {
 public:
  explicit ScriptedRanks(std::function<double(int rank, std::size_t call, int round)> takes) : takes_(std::move(takes)) {}
  std::vector<RankId> here() const override { return {{0}, {1}, {2}}; }
  MeasuredAlgorithm algorithm() const override { return MeasuredAlgorithm::Tree; }
  void prepare(const std::vector<MeasuredCall>& calls) override { calls_ = calls; }
  double run(RankId rank, std::size_t call, int round) override { return takes_(rank.value, call, round); }
  std::vector<MeasuredCall> calls_;

 private:
  std::function<double(int, std::size_t, int)> takes_;
};

// Rank r takes (r + 1) us in every round but the first, which takes a second, and two that take ten times as long: the mean of the members, 1.5 us
// of two and 2 us of three; neither the first nor the two of the other five count.
TEST(CollectiveMeasures, TheMeanOfTheMembersAndTheMedianOfTheRounds) {
  ScriptedRanks ranks([](int rank, std::size_t, int round) {
    return round == 0 ? 1.0 : (rank + 1) * (round == 2 || round == 3 ? 1e-5 : 1e-6);
  });
  const auto measures = measure_collectives(ranks, nullptr, groups_to_measure(locations({"a", "a", "a"}), true),
                                            {.most = {4096}, .most_rounds = 5});
  ASSERT_EQ(measures.size(), 2U);  // trees: all-reduces
  EXPECT_NEAR(measures[0].time.value, 1.5e-6, 1e-12);
  EXPECT_NEAR(measures[1].time.value, 2e-6, 1e-12);
  EXPECT_EQ(measures[1].bytes.value, 4092);  // a multiple of three numbers
}

TEST(CollectiveMeasures, ARankThatFailsStopsAll) {
  ScriptedRanks ranks([](int rank, std::size_t call, int) -> double {
    if (rank == 1 && call == 1) throw DeviceError("the link", "it broke");
    return 1;
  });
  EXPECT_THROW(measure_collectives(ranks, nullptr, groups_to_measure(locations({"a", "a", "a"}), true), {}), DeviceError);
  EXPECT_EQ(ranks.stop().why(), "the link failed: it broke");
}

// Those of the same algorithm and class are replaced, others stay; the link is that of the nearest class.
TEST(CollectiveMeasures, AreTakenIntoAProfile) {
  const auto lines = [](MeasuredAlgorithm algorithm, MeasuredLink link, double latency) {
    std::vector<CollectiveMeasure> all;
    for (const std::int64_t bytes : {4096, 65536})
      all.push_back({.algorithm = algorithm,
                     .link = link,
                     .nodes = link == Network ? 2 : 1,
                     .bytes = {bytes},
                     .time = {2 * latency + static_cast<double>(bytes) / 1e9}});
    return all;
  };
  MachineProfile profile{.all_reduces = {{2, {9}, {9}}}};
  take_collectives(profile, lines(MeasuredAlgorithm::Direct, Network, 5e-6));
  EXPECT_NEAR(profile.link_latency.value, 5e-6, 1e-12);
  take_collectives(profile, lines(MeasuredAlgorithm::Direct, Node, 2e-6));
  EXPECT_NEAR(profile.link_latency.value, 2e-6, 1e-12);
  EXPECT_EQ(profile.collectives.size(), 4U);
  take_collectives(profile, lines(MeasuredAlgorithm::Direct, Network, 6e-6));
  EXPECT_NEAR(profile.link_latency.value, 2e-6, 1e-12);  // a node is nearer
  EXPECT_EQ(profile.collectives.size(), 4U);
  EXPECT_NEAR(fitted_link(profile.collectives, Network)->latency.value, 6e-6, 1e-12);
  take_collectives(profile, lines(MeasuredAlgorithm::Ring, Network, 7e-6));
  EXPECT_EQ(profile.collectives.size(), 6U);
  EXPECT_TRUE(std::is_sorted(profile.collectives.begin(), profile.collectives.end(), comes_before));
  EXPECT_EQ(profile.all_reduces.size(), 1U);
  // Without any all-reduce the fastest stands for the link.
  MachineProfile gathers;
  take_collectives(gathers, {{.kind = CollectiveKind::Broadcast, .bytes = {1000}, .time = {1e-6}}});
  EXPECT_DOUBLE_EQ(gathers.link_bandwidth.value, 1e9);
}

}  // namespace
}  // namespace foreshard::calibrate_collectives_test
