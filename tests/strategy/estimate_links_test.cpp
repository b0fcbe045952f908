// How the traffic of stages shares links.
#include "strategy/estimate/estimate_links.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace foreshard {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

std::array<double, Links::kMost> found(LinkSpeeds& speeds, std::uint64_t flows) {
  LinkSpeeds::Speeds all;
  speeds.find(flows, LinkSpeeds::kNone, all);
  return all.of;
}

}  // namespace

// Two flows fill link 0 alone, the third one link 1 and half of link 0. Together on link 0 they have equal growth: 2/5 each of what they have
// alone, half of that for the third one's share of it (2/5 + 2/5 + 1/5 = 1), which is held up at link 0 only if that is its own.
TEST(LinkSpeeds, SharesByHand) {
  Links links;
  links.links = 2;
  links.traffic[0].crosses = {{0, 1, true}};
  links.traffic[1].crosses = {{0, 1, true}};
  links.traffic[2].crosses = {{0, 0.5, true}, {1, 1, true}};
  LinkSpeeds speeds(links, false, 1);
  EXPECT_DOUBLE_EQ(found(speeds, Links::bit(0))[0], 1);
  EXPECT_DOUBLE_EQ(found(speeds, Links::bit(0) | Links::bit(1))[1], 0.5);
  for (const int flow : {0, 1, 2}) EXPECT_DOUBLE_EQ(found(speeds, 7)[at(flow)], 0.4) << flow;
}

// Max-min fairness by its definition (Bertsekas & Gallager 1992, 6.5.2): no link is more than full, and each flow that is not as fast as alone has a
// full link of its own on which no flow that is held up there has grown further. 2000 random cases, seed 3.
TEST(LinkSpeeds, EachIsHeldUpByAFullLinkOfItsOwn) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> between(0, 1);
  for (int i = 0; i < 2000; ++i) {
    Links links;
    links.links = std::uniform_int_distribution<int>(1, 5)(random);
    const int ranks = std::uniform_int_distribution<int>(1, 3)(random);
    for (int flow = 0; flow < ranks * Links::kFlows; ++flow) {
      Links::Traffic& traffic = links.traffic[at(flow)];
      traffic.growth = 1 + std::floor(4 * between(random));
      for (int link = 0; link < links.links; ++link)
        if (between(random) < 0.4) traffic.crosses.push_back({link, 0.1 + 0.9 * between(random), true});
    }
    LinkSpeeds speeds(links, false, ranks);
    const std::uint64_t asked = random() & ((std::uint64_t{1} << (ranks * Links::kFlows)) - 1);
    const std::array<double, Links::kMost> speed_of = found(speeds, asked);
    std::array<double, Links::kLinks> used = {}, level = {};
    const auto each = [&](auto visit) {
      for (int flow = 0; flow < ranks * Links::kFlows; ++flow)
        if ((asked & Links::bit(flow)) != 0) visit(links.traffic[at(flow)], speed_of[at(flow)]);
    };
    each([&](const Links::Traffic& traffic, double speed) {
      for (const Links::Crossing& crossing : traffic.crosses) {
        used[at(crossing.link)] += crossing.share * speed;
        level[at(crossing.link)] = std::max(level[at(crossing.link)], speed / traffic.growth);
      }
    });
    for (int link = 0; link < links.links; ++link) EXPECT_LE(used[at(link)], 1 + 1e-9) << i;
    each([&](const Links::Traffic& traffic, double speed) {
      const bool held = std::any_of(traffic.crosses.begin(), traffic.crosses.end(), [&](const Links::Crossing& crossing) {
        return used[at(crossing.link)] > 1 - 1e-9 && speed / traffic.growth >= level[at(crossing.link)] - 1e-9;
      });
      EXPECT_TRUE(held || speed > 1 - 1e-9) << i;
    });
  }
}

}  // namespace foreshard
