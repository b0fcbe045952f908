// Groups of ranks that calibrate measures, and their links.
#include "exec/calibrate/calibrate_groups.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/base/error.h"

namespace foreshard::calibrate_groups_test {
namespace {

using enum MeasuredLink;

std::string text(const std::vector<MeasuredGroup>& groups) {
  std::string all;
  for (const MeasuredGroup& group : groups) {
    all += (all.empty() ? "" : "; ") + word_of(group.link) + " " + std::to_string(group.nodes) + ":";
    for (const RankId member : group.members) all += " " + std::to_string(member.value);
  }
  return all;
}

std::vector<RankLocation> locations(const std::vector<std::string>& nodes) {
  std::vector<RankLocation> all;
  for (const std::string& node : nodes) all.push_back({.node = node});
  return all;
}

TEST(MeasuredGroups, GrowInsideANodeAndAcrossNodes) {
  EXPECT_EQ(text(groups_to_measure(locations({"a", "a", "a"}), true)), "process 1: 0 1; process 1: 0 1 2");
  EXPECT_EQ(text(groups_to_measure(locations({"a", "a"}), false)), "node 1: 0 1");
  // Two on each of three nodes, dealt out in turn: one rank per node, and both.
  EXPECT_EQ(text(groups_to_measure(locations({"a", "b", "c", "a", "b", "c"}), false)),
            "node 1: 0 3; network 2: 0 1; network 2: 0 3 1 4; network 3: 0 1 2; network 3: 0 3 1 4 2 5");
  // Three and two: as many per node as the smaller one has. One per node: nothing inside.
  EXPECT_EQ(text(groups_to_measure(locations({"a", "a", "a", "b", "b"}), false)),
            "node 1: 0 1; node 1: 0 1 2; network 2: 0 3; network 2: 0 1 3 4");
  EXPECT_EQ(text(groups_to_measure(locations({"a", "b"}), false)), "network 2: 0 1");
  // The first node has one rank: another has two.
  EXPECT_EQ(text(groups_to_measure(locations({"a", "b", "b"}), false)), "node 1: 1 2; network 2: 0 1");
  EXPECT_EQ(text(groups_to_measure(locations({"a", "a"}), false, Pcie)), "pcie 1: 0 1");
}

// GPUs 0-1 and 2-3 with bridges between them: four of them talk over PCIe, and so do 0 and 2, two over NVLink. A chain of NVLinks is enough.
TEST(MeasuredGroups, GpusTellTheirLinks) {
  const std::vector<std::string> all = {"g0", "g1", "g2", "g3"};
  std::vector<RankLocation> bridged = {
      {"a", "g0", all, {"g1"}}, {"a", "g1", all, {"g0"}}, {"a", "g2", all, {"g3"}}, {"a", "g3", all, {"g2"}}};
  EXPECT_EQ(text(groups_to_measure(bridged, false)), "nvlink 1: 0 1; pcie 1: 0 1 2 3");
  std::swap(bridged[1], bridged[2]);
  EXPECT_EQ(text(groups_to_measure(bridged, false)), "pcie 1: 0 1; pcie 1: 0 1 2 3; nvlink 1: 0 2");
  const std::vector<RankLocation> chain = {
      {"a", "g0", all, {"g1"}}, {"a", "g1", all, {"g0", "g2"}}, {"a", "g2", all, {"g1", "g3"}}, {"a", "g3", all, {"g2"}}};
  EXPECT_EQ(text(groups_to_measure(chain, true)), "nvlink 1: 0 1; nvlink 1: 0 1 2 3; pcie 1: 0 2");
  // Each process sees its own GPU only: somebody has to say.
  const std::vector<RankLocation> hidden = {{"a", "g0", {"g0"}, {}}, {"a", "g1", {"g1"}, {}}};
  try {
    groups_to_measure(hidden, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "calibrate: rank 0: found a process that does not see GPU g1 of rank 1, expected all GPUs of the node in "
              "CUDA_VISIBLE_DEVICES, or --link-class nvlink or pcie");
  }
  EXPECT_EQ(text(groups_to_measure(hidden, false, NvLink)), "nvlink 1: 0 1");
}

TEST(MeasuredGroups, SeatsTravelAsLines) {
  const RankLocation location{"node a", "0000:1b:00.0", {"0000:1b:00.0", "0000:1c:00.0"}, {"0000:1c:00.0"}};
  EXPECT_EQ(location_of_line(to_line(location)), location);
  EXPECT_EQ(location_of_line(to_line({.node = "b"})), (RankLocation{.node = "b"}));
  EXPECT_THROW(location_of_line("nonsense"), DeviceError);
  EXPECT_THROW(location_of_line(""), DeviceError);
  EXPECT_EQ(this_node("rack7"), "rack7");
  EXPECT_EQ(this_node(nullptr), this_node(""));
  EXPECT_FALSE(this_node(nullptr).empty());
}

// Whatever the locations: groups inside the first node first, all their members on one node; across nodes as many on each; nothing twice.
TEST(MeasuredGroups, MembersAreWhereTheGroupSays) {
  std::mt19937 random(6);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::string> nodes;
    for (std::size_t rank = 0, count = 1 + random() % 20; rank < count; ++rank)
      nodes.push_back(std::string(1, static_cast<char>('a' + random() % 4)));
    std::set<std::vector<RankId>> seen;
    for (const MeasuredGroup& group : groups_to_measure(locations(nodes), false)) {
      std::map<std::string, int> on;
      for (const RankId member : group.members) ++on[nodes[member.index()]];
      EXPECT_EQ(static_cast<int>(on.size()), group.nodes);
      EXPECT_EQ(group.link, group.nodes > 1 ? Network : Node);
      for (const auto& [node, count] : on) EXPECT_EQ(count, static_cast<int>(group.members.size()) / group.nodes) << node;
      EXPECT_GE(group.members.size(), 2U);
      EXPECT_EQ(std::set<RankId>(group.members.begin(), group.members.end()).size(), group.members.size());
      EXPECT_TRUE(seen.insert(group.members).second);
    }
  }
}

}  // namespace
}  // namespace foreshard::calibrate_groups_test
