// Flows and links against the slow, obvious answers.
#include "replay/flows.h"

#include <gtest/gtest.h>

#include <random>

#include "core/cluster_file/cluster_file.h"
#include "replay/flow_paths.h"
#include "replay/quotient.h"
#include "replay/used_links.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::flows_test {
namespace {

using namespace playing;

// Collectives inside equal nodes are found once and moved: every instance must have the links that it would have got by itself.
TEST(Flows, EveryInstanceHasItsOwnLinks) {
  for (const char* name : {"dgx1-v100", "dgx-a100", "pcie-a100-8", "gb200-nvl72"}) {
    const Cluster cluster = with_nodes(load_cluster(name), 3);
    const int gpus = gpu_count(cluster);
    for (const int tp : {2, 4, gpus / 3}) {
      PlanOf of;
      const AxisId t = of.axis(DenseKind::Tensor, tp), d = of.axis(DenseKind::Data, gpus / tp);
      const RoleId role = of.role("r", {d, t});
      const GroupId tensor = of.group({t}), data = of.group({d});
      of.issue(role, {collective(0, CollectiveKind::AllReduce, tensor, 1), collective(0, CollectiveKind::AllGather, data, 1),
                      collective(0, CollectiveKind::AllToAll, tensor, 1)});
      const Network network(cluster);
      const Ranks ranks(of.plan());
      const player::Patterns patterns = player::find_patterns(of.plan());
      const player::Flows flows = player::find_flows(of.plan(), patterns, ranks, network);
      for (std::int32_t r = 0; r < ranks.count(); ++r)
        for (std::size_t c = 0; c < patterns.collectives.size(); ++c) {
          Collective probe = patterns.collectives[c];
          probe.bytes = {1 << 20};
          std::vector<DeviceId> devices;
          for (const RankId member : ranks.members(probe.group, RankId{r})) devices.push_back(ranks.device(member));
          const std::vector<CollectiveFlow> phases = collective_phases(network, probe, devices);
          const player::Flows::Asked& asked = flows.at({r}, patterns.collective_slot(static_cast<int>(c)));
          ASSERT_EQ(asked.phases, std::max<std::int32_t>(1, static_cast<std::int32_t>(phases.size())));
          for (std::size_t p = 0; p < phases.size(); ++p) {
            const int flow = asked.first + static_cast<int>(p);
            const std::vector<LinkId> links(flows.links(flow).begin(), flows.links(flow).end());
            EXPECT_EQ(links, phases[p].links) << name << " tp" << tp << " rank " << r;
            EXPECT_NEAR(flows.bytes[static_cast<std::size_t>(flow)] * (1 << 20), phases[p].bytes, 1e-9 * phases[p].bytes);
          }
        }
    }
  }
}

// Max-min rates of flows over links, by filling: all rates grow together until a link is full, its flows stop, the rest goes on.
std::vector<double> max_min(const std::vector<std::vector<int>>& routes, const std::vector<double>& capacity,
                            const std::vector<char>& counts) {
  std::vector<double> rate(routes.size(), 0), left = capacity;
  std::vector<char> growing(routes.size(), true);
  for (;;) {
    std::vector<int> users(capacity.size(), 0);
    for (std::size_t f = 0; f < routes.size(); ++f)
      if (growing[f])
        for (const int link : routes[f]) ++users[static_cast<std::size_t>(link)];
    double step = -1;
    for (std::size_t l = 0; l < capacity.size(); ++l)
      if (counts[l] && users[l] > 0 && (step < 0 || left[l] / users[l] < step)) step = left[l] / users[l];
    if (step < 0) return rate;
    for (std::size_t l = 0; l < capacity.size(); ++l) left[l] -= step * users[l];
    for (std::size_t f = 0; f < routes.size(); ++f) {
      if (!growing[f]) continue;
      rate[f] += step;
      for (const int link : routes[f])
        if (counts[static_cast<std::size_t>(link)] &&
            left[static_cast<std::size_t>(link)] < 1e-9 * capacity[static_cast<std::size_t>(link)])
          growing[f] = false;
    }
  }
}

// Flows of a small cluster: shifts by three random distances and an all-reduce, on streams of their own.
struct Traffic {
  PlanOf of = {};
  Cluster cluster = {};
  Traffic(std::mt19937& draw, bool nvlink) {
    const double oversubscription = draw() % 3 == 0 ? 1.0 : 0.5 + static_cast<double>(draw() % 8) / 2;
    cluster = lossless_cluster_of(switched_shape({.gpus = 4, .per_switch = 2, .nics = 2, .nvlink = nvlink ? 100e9 : 0.0}), 6,
                                  {.nodes_per_leaf = 2, .oversubscription = oversubscription});
    for (NodeLink& link : cluster.nodes[0].shape.links) link.bandwidth.value *= 0.25 + static_cast<double>(draw() % 8) / 4;
    const AxisId dp = of.axis(DenseKind::Data, 24);
    const RoleId role = of.role("r", {dp});
    std::vector<Item> items;
    for (int i = 0; i < 3; ++i) {
      const int shift = 1 + static_cast<int>(draw() % 23);
      items.push_back(both(i, {0, {dp}, shift}, {0, {dp}, -shift}, 1));
    }
    items.push_back(collective(3, CollectiveKind::AllReduce, of.group({dp}), 1));
    of.issue(role, std::move(items));
  }
};

// Leaving out the links that are said not to limit changes no rate, whichever flows are under way; nor does keeping only the
// few that the engine gets.
TEST(UsedLinks, LinksThatDoNotLimitChangeNoRate) {
  std::mt19937 draw(7);
  int left_out = 0, not_given = 0;
  for (int round = 0; round < 60; ++round) {
    Traffic traffic(draw, round % 2 == 0);
    const Plan plan = traffic.of.plan();
    const Network network(traffic.cluster);
    const Ranks ranks(plan);
    const player::Patterns patterns = player::find_patterns(plan);
    const player::Flows flows = player::find_flows(plan, patterns, ranks, network);
    const player::UsedLinks used = player::used_links(network, flows);
    left_out += static_cast<int>(std::count(used.limits.begin(), used.limits.end(), false));
    const std::vector<player::RankSpeed> paces(24);
    const player::Quotient apart = player::fold(plan, ranks, network, patterns, flows, paces, Folding::None, false);
    const player::FlowPaths ways = player::find_flow_paths(plan, ranks, patterns, flows, apart);
    not_given +=
        static_cast<int>(std::count(used.limits.begin(), used.limits.end(), true)) - static_cast<int>(ways.links.size());
    std::vector<double> given;
    for (const BytesPerSecond capacity : ways.links) given.push_back(capacity.value);
    std::vector<std::vector<int>> routes, engine_routes;
    for (int f = 0; f < flows.count(); ++f) {
      const auto i = static_cast<std::size_t>(f);
      const player::FlowPath& path = ways.of_flow[static_cast<std::size_t>(apart.flow_of[i])];
      if (draw() % 2 == 0 || path.isolated) continue;  // not under way
      routes.emplace_back(used.crossed.begin() + flows.first_link[i], used.crossed.begin() + flows.first_link[i + 1]);
      engine_routes.push_back(path.route);
    }
    const std::vector<double> all = max_min(routes, used.capacity, std::vector<char>(used.ids.size(), true));
    const std::vector<double> some = max_min(routes, used.capacity, used.limits);
    const std::vector<double> few = max_min(engine_routes, given, std::vector<char>(given.size(), true));
    for (std::size_t f = 0; f < routes.size(); ++f) {
      ASSERT_NEAR(some[f], all[f], 1e-6 * all[f]) << "round " << round;
      ASSERT_NEAR(few[f], all[f], 1e-6 * all[f]) << "round " << round;
    }
  }
  EXPECT_GT(left_out, 1000);
  EXPECT_GT(not_given, 100);
}

}  // namespace
}  // namespace foreshard::flows_test
