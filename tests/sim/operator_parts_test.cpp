// A fine-grained pipeline on the simulator: the forward of a lowered plan ends when the recurrence of strategy/partition/fine_parts.h says,
// with no share of the SMs for communication and no latency.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/check/check_plan.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "sim/simulate.h"
#include "strategy/partition/fine_parts.h"
#include "strategy/tune/tune.h"
#include "tests/core/support_models.h"

namespace foreshard::operator_parts_test {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Model layers(int count) { return gpt(count, 64, 4, 256, 32); }

Plan plan_of(const Cluster& cluster, int count, std::vector<int> parts) {
  const Strategy strategy{.dp = 1, .tp = 2, .batch = {.micro = 8, .global = 8}, .communication = {.parts = std::move(parts)}};
  auto answer = tuned_plan(layers(count), cluster, strategy, {.ignore_memory = true});
  if (const auto* refused = std::get_if<Infeasible>(&answer)) throw Error(refused->reason);
  return std::get<Lowered>(std::move(answer)).plan;
}

// Costs of the forward by hand. A part of an operation: all that is computed up to a collective, and that. Seconds are whole numbers of
// nanoseconds, so nothing is rounded. Returns the operations in order, and the instruction of each one's last collective.
struct Chain {
  std::vector<FineOperation> operations = {};
  std::vector<int> parts = {}, last = {};
};
Chain set_costs(Plan& plan, double bandwidth, std::mt19937& random) {
  const SegmentId segment = plan.roles[0].actions[0].segment;
  const std::vector<Instruction>& run = plan.segments[segment.index()].instructions;
  std::vector<Cost>& costs = plan.costs[0].by_segment[segment.index()];
  const auto seconds = [&](int most) { return static_cast<double>(8 * (1 + random() % static_cast<unsigned>(most))); };
  const auto nanoseconds = [](double s) { return Nanoseconds{static_cast<std::int64_t>(s * kSecond)}; };
  Chain chain;
  std::string open;
  int first = -1;
  for (std::size_t i = 0; i < run.size(); ++i) {
    costs[i] = {};
    if (std::holds_alternative<Compute>(run[i].what) && first < 0) first = static_cast<int>(i);
    const auto* sum = std::get_if<Collective>(&run[i].what);
    if (!sum) continue;
    const std::string name = run[i].name.substr(0, run[i].name.find(' '));
    const std::size_t slash = run[i].name.find('/');
    const int n = slash == std::string::npos ? 1 : std::stoi(run[i].name.substr(slash + 1));
    if (open != name + std::to_string(run[i].layer.value))
      chain.operations.push_back(
          {.compute = seconds(20), .communication = seconds(20), .overhead = seconds(2) / 8, .latency = seconds(2) / 8}),
          chain.parts.push_back(n), chain.last.push_back(0), open = name + std::to_string(run[i].layer.value);
    const FineOperation& of = chain.operations.back();
    costs[static_cast<std::size_t>(first)].busy = nanoseconds(of.overhead + of.compute / n);
    costs[i].busy = nanoseconds(of.latency);
    costs[i].wire_factor =
        of.communication / n * bandwidth / static_cast<double>(sum->bytes.value);  // 2 ranks: every byte once
    chain.last.back() = static_cast<int>(i);
    first = -1;
  }
  return chain;
}

double end_of(const Result& result, int instruction) {
  for (const Span& span : result.trace.spans)
    if (span.action == 0 && span.instruction == instruction) return static_cast<double>(span.end.value) * 1e-9;
  ADD_FAILURE() << "no span";
  return 0;
}

TEST(OperatorParts, SimulatorReproducesTheRecurrence) {
  constexpr double kBandwidth = 300e9;
  Cluster cluster = load_cluster("dgx-a100");
  for (auto& link : cluster.nodes.front().shape.links) {
    link.latency = {};
    if (link.kind == LinkKind::NvLink) link.bandwidth = {kBandwidth};
  }
  std::mt19937 random(2);
  for (const std::vector<int>& parts : std::vector<std::vector<int>>{{2}, {8}, {2, 4}, {8, 1}, {1, 4}, {4, 8}}) {
    Plan plan = plan_of(cluster, 3, parts);
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    const Chain chain = set_costs(plan, kBandwidth, random);
    ASSERT_EQ(chain.operations.size(), 9U);  // the embedding's sum, two of each layer, two of the loss
    for (const int layer : {0, 1, 2}) {
      EXPECT_EQ(chain.parts[static_cast<std::size_t>(1 + 2 * layer)], parts.front());
      EXPECT_EQ(chain.parts[static_cast<std::size_t>(2 + 2 * layer)], parts.back());
    }
    const Result result = simulate(std::move(plan), cluster, {.granularity = Granularity::Op});
    for (std::size_t count = 1; count <= chain.operations.size(); ++count) {
      const auto end = static_cast<std::ptrdiff_t>(count);
      const double expected = fine_seconds({chain.operations.begin(), chain.operations.begin() + end},
                                           {chain.parts.begin(), chain.parts.begin() + end});
      EXPECT_NEAR(end_of(result, chain.last[count - 1]), expected, 1e-9 * expected) << "operation " << count;
    }
  }
}

}  // namespace
}  // namespace foreshard::operator_parts_test
