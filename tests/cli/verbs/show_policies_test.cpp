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

TEST(ShowPolicies, TellsWhichMembersServe) {
  const std::string four = kJob + "--algorithm parameter-server --servers 4 ";
  EXPECT_NE(run_line(four + "--server-placement nodes").out.find("parameter-server, 4 servers: members 0, 8, 1, 9"),
            std::string::npos);
  EXPECT_NE(run_line(four + "--server-placement spread").out.find("parameter-server, 4 servers: members 0, 4, 8, 12"),
            std::string::npos);
  EXPECT_EQ(run_line(four).out.find("members 0"), std::string::npos);
}

// Nothing is summed, and the servers are listed with what they hold.
TEST(ShowPolicies, TellsTheAsynchronousServers) {
  const std::string job = "show policies --model gpt2-124m --cluster dgx-a100 --global-batch 12 --seq 128 --asynchronous ";
  const std::string two = run_line(job + "--servers 2 --compress-gradients eight-bit").out;
  EXPECT_NE(two.find("asynchronous servers, which update and alone have the optimizer's states"), std::string::npos) << two;
  EXPECT_NE(two.find("server 1    1  6 workers in turn   eight-bit"), std::string::npos) << two;
  EXPECT_EQ(two.find("all-reduce"), std::string::npos) << two;
  const std::string json = run_line(job + "--dp 6 --json").out;
  EXPECT_NE(json.find("\"takes_gradients_of\": \"6 workers in turn\""), std::string::npos) << json;
}

// --gpus counts all GPUs, those of servers included.
TEST(ShowPolicies, GpusOfServersAreCounted) {
  const std::string job =
      "simulate --model gpt2-124m --cluster dgx-a100 --seq 128 --ignore-memory --clock light --asynchronous ";
  const RanLine all = run_line(job + "--gpus 8 --global-batch 56");
  EXPECT_NE(all.out.find("gpt2-124m on dgx-a100, 8 GPUs"), std::string::npos) << all.out << all.err;
  EXPECT_NE(all.out.find("dp 7"), std::string::npos) << all.out;
  EXPECT_NE(run_line(job + "--gpus 4 --global-batch 6").out.find("dgx-a100, 4 GPUs"), std::string::npos);
  EXPECT_NE(run_line(job + "--gpus 8 --tp 2 --servers 4 --global-batch 6").out.find("dp 2"), std::string::npos);
  EXPECT_EQ(run_line(job + "--gpus 1 --global-batch 6").err,
            "foreshard: command line: --gpus: found 1, expected a multiple of 1 (tp x cp x pp), and 1 server\n");
  EXPECT_EQ(run_line(job + "--gpus 8 --dp 8 --global-batch 8").err,
            "foreshard: command line: --gpus: found 8, expected 9 (dp x tp x cp x pp, and 1 server)\n");
}

}  // namespace
}  // namespace foreshard::show_policies_test
