// A parameter server whose workers are served in turn, as a plan: sound, stale by n - 1 updates, and wrong ones are found.
#include "strategy/server/asynchronous_server.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/json/json_edit.h"
#include "core/plan/plan.h"
#include "core/plan/ranks.h"
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

Strategy served(Strategy strategy, int servers) {
  strategy.communication.asynchronous = true, strategy.communication.servers = servers;
  if (strategy.batch.global == 0) strategy.batch = {.micro = 2, .global = 4 * strategy.dp};
  return strategy;
}

Bytes held(const Role& role, Category category) {
  Bytes bytes;
  for (const Buffer& buffer : role.buffers)
    if (buffer.category == category) bytes += buffer.bytes;
  return bytes;
}

// Whatever the degrees: servers have all states once, workers none, and every parameter is on one server (on tp of them).
TEST(AsynchronousServer, ServersHoldTheStatesAndShareTheParameters) {
  const Cluster cluster = load_cluster("dgx-a100-x2");
  Plan alone = lowered(small(), cluster, {.dp = 1, .batch = {.micro = 2, .global = 4}}).plan;
  for (const auto& [strategy, servers] : {std::pair{Strategy{.dp = 3}, 1},
                                          {Strategy{.dp = 3}, 2},
                                          {Strategy{.dp = 2}, 4},
                                          {Strategy{.dp = 2, .pp = 2}, 1},
                                          {Strategy{.dp = 2, .pp = 2}, 2},
                                          {Strategy{.dp = 2, .tp = 2}, 2},
                                          {Strategy{.dp = 2, .tp = 2, .pp = 2}, 4}}) {
    const Plan plan = lowered(small(), cluster, served(strategy, servers)).plan;
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    EXPECT_EQ(parse_plan(to_json(plan), "plan"), plan);
    const std::size_t roles = static_cast<std::size_t>(servers / strategy.tp);
    ASSERT_EQ(plan.roles.size(), roles + static_cast<std::size_t>(strategy.dp * strategy.pp));
    Bytes states, parameters, most;
    for (std::size_t r = 0; r < plan.roles.size(); ++r) {
      if (r >= roles) EXPECT_EQ(held(plan.roles[r], Category::Optimizer), Bytes{}) << plan.roles[r].name;
      if (r >= roles) continue;
      states += held(plan.roles[r], Category::Optimizer);
      parameters += held(plan.roles[r], Category::Parameters);
      most = std::max(most, held(plan.roles[r], Category::Parameters));
    }
    const Bytes all = held(alone.roles[0], Category::Parameters), all_states = held(alone.roles[0], Category::Optimizer);
    if (strategy.tp == 1) EXPECT_EQ(parameters, all);
    if (strategy.tp == 1) EXPECT_EQ(states, all_states);
    if (strategy.tp == 2) EXPECT_LT(parameters.value, 0.6 * static_cast<double>(all.value));
    EXPECT_LT(static_cast<double>(most.value), 1.3 * static_cast<double>(parameters.value) / static_cast<double>(roles));
  }
}

// Two nodes of eight: the servers are on the first two GPUs, or on the first one of each node; workers are on the others in their order.
TEST(AsynchronousServer, ServersAreOnTheGpusThatAreAskedFor) {
  const Cluster cluster = load_cluster("dgx-a100-x2");
  const auto devices = [&](ServerPlacement placement) {
    Strategy strategy = served({.dp = 14}, 2);
    strategy.communication.server_placement = placement;
    const Plan plan = lowered(small(), cluster, strategy).plan;
    EXPECT_TRUE(check_plan(plan).empty());
    const Ranks ranks(plan);
    std::vector<int> all;
    for (int r = 0; r < 4; ++r) all.push_back(ranks.device({r}).value);
    return all;
  };
  EXPECT_EQ(devices(ServerPlacement::First), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(devices(ServerPlacement::Spread), (std::vector<int>{0, 8, 1, 2}));
  EXPECT_EQ(devices(ServerPlacement::Nodes), (std::vector<int>{0, 8, 1, 2}));
}

// A byte and a 64th of one for each number of a matrix in 16 bits; vectors are sent as they are, and parameters too.
TEST(AsynchronousServer, CodesAreSentInsteadOfMatrices) {
  const auto sent = [](Codec codec, const std::string& name) {
    Strategy strategy = served({.dp = 2}, 2);
    strategy.communication.gradients.codec = codec;
    const Plan plan = lowered(small(), load_cluster("dgx-a100"), strategy).plan;
    EXPECT_TRUE(check_plan(plan).empty());
    double bytes = 0;
    for (const Action& action : plan.roles[2].actions)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions)
        if (const auto* what = std::get_if<Exchange>(&run.what); what && what->tag == name)
          bytes += static_cast<double>(what->bytes.value);
    return bytes;
  };
  EXPECT_NEAR(sent(Codec::EightBit, "push"), sent(Codec::None, "push") * (1 + 1. / 64) / 2, 0.01 * sent(Codec::None, "push"));
  EXPECT_EQ(sent(Codec::EightBit, "pull"), sent(Codec::None, "pull"));
}

// A worker that does not send what it has summed, a server that updates too early, a worker that does not wait for its second server.
TEST(AsynchronousServer, WrongPlansOfSeveralServersAreFound) {
  const Plan plan = lowered(small(), load_cluster("dgx-a100"), served({.dp = 1, .pp = 2}, 2)).plan;
  const auto rules = [](const Plan& changed) {
    std::set<std::string> all;
    for (const PlanDefect& defect : check_plan(changed)) all.insert(defect.rule);
    return all;
  };
  EXPECT_TRUE(rules(plan).empty());
  const auto segment = [](Plan& of, std::size_t role, const std::string& name) -> Segment& {
    for (const Action& action : of.roles[role].actions)
      if (Segment& found = of.segments[action.segment.index()]; found.name == name) return found;
    ADD_FAILURE() << name;
    return of.segments[0];
  };
  Plan unsent = plan;  // the last gradient that the first stage sends, and the server's receive of it
  const auto first_server = [](const Instruction& run) {
    const auto* what = std::get_if<Exchange>(&run.what);
    return what && (what->to ? what->to->role_shift == -2 : what->from->role_shift == 2);
  };
  for (const std::size_t role : {std::size_t{2}, std::size_t{0}}) {
    std::vector<Instruction>& runs = segment(unsent, role, "push").instructions;
    const auto last = std::find_if(runs.rbegin(), runs.rend(), first_server);
    ASSERT_NE(last, runs.rend());
    last->what = Mark{}, last->reads.clear(), last->writes.clear();
  }
  EXPECT_EQ(rules(unsent), std::set<std::string>{"gradient-lost"});
  Plan early = plan;  // the next forward does not wait for what the second server sends
  segment(early, 2, "begin").instructions[0].waits.clear();
  EXPECT_TRUE(rules(early).contains("access-unordered"));
  Plan beside = plan;  // the push to the second server does not wait for that to the first, which waits for the backward
  for (Instruction& run : segment(beside, 2, "push").instructions)
    if (run.stream.value > 0 && std::holds_alternative<Exchange>(run.what)) run.after.clear();
  EXPECT_TRUE(rules(beside).contains("access-unordered"));
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
  EXPECT_EQ(reason({.dp = 8}), "8 workers on 1 GPU each and 1 server need 9 GPUs, but dgx-a100 has 8");
  EXPECT_EQ(reason({.dp = 4, .tp = 2}), "4 workers on 2 GPUs each and 2 servers need 10 GPUs, but dgx-a100 has 8");
  EXPECT_EQ(reason({.cp = 2}), "an asynchronous server has workers that see whole sequences: found cp 2");
  EXPECT_EQ(reason({.tp = 2, .communication = {.servers = 3}}),
            "each of the tp 2 GPUs that share a worker's layers pushes to servers of its own: found 3 servers");
  EXPECT_EQ(reason({.tp = 2, .optimizer = {.clip_norm = 1}}),
            "gradients are clipped by the norm of all of them, which several asynchronous servers, or the GPUs of a worker, "
            "have in parts");
  EXPECT_NE(reason({.dp = 1, .communication = {.servers = 127}}, "dgx-a100-x16").find("whole units of parameters: there are "),
            std::string::npos);
  EXPECT_EQ(reason({.zero = {.stage = 1}}), "an asynchronous server keeps all optimizer states: there is nothing to shard");
  EXPECT_EQ(reason({.optimizer = {.loss_scale = 0}}), "an asynchronous server updates before it knows all workers' gradients");
  EXPECT_EQ(reason({.framework = "megatron"}), "framework megatron has no asynchronous server");
  Strategy offloaded;
  offloaded.offload.optimizer = Space::PinnedHost;
  EXPECT_EQ(reason(offloaded), "an asynchronous server has workers that keep everything on their GPU");
  Strategy coded;
  coded.communication.gradients = {.codec = Codec::OneBit, .warm_up = 1};
  EXPECT_EQ(reason(coded), "an asynchronous server has the first moment, which one-bit with Adam would send");
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
  EXPECT_TRUE(std::get<SearchResult>(answer).failed.empty());
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
  EXPECT_EQ(reason(two, 2), "each worker of an asynchronous server is one replica on whole sequences");
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
