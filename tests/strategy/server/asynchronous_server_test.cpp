// A parameter server whose workers are served in turn, as a plan: sound, stale by n - 1 updates, and wrong ones are found.
#include "strategy/server/asynchronous_server.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/json/json_edit.h"
#include "core/plan/plan.h"
#include "strategy/estimate/estimate.h"
#include "strategy/search/search.h"
#include "tests/core/support_models.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::asynchronous_server_test {
namespace {

Model small() { return gpt(2, 256, 4, 1024, 128); }

Plan one_worker(Strategy strategy = {}) {
  strategy.dp = 1, strategy.batch = {.micro = 2, .global = 4};
  return lowered(small(), load_cluster("dgx-a100"), strategy).plan;
}

// Per update of a run in the steady state: the updates of others between the pull of the worker that pushed and the update.
std::vector<int> staleness(const Plan& plan) {
  std::vector<int> all;
  std::map<std::int32_t, int> pulled;  // [worker's role]: number of updates at its last pull
  int updates = 0;
  std::int32_t worker = 0;
  for (int run = 0; run < 2; ++run)
    for (const Action& action : plan.roles[0].actions) {
      const Instruction& first = plan.segments[action.segment.index()].instructions.front();
      const auto* exchange = std::get_if<Exchange>(&first.what);
      if (exchange && exchange->from) worker = exchange->from->role_shift;
      if (exchange && exchange->to) pulled[exchange->to->role_shift] = updates;
      if (action.does.empty()) continue;
      if (run == 1) all.push_back(updates - pulled.at(worker));
      ++updates;
    }
  return all;
}

TEST(AsynchronousServer, PlansAreSoundAndStaleByTheOthers) {
  for (const int n : {1, 2, 5, 16}) {
    const auto answer = asynchronous_server(one_worker(), n);
    const Plan& plan = std::get<Plan>(answer);
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    EXPECT_EQ(std::ssize(plan.roles), n + 1);
    EXPECT_EQ(plan.updates, n);
    EXPECT_EQ(plan.samples, n * one_worker().samples);
    EXPECT_EQ(staleness(plan), std::vector<int>(static_cast<std::size_t>(n), n - 1));
    EXPECT_EQ(parse_plan(to_json(plan), "plan"), plan);
  }
}

// Each of these makes another program than a parameter server is.
TEST(AsynchronousServer, WrongPlansAreFound) {
  const Plan plan = std::get<Plan>(asynchronous_server(one_worker(), 3));
  const auto rule = [](const Plan& changed) -> std::string {
    const auto defects = check_plan(changed);
    return defects.empty() ? "" : defects[0].rule;
  };
  Plan late = plan;  // the server receives the gradients of the second worker before it has used those of the first
  std::vector<Action>& actions = late.roles[0].actions;  // push update pull push update pull ...
  std::rotate(actions.begin() + 1, actions.begin() + 3, actions.begin() + 4);
  std::set<std::string> rules;
  for (const PlanDefect& defect : check_plan(late)) rules.insert(defect.rule);
  EXPECT_EQ(rules, (std::set<std::string>{"gradient-lost", "update-without-gradient"}));
  Plan order = plan;  // the first worker pulls before it pushes: both wait
  std::vector<Action>& of_worker = order.roles[1].actions;
  std::swap(of_worker.back(), of_worker[of_worker.size() - 2]);
  EXPECT_EQ(rule(order), "deadlock");
  Plan missing = plan;
  missing.roles[2].actions.pop_back();
  EXPECT_EQ(rule(missing), "exchange-mismatch");
}

TEST(AsynchronousServer, TheOptionOfAStrategyMakesTheSamePlan) {
  Strategy strategy{.dp = 3, .batch = {.micro = 2, .global = 12}};
  strategy.communication.asynchronous = true;
  const Cluster cluster = load_cluster("dgx-a100");
  const Lowered made = lowered(small(), cluster, strategy);
  EXPECT_EQ(program_hash(made.plan), program_hash(std::get<Plan>(asynchronous_server(one_worker(), 3))));
  EXPECT_EQ(made.strategy.dp, 3);
  EXPECT_EQ(made.strategy.batch.global, 12);
  EXPECT_EQ(json_value(made.plan.origin, "strategy.asynchronous", "origin"), "true");
  EXPECT_FALSE(made.plan.costs.front().by_segment.empty());
  strategy.dp = 0, strategy.batch.global = 14;  // as many workers as there are GPUs beside the server's
  EXPECT_EQ(std::ssize(lowered(small(), cluster, strategy).plan.roles), 8);
  strategy.recompute = {.kind = RecomputeKind::Each};  // tuned as one worker is
  EXPECT_EQ(std::ssize(lowered(small(), cluster, strategy).plan.roles), 8);
}

TEST(AsynchronousServer, StrategiesThatHaveNoneAreRefused) {
  const auto reason = [](Strategy strategy, const std::string& cluster = "dgx-a100") {
    strategy.communication.asynchronous = true;
    if (strategy.batch.global == 0) strategy.batch.global = 16;
    return refused(small(), load_cluster(cluster), strategy).reason;
  };
  EXPECT_EQ(reason({.tp = 2}), "an asynchronous server has workers on one GPU each: found tp 2, cp 1, pp 1");
  EXPECT_EQ(reason({.dp = 8}), "dp 8 workers and a server need 9 GPUs, but dgx-a100 has 8");
  EXPECT_EQ(reason({.zero = {.stage = 1}}), "an asynchronous server keeps all optimizer states: there is nothing to shard");
  EXPECT_EQ(reason({.optimizer = {.loss_scale = 0}}), "an asynchronous server updates before it knows all workers' gradients");
  EXPECT_EQ(reason({.framework = "megatron"}), "framework megatron has no asynchronous server");
  Strategy offloaded;
  offloaded.offload.optimizer = Space::PinnedHost;
  EXPECT_EQ(reason(offloaded), "an asynchronous server has workers that keep everything on their GPU");
  Strategy coded;
  coded.communication.gradients.codec = Codec::EightBit;
  EXPECT_EQ(reason(coded), "an asynchronous server takes gradients as they are");
}

// A search replays every strategy of this small space.
TEST(AsynchronousServer, ASearchFindsTheFastestWorkers) {
  const Cluster cluster = load_cluster("dgx-a100");
  SearchOptions options;
  options.base.communication.asynchronous = true;
  options.base.batch.global = 7 * 8;
  const auto answer = search(small(), cluster, options);
  const Candidate& best = std::get<SearchResult>(answer).ranked.front();
  EXPECT_EQ(best.gpus(), 8);
  double least = 1e300;
  int count = 0;
  for (const std::int64_t micro : {1, 2, 4, 8})
    for (const RecomputeKind kind : {RecomputeKind::None, RecomputeKind::Selective, RecomputeKind::Full}) {
      Strategy strategy = options.base;
      strategy.batch.micro = micro, strategy.recompute.kind = kind;
      least = std::min(least, refine(lowered(small(), cluster, strategy), cluster).time.value);
      ++count;
    }
  EXPECT_EQ(count, 12);
  EXPECT_DOUBLE_EQ(best.estimate.time.value, least);
}

TEST(AsynchronousServer, WhatIsNoWorkerIsRefused) {
  const auto reason = [](const Plan& one, int workers) {
    return std::get<Infeasible>(asynchronous_server(one, workers)).reason;
  };
  EXPECT_EQ(reason(one_worker(), 0), "an asynchronous server has at least one worker");
  const Plan two = lowered(small(), load_cluster("dgx-a100"), {.dp = 2, .batch = {.micro = 2, .global = 4}}).plan;
  EXPECT_EQ(reason(two, 2), "each worker of an asynchronous server is one device");
  Strategy offloaded;
  offloaded.offload.optimizer = Space::PinnedHost;
  EXPECT_EQ(reason(one_worker(offloaded), 2),
            "a worker of an asynchronous server keeps its parameters and gradients on its device");
  Strategy away;
  away.offload.activations = OffloadedActivations::All;
  EXPECT_EQ(reason(one_worker(away), 2), "a worker of an asynchronous server computes on its device only");
}

}  // namespace
}  // namespace foreshard::asynchronous_server_test
