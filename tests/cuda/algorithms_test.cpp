// Algorithms of sums on GPUs: which are carried out, between whom, and which are refused by name.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/cuda/fake_training.h"

namespace foreshard::gpu::algorithms_test {
namespace {

using foreshard::Algorithm;

Strategy replicas(int dp, Algorithm algorithm, int servers = 0, int zero = 0) {
  Strategy strategy = in_single({.dp = dp, .batch = {.micro = 1}, .zero = {.stage = zero}});
  strategy.batch.global = 2 * dp;
  strategy.communication.algorithm = algorithm, strategy.communication.servers = servers;
  return strategy;
}

// Three and four GPUs give the bits of one that all ranks share, and within rounding those of the host, without a race between streams.
TEST(CudaAlgorithms, RingsTreesAndServersTrainAsOnTheHost) {
  const std::vector<Strategy> all = {replicas(4, Algorithm::Ring),
                                     replicas(3, Algorithm::Ring),
                                     replicas(4, Algorithm::Tree),
                                     replicas(4, Algorithm::DoubleTree),
                                     replicas(4, Algorithm::ParameterServer),
                                     replicas(4, Algorithm::ParameterServer, 1),
                                     replicas(3, Algorithm::ParameterServer, 2),
                                     replicas(4, Algorithm::Ring, 0, 1),
                                     replicas(4, Algorithm::Ring, 0, 3)};
  for (const Strategy& strategy : all) {
    SCOPED_TRACE(name_of(strategy));
    const Plan plan = lowered(tiny_mlp(), strategy);
    FakeRuntime one, four({.seed = 5, .devices = 4, .late_zeroing = true});
    const Execution together = run(plan, on_fake(one, 2)), apart = run(plan, on_fake(four, 2));
    EXPECT_EQ(difference(apart, together).largest(), 0) << difference(apart, together).worst;
    EXPECT_LT(difference(apart, run(plan, fake_training(2))).largest(), 1e-5);
    for (const std::string& conflict : four.conflicts()) ADD_FAILURE() << conflict;
    EXPECT_EQ(four.allocated(), 0);
  }
}

// A ring of four reaches into the memory of the one before, one server into that of all and they into its.
TEST(CudaAlgorithms, OnlyThePairsOfTheAlgorithmReachEachOther) {
  FakeRuntime ring({.devices = 4}), server({.devices = 4});
  static_cast<void>(run(lowered(tiny_mlp(), replicas(4, Algorithm::Ring)), on_fake(ring, 1)));
  EXPECT_EQ(ring.reached(), (std::set<std::pair<int, int>>{{1, 0}, {2, 1}, {3, 2}, {0, 3}}));
  static_cast<void>(run(lowered(tiny_mlp(), replicas(4, Algorithm::ParameterServer, 1)), on_fake(server, 1)));
  EXPECT_EQ(server.reached(), (std::set<std::pair<int, int>>{{0, 1}, {0, 2}, {0, 3}, {1, 0}, {2, 0}, {3, 0}}));
}

std::string refusal(const Plan& plan, const ExecuteOptions& options) {
  try {
    static_cast<void>(execute(plan, options));
  } catch (const Error& problem) {
    return problem.what();
  }
  return "";
}

TEST(CudaAlgorithms, OthersAreRefusedByName) {
  FakeRuntime runtime({.devices = 4});
  for (const auto& [algorithm, name] :
       {std::pair{Algorithm::TwoDimensional, "2d"}, {Algorithm::GatherToRoot, "gather_to_root"}}) {
    const std::string said = refusal(lowered(tiny_mlp(), replicas(4, algorithm)), on_fake(runtime, 1));
    EXPECT_NE(said.find(std::string("a collective by ") + name), std::string::npos) << said;
    EXPECT_NE(said.find("ring, tree, double_tree, parameter_server"), std::string::npos) << said;
  }
}

TEST(CudaAlgorithms, NcclRefusesWhatItDoesNotHave) {
  FakeRuntime runtime({.devices = 4});
  TwinSession twin(TwinSettings{});
  const Plan plan = lowered(tiny_mlp(), replicas(4, Algorithm::ParameterServer));
  const std::string said = refusal(plan, by_twin(runtime, twin.library(), {.ranks = 4}, 1));
  EXPECT_NE(said.find("a collective by parameter_server"), std::string::npos) << said;
  EXPECT_NE(said.find("NCCL"), std::string::npos) << said;
}

}  // namespace
}  // namespace foreshard::gpu::algorithms_test
