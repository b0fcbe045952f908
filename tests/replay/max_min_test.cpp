// Max-min shares against what defines them: no link carries more than it can, and every flow has a bottleneck, a full link on which
// no other flow is faster (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2).
#include "replay/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace foreshard::player {
namespace {

using Flows = std::vector<std::vector<LinkShare>>;

std::vector<double> shares(const std::vector<double>& capacity, const Flows& flows) {
  std::vector<std::span<const LinkShare>> crossings(flows.begin(), flows.end());
  MaxMin max_min;
  const std::span<const double> rates = max_min.share(capacity, crossings);
  return {rates.begin(), rates.end()};
}

// Links of 10 and 6: a crosses the first, b both, c the second. b and c get 3 each, a the rest of the first, 7.
TEST(MaxMin, Textbook) { EXPECT_EQ(shares({10, 6}, {{{0}}, {{0}, {1}}, {{1}}}), (std::vector<double>{7, 3, 3})); }

// A flow of weight 3 beside one of weight 1 on a link of 8: both get 2.
TEST(MaxMin, WeightsCount) { EXPECT_EQ(shares({8}, {{{0, 3}}, {{0, 1}}}), (std::vector<double>{2, 2})); }

TEST(MaxMin, EveryFlowHasABottleneck) {
  std::mt19937 draw(1);
  const auto below = [&draw](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 3000; ++round) {
    std::vector<double> capacity(static_cast<std::size_t>(1 + below(8)));
    for (double& c : capacity) c = (1 + below(3)) * (1 + 1e-6 * (below(3) - 1)) * (below(4) == 0 ? 4096 : 1);
    Flows flows(static_cast<std::size_t>(1 + below(10)));
    for (std::vector<LinkShare>& flow : flows)
      for (int link = 0; link < static_cast<int>(capacity.size()); ++link)
        if (below(3) == 0 || (flow.empty() && link + 1 == static_cast<int>(capacity.size())))
          flow.push_back({link, below(5) == 0 ? 4096.0 : 1.0 + below(3)});
    const std::vector<double> rates = shares(capacity, flows);
    std::vector<double> load(capacity.size()), fastest(capacity.size());
    for (std::size_t f = 0; f < flows.size(); ++f)
      for (const LinkShare& crossing : flows[f]) {
        const auto l = static_cast<std::size_t>(crossing.link);
        load[l] += crossing.weight * rates[f];
        fastest[l] = std::max(fastest[l], rates[f]);
      }
    for (std::size_t l = 0; l < capacity.size(); ++l) ASSERT_LE(load[l], capacity[l] * (1 + 1e-12)) << round;
    for (std::size_t f = 0; f < flows.size(); ++f)
      ASSERT_TRUE(std::any_of(flows[f].begin(), flows[f].end(),
                              [&](const LinkShare& crossing) {
                                const auto l = static_cast<std::size_t>(crossing.link);
                                return load[l] >= capacity[l] * (1 - 1e-12) && rates[f] >= fastest[l] * (1 - 1e-12);
                              }))
          << "round " << round << " flow " << f;
  }
}

}  // namespace
}  // namespace foreshard::player
