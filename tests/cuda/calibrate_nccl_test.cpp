// calibrate --collectives --device cuda on the twin of NCCL: its times mean nothing, its calls and its form do.
#include "exec/cuda_checks/calibrate_nccl.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"
#include "tests/cuda/twin_session.h"
#include "tests/exec/processes.h"

namespace foreshard::gpu::calibrate_nccl_test {
namespace {

std::vector<RankLocation> seats_of(FakeRuntime& runtime, const std::vector<std::string>& nodes) {
  std::vector<RankLocation> locations;
  for (std::size_t gpu = 0; gpu < nodes.size(); ++gpu)
    locations.push_back(location_of_gpu(runtime, static_cast<int>(gpu), nodes[gpu]));
  return locations;
}

// Kind, link, nodes and ranks of what was measured, once for all sizes.
std::set<std::string> entries(const std::vector<CollectiveMeasure>& measures) {
  std::set<std::string> all;
  for (const CollectiveMeasure& at : measures) {
    EXPECT_GT(at.time.value, 0);
    all.insert(std::to_string(static_cast<int>(at.kind)) + " " + word_of(at.algorithm) + " " + word_of(at.link) + " " +
               std::to_string(at.nodes) + "x" + std::to_string(at.ranks / at.nodes));
  }
  return all;
}

void expect_sound(FakeRuntime& runtime, TwinSession& twin) {
  const TwinReport report = twin.end();
  for (const std::string& complaint : report.complaints) ADD_FAILURE() << complaint;
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  EXPECT_EQ(report.destroyed, report.comms);
  EXPECT_EQ(report.registered, 0);
  EXPECT_EQ(runtime.allocated(), 0);
}

// Four GPUs in pairs with NVLink: 0-1 over NVLink, all over PCIe; five kinds. Two sizes of 6 rounds, 5 calls each: 60 calls of each rank of a group
// and kind; messages of an all-to-all are one call of the twin.
TEST(CalibrateNccl, MeasuresEveryGroupOverItsLinks) {
  FakeRuntime runtime({.devices = 4, .nvlinked = 2});
  TwinSession twin;
  {
    const auto groups = groups_to_measure(seats_of(runtime, {"a", "a", "a", "a"}), true);
    ASSERT_EQ(groups.size(), 2U);
    const auto ranks = nccl_collective_ranks(runtime, twin.library(), {.ranks = 4}, {{0}, {1}, {2}, {3}}, {16384},
                                             MeasuredAlgorithm::Automatic);
    const auto measures = measure_collectives(*ranks, nullptr, groups, {.most = {16384}, .most_rounds = 5});
    EXPECT_EQ(measures.size(), 20U);
    EXPECT_EQ(entries(measures),
              (std::set<std::string>{"0 automatic nvlink 1x2", "0 automatic pcie 1x4", "1 automatic nvlink 1x2",
                                     "1 automatic pcie 1x4", "2 automatic nvlink 1x2", "2 automatic pcie 1x4",
                                     "3 automatic nvlink 1x2", "3 automatic pcie 1x4", "5 automatic nvlink 1x2",
                                     "5 automatic pcie 1x4"}));
  }
  const TwinReport report = twin.end();
  EXPECT_EQ(report.calls, 60 * 5 * (2 + 4));
  expect_sound(runtime, twin);
}

// Four processes (threads with a mesh between them) of a GPU each, two per node; trees know all-reduces only.
TEST(CalibrateNccl, ProcessesMeasureAcrossNodes) {
  FakeRuntime runtime({.devices = 4, .nvlinked = 4});
  TwinSession twin;
  in_processes(4, 4, [&](ProcessMesh& mesh) {
    const auto groups = groups_to_measure(seats_of(runtime, {"a", "a", "b", "b"}), false);
    const NcclOptions options{.ranks = 4, .mesh = &mesh, .first_gpu = mesh.process()};
    const auto ranks =
        nccl_collective_ranks(runtime, twin.library(), options, {{mesh.process()}}, {4096}, MeasuredAlgorithm::Tree);
    const auto measures = measure_collectives(*ranks, &mesh, groups, {.most = {4096}, .most_rounds = 5});
    EXPECT_EQ(measures.size(), mesh.process() == 0 ? 3U : 0U);
    if (mesh.process() != 0) return;
    EXPECT_EQ(entries(measures), (std::set<std::string>{"0 tree nvlink 1x2", "0 tree network 2x1", "0 tree network 2x2"}));
  });
  expect_sound(runtime, twin);
}

// An error that NCCL meets by itself in the middle: the measurement ends with its words, and nothing is left.
TEST(CalibrateNccl, ABrokenNetworkEndsIt) {
  FakeRuntime runtime({.devices = 2, .nvlinked = 2});
  TwinSession twin({.failing_call = 33});
  std::string why;
  try {
    const auto ranks =
        nccl_collective_ranks(runtime, twin.library(), {.ranks = 2}, {{0}, {1}}, {4096}, MeasuredAlgorithm::Automatic);
    measure_collectives(*ranks, nullptr, groups_to_measure(seats_of(runtime, {"a", "a"}), true), {.most = {4096}});
  } catch (const DeviceError& error) {
    why = error.what();
  }
  EXPECT_NE(why.find("the network is broken"), std::string::npos) << why;
  const TwinReport report = twin.end();
  EXPECT_EQ(report.aborted, report.comms);
  EXPECT_TRUE(report.complaints.empty());
}

TEST(CalibrateNccl, TheAlgorithmIsThatOfTheVariable) {
  EXPECT_EQ(algorithm_of(nullptr), MeasuredAlgorithm::Automatic);
  EXPECT_EQ(algorithm_of(""), MeasuredAlgorithm::Automatic);
  EXPECT_EQ(algorithm_of("Ring"), MeasuredAlgorithm::Ring);
  EXPECT_EQ(algorithm_of("TREE"), MeasuredAlgorithm::Tree);
  EXPECT_EQ(algorithm_of("NVLSTree"), MeasuredAlgorithm::NvlsTree);
  EXPECT_EQ(algorithm_of("CollnetDirect"), MeasuredAlgorithm::CollnetDirect);
  EXPECT_EQ(algorithm_of("^Tree"), MeasuredAlgorithm::Automatic);
  EXPECT_EQ(algorithm_of("ring,tree"), MeasuredAlgorithm::Automatic);
}

}  // namespace
}  // namespace foreshard::gpu::calibrate_nccl_test
