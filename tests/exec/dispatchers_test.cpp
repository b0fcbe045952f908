// Every dispatcher trains a mixture of experts as one device does, in double precision, and drops the same tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/check/check_plan.h"
#include "core/op/dispatcher.h"
#include "tests/exec/mixture_models.h"
#include "tests/exec/training.h"

namespace foreshard {
namespace {

constexpr double kTolerance = 1e-12;

const ModernModel& mixture_named(const std::string& name) { return *std::ranges::find(mixtures(), name, &ModernModel::name); }

Execution trained(const Model& model, const Strategy& strategy) {
  const Plan plan = lowered(model, in_double(strategy));
  const auto defects = check_plan(plan);
  EXPECT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  ExecuteOptions options = training(2);
  options.checks.poison = true;
  return run(plan, options);
}

// What one device trains: every strategy below has micro-batches of one sample, as the auxiliary loss looks at each of them.
const Execution& on_one_device(const ModernModel& which) {
  static std::map<std::string, Execution> known;
  const auto [at, fresh] = known.try_emplace(which.name);
  if (fresh) at->second = trained(modern_model(which), {.batch = {.micro = 1}});
  return at->second;
}

void expect_as_one_device(const ModernModel& which, const Strategy& strategy) {
  SCOPED_TRACE(which.name + " " + name_of(strategy) + " " + name_of(strategy.experts.dispatcher));
  const Difference apart = difference(trained(modern_model(which), strategy), on_one_device(which));
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
      const Difference apart = difference(trained(modern_model(which), strategy), on_one_device(which));
      EXPECT_GT(apart.gradients, 1e-9) << name_of(dispatcher);
      EXPECT_LT(apart.loss, 1e-3) << name_of(dispatcher);
      EXPECT_LT(apart.gradients, 0.2) << name_of(dispatcher) << " " << apart.worst;
    }
}

}  // namespace
}  // namespace foreshard
