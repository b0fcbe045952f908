// A parameter server whose workers are served in turn, simulated. In the steady state a run (one update for each of n workers) takes
//   max(compute + push + update + pull, n (push + update + pull))
// that is, what one worker needs alone, or what the server needs for all; the staleness is n - 1.
#include "strategy/server/asynchronous_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/cluster_file/cluster_file.h"
#include "replay/async_server.h"
#include "sim/simulate.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/tune/tune.h"
#include "tests/core/support_models.h"

namespace foreshard::asynchronous_server_test {
namespace {

const Cluster& dgx() {
  static const Cluster cluster = load_cluster("dgx-a100");
  return cluster;
}

Plan plan_of(int workers, std::int64_t global) {
  const Model model = gpt(8, 1024, 16, 8192, 512);
  auto answer = tuned_plan(model, dgx(), {.dp = 1, .batch = {.micro = 8, .global = global}}, {.ignore_memory = true});
  Plan plan = std::get<Plan>(asynchronous_server(std::get<Lowered>(answer).plan, workers));
  cost_plan(plan, dgx());
  return plan;
}

Result simulated(const Plan& plan, int runs) {
  return simulate(plan, dgx(), {.granularity = Granularity::Op, .folding = Folding::None, .memory = false, .runs = runs});
}

double period(const Plan& plan) { return (simulated(plan, 8).makespan_s - simulated(plan, 4).makespan_s) / 4; }

// The parts of a run of one worker. Actions of the server: push, update, pull for each worker.
struct Parts {
  double compute = 0, push = 0, update = 0, pull = 0;
};
Parts parts_of(std::int64_t global) {
  const Plan plan = plan_of(1, global);
  const Result result = simulated(plan, 1);
  const auto pushes = static_cast<std::int32_t>(plan.roles[1].actions.size()) - 2;  // the worker's last actions: push, pull
  double pushed = 0, received = 0, updated = 0, sent = 0;
  const auto later = [](double& at, Nanoseconds end) { at = std::max(at, static_cast<double>(end.value) * 1e-9); };
  for (const Span& span : result.trace.spans) {
    const bool server = result.trace.classes[span.who.index()].role.value == 0;
    if (server && span.action == 0) later(received, span.end);
    if (server && span.action == 1) later(updated, span.end);
    if (server && span.action == 2) later(sent, span.end);
    if (!server && span.action < pushes) later(pushed, span.end);
  }
  return {.compute = pushed, .push = received - pushed, .update = updated - received, .pull = sent - updated};
}

// Of the updates of the last run: how many updates of others began between the worker's pull and the update.
double staleness(const Plan& plan, int workers) {
  constexpr int kRuns = 4;
  const Result result = simulated(plan, kRuns);
  std::map<int, double> updated, pulled;  // by number of the server's turn
  for (const Span& span : result.trace.spans) {
    if (result.trace.classes[span.who.index()].role.value != 0) continue;
    const int turn = span.action / 3;
    if (span.action % 3 == 1) updated.try_emplace(turn, static_cast<double>(span.begin.value));
    if (span.action % 3 == 2) pulled[turn] = static_cast<double>(span.begin.value);
  }
  double sum = 0;
  for (int w = 0; w < workers; ++w) {
    const int turn = (kRuns - 1) * workers + w;
    for (const auto& [other, begin] : updated) sum += begin > pulled.at(turn - workers) && begin < updated.at(turn) ? 1 : 0;
  }
  return sum / workers;
}

TEST(AsynchronousServer, TheSteadyPeriodIsAWorkersOrTheServers) {
  for (const std::int64_t global : {8, 64}) {
    const Parts one = parts_of(global);
    const double served = one.push + one.update + one.pull;
    EXPECT_GT(one.compute, 0);
    int bound_by_server = 0;
    for (const int n : {1, 3, 7}) {
      const Plan plan = plan_of(n, global);
      const double expected = std::max(one.compute + served, n * served);
      bound_by_server += n * served > one.compute + served ? 1 : 0;
      EXPECT_NEAR(period(plan), expected, 1e-3 * expected) << n << " " << global;
    }
    EXPECT_EQ(bound_by_server > 0, global == 8);
  }
}

// While the server has time left, the model without a fixed order (replay/async_server.h) has the same rate and staleness.
TEST(AsynchronousServer, AgreesWithTheModelWithoutAFixedOrder) {
  const Parts one = parts_of(64);
  for (const int n : {2, 4, 7}) {
    const Plan plan = plan_of(n, 64);
    const AsyncRun run = run_async(
        {.workers = n, .compute = {one.compute}, .pull = {one.pull}, .push = {one.push}, .update = {one.update}}, 50 * n);
    const double rate = static_cast<double>(run.updates) / run.time.value;
    EXPECT_NEAR(n / period(plan), rate, 0.05 * rate) << n;
    EXPECT_NEAR(staleness(plan, n), run.staleness, 0.05 * (n - 1)) << n;
    EXPECT_DOUBLE_EQ(staleness(plan, n), n - 1) << n;
  }
}

// Two servers: a worker pushes P0 to the first and then P1 to the second, each updates and sends back what it has. In the steady state
//   max(compute + max(P0 + U0 + L0, P0 + P1 + U1 + L1), n max(P0 + U0 + L0, P1 + U1 + L1))
TEST(AsynchronousServer, TwoServersShareTheWork) {
  const auto plan_of_two = [](int workers, int servers = 2) {
    Strategy strategy{.dp = workers, .batch = {.micro = 1, .global = workers}};
    strategy.communication.asynchronous = true, strategy.communication.servers = servers;
    auto answer = tuned_plan(gpt(8, 1024, 16, 8192, 512), dgx(), strategy, {.ignore_memory = true});
    return std::get<Lowered>(std::move(answer)).plan;
  };
  const Result alone = simulated(plan_of_two(1), 1);
  double received[2] = {}, updated[2] = {}, sent[2] = {}, pushed = 0;
  const Plan one = plan_of_two(1);
  const std::size_t trains = one.roles[2].actions.size() - 2;
  for (const Span& span : alone.trace.spans) {
    const std::int32_t role = alone.trace.classes[span.who.index()].role.value;
    const auto end = static_cast<double>(span.end.value) * 1e-9;
    if (role == 2 && static_cast<std::size_t>(span.action) < trains) pushed = std::max(pushed, end);
    if (role == 2) continue;
    double& of = span.action == 0 ? received[role] : span.action == 1 ? updated[role] : sent[role];
    of = std::max(of, end);
  }
  const double p0 = received[0] - pushed, p1 = received[1] - received[0];
  const double rest0 = sent[0] - received[0], rest1 = sent[1] - received[1];
  for (const int n : {1, 3, 6}) {
    const double expected = std::max(pushed + std::max(p0 + rest0, p0 + p1 + rest1), n * std::max(p0 + rest0, p1 + rest1));
    EXPECT_NEAR(period(plan_of_two(n)), expected, 1e-2 * expected) << n;
  }
  EXPECT_LT(period(plan_of_two(6)), 0.65 * period(plan_of_two(6, 1)));  // bound by the servers, which are twice as many
}

}  // namespace
}  // namespace foreshard::asynchronous_server_test
