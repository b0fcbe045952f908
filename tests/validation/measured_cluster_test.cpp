// The network of published rows.
#include "validation/measured_cluster.h"

#include <gtest/gtest.h>

#include "validation/measured.h"
#include "validation/measured_case.h"

namespace foreshard::measured_cluster_test {

static const std::string kData = std::string(FORESHARD_SOURCE) + "/data/measured/";

// A node has as many of its four adapters in use as it has tensor-parallel ranks, each in a communicator of its own.
TEST(MeasuredCluster, OmniPathHasAnAdapterPerCommunicator) {
  int rows = 0;
  for (const MeasuredRow& row : load_measured(kData + "bigscience_v100.csv")) {
    const auto answer = measured_case(row);
    const auto* question = std::get_if<MeasuredCase>(&answer);
    if (!question || !row.mentions("notes", "gb/s opa")) continue;
    EXPECT_EQ(question->cluster.nodes.front().shape.nics, *row.number("tp")) << row.where();
    ++rows;
  }
  EXPECT_GE(rows, 13);
}

// 40.6 of 100 Gb/s with A100, 55 with V100, of which a cluster's links reach 94 %.
TEST(MeasuredCluster, OmniPathIsSlowerWithA100) {
  for (const auto& [file, words, share] :
       {std::tuple{"bigscience_a100.csv", "omni-path", 0.406}, {"bigscience_v100.csv", "gb/s opa", 0.55}}) {
    int rows = 0;
    for (const MeasuredRow& row : load_measured(kData + file)) {
      const auto answer = measured_case(row);
      const auto* question = std::get_if<MeasuredCase>(&answer);
      if (!question || !row.mentions("notes", words)) continue;
      EXPECT_NEAR(question->cluster.nodes.front().shape.nic_bandwidth.value * 8e-9,
                  *row.number("inter_link_gbps_per_gpu") * share / 0.94, 1e-6)
          << row.where();
      ++rows;
    }
    EXPECT_GE(rows, 10) << file;
  }
}

}  // namespace foreshard::measured_cluster_test
