// Parameter servers beside rings on a simulated star: closed forms of both, and which is sooner at which size and for how many workers.
//   one server, a member itself   T = 2 alpha + 2 (n - 1) G / beta: everything goes through its network card
//   ring                          T = 2 (n - 1) (alpha + G / (n beta))
//   equal at                      G = alpha beta n (n - 2) / (n - 1)^2
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/cluster_file/cluster_file.h"
#include "core/model/model.h"
#include "core/network/network.h"
#include "sim/simulate.h"
#include "strategy/tune/tune.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::parameter_server_test {
namespace {

using namespace playing;

constexpr double kBeta = 12.5e9;         // bytes per second of a card
constexpr std::int64_t kAlpha = 10'000;  // nanoseconds of a step

double seconds(int members, Algorithm algorithm, std::int64_t bytes, int servers = 1, std::int64_t alpha = kAlpha) {
  Line line(members);
  const int steps = collective_volume(CollectiveKind::AllReduce, algorithm, {bytes}, members).steps;
  Item item = collective(0, CollectiveKind::AllReduce, line.all, bytes, steps * alpha);
  auto& what = std::get<Collective>(item.what.what);
  what.algorithm = algorithm, what.servers = servers;
  line.of.issue(line.role, {std::move(item)});
  NodeShape shape = switched_shape({.gpus = 1, .per_switch = 1, .nics = 1, .nvlink = 0, .pcie = 64e9, .nic = kBeta});
  return simulate(line.of.plan(), lossless_cluster_of(shape, members, {.nodes_per_leaf = 1024}),
                  {.granularity = Granularity::Op})
      .makespan_s;
}

double ring(int n, std::int64_t bytes) { return seconds(n, Algorithm::Ring, bytes); }
double server(int n, std::int64_t bytes) { return seconds(n, Algorithm::ParameterServer, bytes); }

// techniques.md C1: G = 350 MB at 12.5 GB/s, a server beside n workers: 2 n G / beta. The ring of the workers stays where it is.
TEST(ParameterServer, OneServerCollapsesTheRingDoesNot) {
  const std::int64_t bytes = 350'000'000;
  for (const auto& [n, of_server, of_ring] : {std::tuple{2, 0.112, 0.028}, {64, 3.584, 0.055125}, {128, 7.168, 0.0555625}}) {
    EXPECT_NEAR(seconds(n + 1, Algorithm::ParameterServer, bytes, 1, 0), of_server, 1e-9 * of_server) << n;
    EXPECT_NEAR(seconds(n, Algorithm::Ring, bytes, 1, 0), of_ring, 1e-9 * of_ring) << n;
    EXPECT_NEAR(seconds(n, Algorithm::GatherToRoot, bytes, 1, 0), 2.0 * (n - 1) * 0.028, 1e-9) << n;  // D1
  }
}

// Where every member serves a part of 1 / n, no card carries more than in a ring; k servers divide what one carries.
TEST(ParameterServer, MoreServersCarryLessEach) {
  const std::int64_t bytes = 480'000'000;
  EXPECT_NEAR(seconds(16, Algorithm::ParameterServer, bytes, 16, 0), seconds(16, Algorithm::Ring, bytes, 1, 0), 1e-9);
  const double one = seconds(16, Algorithm::ParameterServer, bytes, 1, 0);
  for (const int servers : {2, 4, 8})
    EXPECT_NEAR(seconds(16, Algorithm::ParameterServer, bytes, servers, 0), one / servers, 1e-9);
}

TEST(ParameterServer, BothAreTheirClosedForms) {
  for (const int n : {2, 3, 8, 32})
    for (const std::int64_t bytes : {std::int64_t{96'000}, std::int64_t{96'000'000}}) {
      const double alpha = kAlpha * 1e-9, wire = static_cast<double>(bytes) / kBeta;
      EXPECT_NEAR(ring(n, bytes), 2 * (n - 1) * (alpha + wire / n), 2e-9) << n;
      EXPECT_NEAR(server(n, bytes), 2 * alpha + 2 * (n - 1) * wire, 2e-9) << n;
    }
}

// n = 8: the server is sooner below 48 / 49 alpha beta = 122449 bytes, the ring above.
TEST(ParameterServer, SmallMessagesAreSoonerByAServer) {
  EXPECT_LT(server(8, 121'000), ring(8, 121'000));
  EXPECT_GT(server(8, 124'000), ring(8, 124'000));
  EXPECT_GT(server(8, 40'000'000), 6 * ring(8, 40'000'000));
}

// 112500 bytes, 0.9 alpha beta: n (n - 2) / (n - 1)^2 is 0.75 and 0.889 for three and four members, 0.9375 for five.
TEST(ParameterServer, ManyWorkersAreSoonerByAServerForWhatIsSmall) {
  for (const int n : {3, 4}) EXPECT_GT(server(n, 112'500), ring(n, 112'500)) << n;
  for (const int n : {5, 6, 16, 64}) EXPECT_LT(server(n, 112'500), ring(n, 112'500)) << n;
}

// The gradient sums of a data-parallel job on nodes that have one card for their m GPUs, by k servers of which s are on the busiest node. A
// card takes what the n - m ranks elsewhere send to its servers, and gives what its m ranks send to the k - s servers elsewhere:
//   T = 2 alpha + 2 max(s (n - m), m (k - s)) G / (k beta)
// with the latency and the share of the rate that the protocol of this size has.
struct Placed {
  double simulated = 0, closed = 0;
};
Placed placed(const std::string& base, int nodes, int servers, ServerPlacement placement) {
  const Cluster cluster = with_nodes(load_cluster(base), nodes);
  const int n = gpu_count(cluster), m = n / nodes, k = std::min(servers, n);
  Strategy strategy{.dp = n, .batch = {.micro = 1, .global = n, .seq = 128}};
  strategy.communication.algorithm = Algorithm::ParameterServer;
  strategy.communication.servers = servers, strategy.communication.server_placement = placement;
  auto answer = tuned_plan(load_model("gpt2-124m"), cluster, strategy, {.ignore_memory = true});
  const Plan plan = std::get<Lowered>(std::move(answer)).plan;
  const Result result = simulate(plan, cluster, {.granularity = Granularity::Op, .memory = false});
  Placed out;
  double bytes = 0, alpha = 0;
  for (const Span& span : result.trace.spans) {
    const Action& action = plan.roles[0].actions[static_cast<std::size_t>(span.action)];
    const Instruction& run = plan.segments[action.segment.index()].instructions[static_cast<std::size_t>(span.instruction)];
    const auto* what = std::get_if<Collective>(&run.what);
    if (!what || span.who.index() != 0) continue;
    EXPECT_EQ(what->servers, k);
    out.simulated += static_cast<double>((span.end - span.begin).value) * 1e-9;
    const Cost& cost = plan.costs[0].by_segment[action.segment.index()][static_cast<std::size_t>(span.instruction)];
    alpha += static_cast<double>(cost.busy.value) * 1e-9;  // of both steps
    bytes += static_cast<double>(what->bytes.value) * cost.wire_factor;
  }
  int busiest = placement == ServerPlacement::First ? std::min(k, m) : (k + nodes - 1) / nodes;
  const Network network(cluster);
  double beta = 0;
  for (const LinkId link : network.route({0}, {n - 1}).links)
    if (network.link(link).kind == LinkKind::Network && (beta == 0 || network.link(link).rate().value < beta))
      beta = network.link(link).rate().value;
  out.closed = alpha + 2.0 * std::max(busiest * (n - m), m * (k - busiest)) * bytes / (k * beta);
  return out;
}

TEST(ParameterServer, PlacedServersTakeTheTimeOfTheClosedForm) {
  using enum ServerPlacement;
  for (const auto& [cluster, gpus] : {std::pair{"eth25-a100", 8}, {"eth100-a100", 8}, {"gh200", 1}})
    for (const int n : {16, 64, 512})
      for (const int servers : {1, 4, 16}) {
        const int nodes = n / gpus;
        for (const ServerPlacement placement : {First, Spread, Nodes}) {
          const Placed found = placed(cluster, nodes, servers, placement);
          EXPECT_NEAR(found.simulated, found.closed, 0.02 * found.closed)
              << cluster << " " << n << " GPUs, " << servers << " servers, placement " << static_cast<int>(placement);
        }
      }
}

// Eight GPUs share a card. The first four ranks are on one node, so that four servers are no faster than one; on four nodes they are.
TEST(ParameterServer, ServersOfOneNodeShareItsCard) {
  const double one = placed("eth25-a100", 8, 1, ServerPlacement::First).simulated;
  EXPECT_NEAR(placed("eth25-a100", 8, 4, ServerPlacement::First).simulated, one, 0.02 * one);
  EXPECT_NEAR(placed("eth25-a100", 8, 4, ServerPlacement::Nodes).simulated, one / 4, 0.02 * one / 4);
  EXPECT_NEAR(placed("eth25-a100", 8, 4, ServerPlacement::Spread).simulated, one / 4, 0.02 * one / 4);
}

}  // namespace
}  // namespace foreshard::parameter_server_test
