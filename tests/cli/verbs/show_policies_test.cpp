// What show policies says of a plan's collectives.
#include <gtest/gtest.h>

#include "tests/cli/run_line.h"

namespace foreshard::show_policies_test {
namespace {

const std::string kJob = "show policies --model gpt2-124m --cluster eth25-a100-x2 --global-batch 16 --seq 128 ";

// Two nodes of eight: a hierarchy sends the sum once through a network card, a ring nearly twice; a tree does, too, at 0.92 of the rate.
TEST(ShowPolicies, TellsWhichAlgorithmIsTheCheapest) {
  EXPECT_EQ(run_line(kJob).out.find("algorithms of the plan's collectives"), std::string::npos) << "all are rings";
  const std::string text = run_line(kJob + "--algorithm auto").out;
  EXPECT_NE(text.find("sums of gradients      any    gradients, parameters  auto"), std::string::npos) << text;
  EXPECT_NE(text.find("algorithms of the plan's collectives, and their time alone"), std::string::npos) << text;
  EXPECT_NE(text.find("  hierarchical  "), std::string::npos) << text;
}

TEST(ShowPolicies, TellsWhatAPlanMadeOfAWish) {
  EXPECT_NE(run_line(kJob + "--algorithm parameter-server --servers 3").out.find("parameter-server, 3 servers"),
            std::string::npos);
  const std::string sharded = run_line(kJob + "--algorithm tree --zero 1").out;  // a reduce-scatter goes by no tree
  const std::string found = sharded.substr(sharded.find("algorithms of the plan's collectives"));
  EXPECT_NE(found.find("reduce-scatter gradients  shards"), std::string::npos) << sharded;
  EXPECT_NE(found.find("  ring  "), std::string::npos) << sharded;
  EXPECT_EQ(found.find("  tree  "), std::string::npos) << sharded;
}

}  // namespace
}  // namespace foreshard::show_policies_test
