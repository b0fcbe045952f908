// Sums of gradients and gathers of parameters of the same ranks share a stream: in which order they stand on it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/strategy/support_lower.h"

namespace foreshard::replica_stream_test {
namespace {

// What the backward of a pipeline of one stage says to the replicas, in issue order: "g" and "r" with the layer's number.
std::vector<std::string> talk(const Overlap& overlap) {
  const Lowered job =
      lowered("llama-2-7b", "dgx-a100",
              {.dp = 8, .batch = {.micro = 1, .global = 16}, .zero = {.stage = 3}, .communication = {.overlap = overlap}});
  const Role& role = job.plan.roles.front();
  std::vector<std::string> said;
  for (const Segment& segment : job.plan.segments) {
    if (!segment.name.starts_with("backward")) continue;
    said.clear();
    for (const Instruction& run : segment.instructions) {
      const auto* what = std::get_if<Collective>(&run.what);
      if (!what) continue;
      EXPECT_EQ(role.streams[run.stream.index()].name, "gradients, parameters") << run.name;
      if (run.name == "gather") said.push_back("g");
      if (run.name == "reduce-scatter gradients") said.push_back("r");
    }
  }
  return said;
}

// Places for two layers: the head and the layer before it are gathered, then each sum of gradients follows the gather of the
// layer after next; the embedding is not gathered for its backward. Head, 32 layers, embedding: 33 gathers, 34 sums.
TEST(ReplicaStream, PrefetchedParametersGoBeforeSums) {
  const std::vector<std::string> said = talk({.gradients = true, .parameters = true});
  ASSERT_EQ(said.size(), 67U);
  EXPECT_EQ(said[0], "g");
  for (std::size_t i = 1; i < 65; i += 2) EXPECT_EQ(said[i] + said[i + 1], "gr") << i;
  EXPECT_EQ(said[65] + said[66], "rr");
}

// One place: the sums of a layer, then the parameters of the next one.
TEST(ReplicaStream, WithoutPrefetchSumsGoFirst) {
  const std::vector<std::string> said = talk({.gradients = true, .parameters = false});
  ASSERT_EQ(said.size(), 67U);
  for (std::size_t i = 0; i < 66; i += 2) EXPECT_EQ(said[i] + said[i + 1], "gr") << i;
  EXPECT_EQ(said[66], "r");
}

}  // namespace
}  // namespace foreshard::replica_stream_test
