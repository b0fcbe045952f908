// Parameter servers beside rings on a simulated star: closed forms of both, and which is sooner at which size and for how many workers.
//   one server, a member itself   T = 2 alpha + 2 (n - 1) G / beta: everything goes through its network card
//   ring                          T = 2 (n - 1) (alpha + G / (n beta))
//   equal at                      G = alpha beta n (n - 2) / (n - 1)^2
#include <gtest/gtest.h>

#include "core/network/network.h"
#include "sim/simulate.h"
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

}  // namespace
}  // namespace foreshard::parameter_server_test
