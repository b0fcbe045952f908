// Every dispatcher trains a mixture of experts as one device does, in double precision, and drops the same tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/check/check_plan.h"
#include "core/op/dispatcher.h"
#include "exec/interpreter/expert_counts.h"
#include "tests/exec/mixture_models.h"
#include "tests/exec/training.h"

namespace foreshard::dispatchers_test {
namespace {

constexpr double kTolerance = 1e-12;

const ModernModel& mixture_named(const std::string& name) { return *std::ranges::find(mixtures(), name, &ModernModel::name); }

Execution trained_twice(const Model& model, const Strategy& strategy) { return trained(model, strategy, 2); }

// What one device trains: every strategy below has micro-batches of one sample, as the auxiliary loss looks at each of them.
const Execution& on_one_device(const ModernModel& which) {
  static std::map<std::string, Execution> known;
  const auto [at, fresh] = known.try_emplace(which.name);
  if (fresh) at->second = trained_twice(modern_model(which), {.batch = {.micro = 1}});
  return at->second;
}

void expect_as_one_device(const ModernModel& which, const Strategy& strategy) {
  SCOPED_TRACE(which.name + " " + name_of(strategy) + " " + name_of(strategy.experts.dispatcher));
  const Difference apart = difference(trained_twice(modern_model(which), strategy), on_one_device(which));
  EXPECT_LE(apart.loss, kTolerance);
  EXPECT_LE(apart.gradients, kTolerance) << apart.worst;
  EXPECT_LE(apart.values, kTolerance) << apart.worst;
}

// Two ranks on a node, whatever the cluster.
Strategy by(const DispatcherRow& row, Strategy strategy) {
  strategy.experts.dispatcher = row.dispatcher;
  if (row.by_node) strategy.experts.node_ranks = std::min(2, strategy.experts.ep);
  strategy.experts.load = {.kind = ExpertLoad::Kind::Worst};
  return strategy;
}

// Scores that multiply the inputs of experts and those that multiply outputs.
const std::vector<ModernModel>& two_mixtures() {
  static const std::vector<ModernModel> two = {mixture_named("deepseek_v3"), mixture_named("llama4_experts")};
  return two;
}

TEST(Dispatchers, TrainAsOneDevice) {
  for (const DispatcherRow& row : kDispatchers)
    for (const ModernModel& which : mixtures())
      expect_as_one_device(which, by(row, {.dp = 4, .experts = {.ep = 4}, .batch = {.micro = 1}, .zero = {.stage = 1}}));
}

TEST(Dispatchers, FoldOverTensorRanks) {
  for (const DispatcherRow& row : kDispatchers)
    for (const ModernModel& which : two_mixtures())
      expect_as_one_device(
          which,
          by(row,
             {.dp = 2, .tp = 2, .experts = {.ep = 4}, .sequence_parallel = true, .batch = {.micro = 1}, .zero = {.stage = 3}}));
}

TEST(Dispatchers, WorkInPipelinesWithRecomputation) {
  for (const DispatcherRow& row : kDispatchers)
    for (const ModernModel& which : two_mixtures())
      expect_as_one_device(which,
                           by(row, {.dp = 2,
                                    .pp = 2,
                                    .experts = {.ep = 2},
                                    .pipeline = {.schedule = Schedule::ZeroBubbleH1},
                                    .batch = {.micro = 1},
                                    .recompute = {.kind = RecomputeKind::Modules, .modules = {"norm", "activation", "mlp"}}}));
}

// All-to-alls on a stream of their own, beside shared experts and, in cells, beside the other micro-batch.
TEST(Dispatchers, OverlapComputation) {
  for (const DispatcherRow& row : kDispatchers)
    for (const Schedule schedule : {Schedule::OneFOneB, Schedule::DualPipe, Schedule::OneFOneBCells}) {
      Strategy strategy =
          by(row, {.dp = 2, .pp = 2, .experts = {.ep = 2}, .pipeline = {.schedule = schedule}, .batch = {.micro = 1}});
      strategy.communication.overlap = Overlap{.tp = true};
      expect_as_one_device(mixture_named("deepseek_v3"), strategy);
    }
}

// Experts that are cut over two ranks each are dealt out, so that those of a part are not consecutive.
TEST(Dispatchers, TrainExpertsThatAreCut) {
  for (const DispatcherRow& row : kDispatchers)
    for (const ModernModel& which : two_mixtures())
      expect_as_one_device(which, by(row, {.dp = 4,
                                           .tp = 2,
                                           .experts = {.ep = 4, .etp = 2},
                                           .sequence_parallel = true,
                                           .batch = {.micro = 1},
                                           .zero = {.stage = 1}}));
}

// Rows in 8 bits: rounded on their way to experts, and the gradients of results; the losses stay near those of exact rows, and sum to other
// bits. Every dispatcher that sends rows encodes the same numbers, as parts are whole rows.
TEST(Dispatchers, RowsInEightBitsTrainNearlyTheSame) {
  const ModernModel& which = mixture_named("mixtral");
  for (const Codec codec : {Codec::Float8, Codec::EightBit})
    for (const Dispatcher dispatcher : {Dispatcher::AllToAll, Dispatcher::OncePerNode}) {
      Strategy strategy = by(row_of(dispatcher), {.dp = 4, .experts = {.ep = 4}, .batch = {.micro = 1}});
      strategy.communication.dispatch.codec = codec;
      const Difference apart = difference(trained_twice(modern_model(which), strategy), on_one_device(which));
      EXPECT_GT(apart.gradients, 1e-9) << name_of(dispatcher);
      EXPECT_LT(apart.loss, 1e-3) << name_of(dispatcher);
      EXPECT_LT(apart.gradients, 0.2) << name_of(dispatcher) << " " << apart.worst;
    }
}

// ---- counts ------------------------------------------------------------------------------------------------------------------------------

// The same tokens choose the same experts on any number of ranks, and with room for all of them none is dropped.
TEST(ExpertCounts, AreThoseOfOneDevice) {
  for (const char* name : {"mixtral", "deepseek_v3"}) {
    const Model model = modern_model(mixture_named(name));
    const Execution& one = on_one_device(mixture_named(name));
    ASSERT_FALSE(one.steps.back().experts.empty());
    const auto& transformer = std::get<Transformer>(model.shape);
    std::size_t layers = 0;
    for (int i = 0; i < transformer.layers; ++i) layers += has_experts(transformer, i) ? 1 : 0;
    EXPECT_EQ(one.steps.back().experts.loads.size(), layers);
    EXPECT_EQ(one.routers.size(), layers);
    const double tokens = 8 * 16;  // samples and positions of a step (tests/exec/training.h)
    EXPECT_EQ(one.steps.back().experts.choices(), tokens * 2 * static_cast<double>(layers));
    for (const DispatcherRow& row : kDispatchers) {
      SCOPED_TRACE(row.name);
      Strategy split = by(
          row, {.dp = 2, .tp = 2, .pp = 2, .experts = {.ep = 2, .etp = 2}, .sequence_parallel = true, .batch = {.micro = 1}});
      const Execution many = trained_twice(model, split);
      EXPECT_EQ(many.steps.front().experts, one.steps.front().experts);
      EXPECT_EQ(many.steps.front().experts.dropped(), 0);
      EXPECT_EQ(many.routers, one.routers);
    }
  }
}

// One micro-batch on one device: an expert takes its capacity, the rest of the tokens that chose it is dropped.
TEST(ExpertCounts, TokensBeyondTheCapacityAreDropped) {
  const Model model = modern_model(mixture_named("mixtral"));
  for (const double capacity : {0.5, 1.0, 1.25}) {
    Strategy strategy{.dp = 1, .experts = {.capacity = capacity}, .batch = {.micro = 8}};
    const Execution done = trained_twice(model, strategy);
    const ExpertCounts& counts = done.steps.front().experts;
    const double limit = std::ceil(capacity * 8 * 16 * 2 / 8);
    double dropped = 0;
    for (const std::vector<double>& router : counts.loads)
      for (const double load : router) dropped += std::max(0.0, load - limit);
    EXPECT_EQ(counts.dropped(), dropped) << capacity;
    if (capacity == 0.5) {
      EXPECT_GT(dropped, 0);
    }
    // Each dispatcher limits an expert to its share of each rank's tokens.
    std::optional<ExpertCounts> first;
    for (const DispatcherRow& row : kDispatchers) {
      Strategy split = by(row, {.dp = 4, .experts = {.ep = 4, .capacity = capacity}, .batch = {.micro = 2}});
      const ExpertCounts of = trained_twice(model, split).steps.front().experts;
      if (!first) first = of;
      EXPECT_EQ(of, *first) << row.name;
    }
  }
}

TEST(ExpertCounts, TheMostLoadedRouterIsFound) {
  const ExpertCounts counts{.loads = {{2, 2, 2, 2}, {1, 5, 1, 1}, {}}, .placed = 14};
  EXPECT_EQ(counts.choices(), 16);
  EXPECT_EQ(counts.dropped(), 2);
  EXPECT_EQ(most_loaded_of(counts).router, 1U);
  EXPECT_EQ(most_loaded_of(counts).factor, 2.5);
  EXPECT_EQ(counts_of(packed(counts), 3), counts);
  EXPECT_THROW(counts_of(packed(counts), 2), DeviceError);
  EXPECT_THROW(counts_of(packed(counts).substr(0, 20), 3), DeviceError);
}

}  // namespace
}  // namespace foreshard::dispatchers_test
