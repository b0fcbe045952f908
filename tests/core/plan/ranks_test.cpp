#include "core/plan/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace foreshard::ranks_test {
namespace {

constexpr AxisId kDp{0}, kTp{1}, kRole = Placement::kRole;

Role role_with(std::vector<AxisId> axes) { return Role{.axes = std::move(axes)}; }

// Two pipeline roles, dp 2 x tp 3; the last axis (tp) is the fastest: rank = role * 6 + dp * 3 + tp.
Plan two_stages() {
  Plan plan{.axes = {{.name = "dp", .size = 2}, {.name = "tp", .dense = DenseKind::Tensor, .size = 3}}};
  plan.roles = {role_with({{0}, {1}}), role_with({{0}, {1}})};
  return plan;
}

std::vector<int> values(const std::vector<RankId>& ranks) {
  std::vector<int> all;
  for (const RankId rank : ranks) all.push_back(rank.value);
  return all;
}

// The obvious answer: every rank with its coordinates in a map, found by search.
struct Listed {
  RoleId role;
  std::map<int, int> at;  // axis -> coordinate; absent axes are missing
};
std::vector<Listed> listed(const Plan& plan) {
  std::vector<Listed> all;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    std::vector<Listed> here = {{RoleId{static_cast<int>(r)}, {}}};
    for (const AxisId axis : plan.roles[r].axes) {
      std::vector<Listed> wider;
      for (const Listed& one : here)
        for (int c = 0; c < plan.axes[axis.index()].size; ++c) {
          wider.push_back(one);
          wider.back().at[axis.value] = c;
        }
      here = wider;
    }
    all.insert(all.end(), here.begin(), here.end());
  }
  return all;
}
int zero_if_absent(const Listed& rank, int axis) { return rank.at.count(axis) ? rank.at.at(axis) : 0; }

}  // namespace

TEST(Ranks, NumbersRoleByRoleLastAxisFastest) {
  const Plan plan = two_stages();
  const Ranks ranks(plan);
  EXPECT_EQ(ranks.count(), 12);
  EXPECT_EQ(ranks.count(RoleId{1}), 6);
  EXPECT_EQ(ranks.first(RoleId{1}), RankId{6});
  // rank 10 = 6 + 1 * 3 + 1: role 1, dp 1, tp 1
  EXPECT_EQ(ranks.role(RankId{10}), RoleId{1});
  EXPECT_EQ(ranks.coordinate(RankId{10}, AxisId{0}), 1);
  EXPECT_EQ(ranks.coordinate(RankId{10}, AxisId{1}), 1);
}

TEST(Ranks, DevicesFollowThePlacementOrder) {
  Plan plan = two_stages();
  plan.placement.order = {kTp, kDp, kRole};
  EXPECT_EQ(Ranks(plan).device(RankId{10}), DeviceId{10});
  plan.placement.order = {kRole, kTp, kDp};  // device = dp * 6 + tp * 2 + role = 6 + 2 + 1
  EXPECT_EQ(Ranks(plan).device(RankId{10}), DeviceId{9});
  plan.placement.order = {kDp, kTp, kRole};  // role * 6 + tp * 2 + dp
  EXPECT_EQ(Ranks(plan).device(RankId{10}), DeviceId{9});
  EXPECT_EQ(Ranks(plan).device(RankId{5}), DeviceId{5});
  plan.placement.order = {};  // the axes as the plan lists them, then role: the same
  EXPECT_EQ(Ranks(plan).device(RankId{10}), DeviceId{9});
}

TEST(Ranks, ExplicitDevicesOverrideTheRule) {
  Plan plan = two_stages();
  plan.placement.order = {kTp, kDp, kRole};
  plan.placement.explicit_devices = {{40}, {}, {41}};
  const Ranks ranks(plan);
  EXPECT_EQ(ranks.device(RankId{0}), DeviceId{40});
  EXPECT_EQ(ranks.device(RankId{1}), DeviceId{1});
  EXPECT_EQ(ranks.device(RankId{2}), DeviceId{41});
  EXPECT_EQ(ranks.device(RankId{3}), DeviceId{3});
}

TEST(Ranks, RolesOfDifferentShapesFillTheDevicesWithoutHoles) {
  Plan plan{.axes = {{.name = "dp", .size = 2}, {.name = "tp", .dense = DenseKind::Tensor, .size = 3}}};
  plan.roles = {role_with({{0}, {1}}), role_with({{0}})};
  plan.placement.order = {kTp, kRole, kDp};  // dp 0: six... three of role 0, one of role 1; then dp 1
  const Ranks ranks(plan);
  std::vector<int> devices;
  for (int r = 0; r < ranks.count(); ++r) devices.push_back(ranks.device(RankId{r}).value);
  EXPECT_EQ(devices, (std::vector<int>{0, 1, 2, 4, 5, 6, 3, 7}));
}

TEST(Ranks, PeersAreRelative) {
  const Plan plan = two_stages();
  const Ranks ranks(plan);
  EXPECT_EQ(ranks.peer(RankId{4}, Peer{.role_shift = 1}), RankId{10});
  EXPECT_EQ(ranks.peer(RankId{10}, Peer{.role_shift = -1}), RankId{4});
  EXPECT_FALSE(ranks.peer(RankId{10}, Peer{.role_shift = 1}).valid());
  EXPECT_FALSE(ranks.peer(RankId{0}, Peer{.role_shift = -1}).valid());
  // a ring on tp: 5 is (dp 1, tp 2), the next is tp 0 = rank 3, four steps back is tp 1 = rank 4
  EXPECT_EQ(ranks.peer(RankId{5}, Peer{.axes = {AxisId{1}}, .shift = 1}), RankId{3});
  EXPECT_EQ(ranks.peer(RankId{5}, Peer{.axes = {AxisId{1}}, .shift = -4}), RankId{4});
}

// tp 3 and dp 2 as one ring of six, tp fastest: from (dp 0, tp 2) on to (dp 1, tp 0), from the last to the first, and back.
TEST(Ranks, APeerOverSeveralAxesGoesRoundAllOfThem) {
  const Plan plan = two_stages();
  const Ranks ranks(plan);
  const std::vector<AxisId> both = {AxisId{0}, AxisId{1}};
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(ranks.peer(RankId{rank}, Peer{.axes = both, .shift = 1}), RankId{(rank + 1) % 6});
    EXPECT_EQ(ranks.peer(RankId{rank}, Peer{.axes = both, .shift = -2}), RankId{(rank + 4) % 6});
  }
  EXPECT_EQ(ranks.peer(RankId{5}, Peer{.axes = {AxisId{1}, AxisId{0}}, .shift = 1}), RankId{0});  // dp fastest: (1, 2) is the last
}

TEST(Ranks, APeerWithoutTheAxisIsMetOnlyFromCoordinateZero) {
  Plan plan{.axes = {{.name = "dp", .size = 2}, {.name = "tp", .dense = DenseKind::Tensor, .size = 3}}};
  plan.roles = {role_with({{0}, {1}}), role_with({{0}})};
  const Ranks ranks(plan);
  EXPECT_EQ(ranks.peer(RankId{3}, Peer{.role_shift = 1}), RankId{7});  // (dp 1, tp 0) -> dp 1
  EXPECT_FALSE(ranks.peer(RankId{4}, Peer{.role_shift = 1}).valid());
  EXPECT_EQ(ranks.peer(RankId{7}, Peer{.role_shift = -1}), RankId{3});
  EXPECT_FALSE(ranks.peer(RankId{7}, Peer{.axes = {AxisId{1}}, .shift = 1}).valid());
}

TEST(Ranks, GroupsJoinRolesAndAxes) {
  Plan plan = two_stages();
  plan.groups = {Group{.over = {{1}}}, Group{.over = {{1}, {0}}}, Group{.roles = {{1}, {0}}, .over = {{0}}}};
  const Ranks ranks(plan);
  EXPECT_EQ(values(ranks.members(GroupId{0}, RankId{4})), (std::vector<int>{3, 4, 5}));
  // tp slow, dp fast: (tp 0, dp 0), (tp 0, dp 1), (tp 1, dp 0) ...
  EXPECT_EQ(values(ranks.members(GroupId{1}, RankId{4})), (std::vector<int>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(ranks.members(GroupId{2}, RankId{4})), (std::vector<int>{7, 10, 1, 4}));
  EXPECT_EQ(ranks.members(GroupId{2}, RoleId{0}), 4);
}

// Random axes and roles against a search over written-out coordinates.
TEST(Ranks, AgreesWithASearchOverCoordinates) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 60; ++round) {
    Plan plan{.axes = {{.name = "dp", .size = 1 + pick(4)},
                       {.name = "cp", .size = 1 + pick(3)},
                       {.name = "tp", .size = 1 + pick(3)}}};
    for (int r = 0, n = 1 + pick(3); r < n; ++r) {
      std::vector<AxisId> axes;
      for (int a : {0, 1, 2})
        if (pick(4) > 0) axes.push_back({a});
      std::shuffle(axes.begin(), axes.end(), random);
      plan.roles.push_back(role_with(axes));
    }
    plan.placement.order = {{2}, kRole, {1}, {0}};
    std::shuffle(plan.placement.order.begin(), plan.placement.order.end(), random);
    const Ranks ranks(plan);
    const std::vector<Listed> all = listed(plan);
    ASSERT_EQ(ranks.count(), static_cast<int>(all.size()));
    std::set<std::pair<std::vector<int>, int>> by_key;
    for (int r = 0; r < ranks.count(); ++r) {
      const Listed& one = all[static_cast<std::size_t>(r)];
      std::vector<int> key;
      for (auto axis = plan.placement.order.rbegin(); axis != plan.placement.order.rend(); ++axis)
        key.push_back(*axis == kRole ? one.role.value : zero_if_absent(one, axis->value));
      by_key.insert({key, r});
      for (int a : {0, 1, 2}) EXPECT_EQ(ranks.coordinate(RankId{r}, AxisId{a}), zero_if_absent(one, a));
      const Peer peer{.role_shift = pick(3) - 1, .axes = {AxisId{pick(3)}}, .shift = pick(5) - 2};
      int found = -1;
      for (std::size_t other = 0; other < all.size(); ++other) {
        if (all[other].role.value != one.role.value + peer.role_shift) continue;
        bool same = peer.shift == 0 || all[other].at.count(peer.axes.front().value) > 0;
        for (int a : {0, 1, 2}) {
          const int size = plan.axes[static_cast<std::size_t>(a)].size;
          int want = zero_if_absent(one, a);
          if (want > 0 && all[other].at.count(a) == 0) same = false;
          if (a == peer.axes.front().value && peer.shift != 0) want = (want + peer.shift + 2 * size) % size;
          same = same && zero_if_absent(all[other], a) == want;
        }
        if (same) found = static_cast<int>(other);
      }
      EXPECT_EQ(ranks.peer(RankId{r}, peer).value, found);
    }
    int device = 0;
    for (const auto& [key, rank] : by_key) EXPECT_EQ(ranks.device(RankId{rank}).value, device++);
  }
}

}  // namespace foreshard::ranks_test
