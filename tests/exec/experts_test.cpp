// Mixtures of experts: split in every way they train as on one device, in double precision; what has no room is dropped and counted.
#include <gtest/gtest.h>

#include <map>

#include "core/base/error.h"
#include "core/check/check_plan.h"
#include "core/graph/op_graph.h"
#include "tests/exec/mixture_models.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::experts_test {
namespace {

constexpr double kTolerance = 1e-12;

// Those that PyTorch is compared with, one with modules for multi-token prediction, and one with experts that are not gated.
const std::vector<ModernModel>& trained_mixtures() {
  static const std::vector<ModernModel> all = [] {
    std::vector<ModernModel> models = mixtures();
    models.push_back({"glm", [](Transformer& t) {
                        Experts& e = t.block.experts;
                        e = {.count = 8, .chosen = 2, .width = 24, .layers = {false, true, true, true}};
                        e.score = RouterScore::Sigmoid, e.renormalised = true;
                        t.block.mtp_modules = 2;
                      }});
    models.push_back({"switch", [](Transformer& t) {
                        t.block.experts = {.count = 8, .chosen = 2, .width = 24, .shared_width = 16, .biases = true};
                        t.activation = ActivationKind::Gelu;
                      }});
    return some_of(std::move(models), 3);
  }();
  return all;
}

// All experts may get all tokens.
Execution trained_mixture(const Model& model, Strategy strategy) {
  strategy.experts.load = {.kind = ExpertLoad::Kind::Worst};
  return trained(model, strategy);
}

int layers_of(const ModernModel& which) { return std::get<Transformer>(modern_model(which).shape).layers; }

// Trained once for all strategies of a test.
const Execution& on_one_device(const Model& model, const ModernModel& which, std::int64_t micro) {
  static std::map<std::pair<std::string, std::int64_t>, Execution> all;
  const auto [at, fresh] = all.try_emplace({which.name, micro});
  if (fresh) at->second = trained_mixture(model, {.batch = {.micro = micro}});
  return at->second;
}

// The auxiliary loss looks at a micro-batch, so both have the same ones.
void expect_as_one_device(const ModernModel& which, const Strategy& strategy) {
  const Model model = modern_model(which);
  SCOPED_TRACE(model.name + " " + name_of(strategy));
  const Difference apart = difference(trained_mixture(model, strategy), on_one_device(model, which, strategy.batch.micro));
  EXPECT_LE(apart.loss, kTolerance);
  EXPECT_LE(apart.gradients, kTolerance) << apart.worst;
  EXPECT_LE(apart.values, kTolerance) << apart.worst;
}

TEST(ExpertModels, ExpertParallelRanksTrainAsOneDevice) {
  for (const ModernModel& which : trained_mixtures()) {
    expect_as_one_device(which, {.dp = 2, .experts = {.ep = 2}, .batch = {.micro = 1}});
    expect_as_one_device(which, {.dp = 4, .experts = {.ep = 2}, .batch = {.micro = 1}, .zero = {.stage = 1}});
    expect_as_one_device(which, {.dp = 4, .experts = {.ep = 4}, .batch = {.micro = 1}, .zero = {.stage = 2}});
    expect_as_one_device(which, {.dp = 4, .experts = {.ep = 2}, .batch = {.micro = 1}, .zero = {.stage = 3}});
  }
}

TEST(ExpertModels, ExpertsFoldOverTensorAndContextRanks) {
  for (const ModernModel& which : trained_mixtures()) {
    Strategy folded{
        .dp = 2, .tp = 2, .experts = {.ep = 4}, .sequence_parallel = true, .batch = {.micro = 1}, .zero = {.stage = 1}};
    expect_as_one_device(which, folded);
    folded.experts.ep = 1;
    expect_as_one_device(which, folded);
    folded.tp = 1, folded.cp = 2, folded.experts.ep = 4, folded.sequence_parallel = false;
    expect_as_one_device(which, folded);
  }
}

// Experts over all tensor-parallel ranks and half of the context-parallel ones split the context axis; its ring goes round both parts.
TEST(ExpertModels, RingsGoRoundASplitContextAxis) {
  for (const ModernModel& which : trained_mixtures()) {
    if (which.name == "deepseek_v3" || which.name == "gpt_oss_experts") continue;  // attention that no ring has
    Strategy split{.tp = 2, .cp = 4, .experts = {.ep = 4}, .sequence_parallel = true, .batch = {.micro = 1}};
    split.context = ContextKind::Ring;
    expect_as_one_device(which, split);
  }
}

TEST(ExpertModels, ExpertsAreCutOverExpertTensorRanks) {
  for (const ModernModel& which : trained_mixtures()) {
    if (which.name == "gpt_oss_experts" || which.name == "switch") continue;  // biases: refused
    expect_as_one_device(which, {.dp = 2,
                                 .tp = 2,
                                 .experts = {.ep = 2, .etp = 2},
                                 .sequence_parallel = true,
                                 .batch = {.micro = 1},
                                 .zero = {.stage = 1}});
    expect_as_one_device(which, {.dp = 2, .experts = {.etp = 2}, .batch = {.micro = 1}});
  }
}

TEST(ExpertModels, PipelinesAndRecomputation) {
  for (const ModernModel& which : trained_mixtures()) {
    expect_as_one_device(
        which, {.dp = 2, .pp = 2, .experts = {.ep = 2}, .batch = {.micro = 1}, .recompute = {.kind = RecomputeKind::Full}});
    expect_as_one_device(which, {.dp = 2,
                                 .pp = 2,
                                 .experts = {.ep = 2},
                                 .pipeline = {.schedule = Schedule::ZeroBubbleH1},
                                 .batch = {.micro = 1},
                                 .recompute = {.kind = RecomputeKind::Modules, .modules = {"norm", "activation", "mlp"}}});
    expect_as_one_device(
        which, {.dp = 2, .pp = 2, .experts = {.ep = 2}, .pipeline = {.schedule = Schedule::DualPipe}, .batch = {.micro = 1}});
    for (const int ep : {1, 2})  // with shards of experts, and without
      expect_as_one_device(which, {.dp = 2,
                                   .pp = 2,
                                   .experts = {.ep = ep},
                                   .pipeline = {.schedule = Schedule::DualPipe},
                                   .batch = {.micro = 1},
                                   .zero = {.stage = 1}});
  }
}

// Cells, in a pipeline, without one and in one of chunks, whole and sharded; `recompute` is tried where a rank has one chunk or more, full
// recomputation with chunks.
void expect_cells_as_one_device(std::initializer_list<int> zero_stages, bool delay_wgrad, const Recompute& recompute) {
  int number = 0;
  for (const ModernModel& which : trained_mixtures())
    for (const int zero : zero_stages) {
      if (!all_of_it() && ++number % 3 != 0) continue;
      Strategy strategy{.dp = 2,
                        .pp = 2,
                        .experts = {.ep = 2},
                        .pipeline = {.schedule = Schedule::OneFOneBCells, .delay_wgrad = delay_wgrad},
                        .batch = {.micro = 1},
                        .zero = {.stage = zero}};
      strategy.communication.overlap = Overlap{.tp = true};
      expect_as_one_device(which, strategy);
      strategy.pp = 1;
      expect_as_one_device(which, strategy);
      if (recompute.kind != RecomputeKind::None) {
        strategy.recompute = recompute;
        expect_as_one_device(which, strategy);
      }
      if (layers_of(which) < 4) continue;
      strategy.pp = strategy.virtual_stages = 2, strategy.pipeline.schedule = Schedule::InterleavedCells;
      expect_as_one_device(which, strategy);
      strategy.recompute = {.kind = RecomputeKind::Full};
      expect_as_one_device(which, strategy);
    }
}

// A forward and a backward of different micro-batches in one action.
TEST(ExpertModels, CellsTrainAsOneDevice) { expect_cells_as_one_device({0, 1, 3}, false, {}); }

// Weight gradients behind the next communication are the same ones, however they are summed.
TEST(ExpertModels, DelayedWeightGradientsTrainAsOneDevice) {
  expect_cells_as_one_device({0, 1, 2, 3}, true, {.kind = RecomputeKind::Modules, .modules = {"norm", "activation", "mlp"}});
}

TEST(ExpertModels, ClippedByTheNormOfAllExperts) {
  for (const ModernModel& which : trained_mixtures())
    for (const int zero : some_of<int>({0, 1, 3}, 1)) {
      Strategy one{.batch = {.micro = 1}, .optimizer = {.clip_norm = 1e-3}};
      Strategy split = one;
      split.dp = 4, split.experts.ep = 2, split.zero.stage = zero;
      const Model model = modern_model(which);
      SCOPED_TRACE(model.name + " zero " + std::to_string(zero));
      const Difference apart = difference(trained_mixture(model, split), trained_mixture(model, one));
      EXPECT_LE(apart.values, kTolerance) << apart.worst;
      split.tp = 2, split.dp = 2, split.experts.ep = 4, split.sequence_parallel = true;
      EXPECT_LE(difference(trained_mixture(model, split), trained_mixture(model, one)).values, kTolerance);
    }
}

TEST(ExpertModels, TheLossFalls) {
  for (const ModernModel& which : trained_mixtures()) {
    Strategy strategy{.dp = 2, .experts = {.ep = 2}, .batch = {.micro = 1}};
    strategy.experts.load = {.kind = ExpertLoad::Kind::Worst};
    expect_the_loss_falls(modern_model(which), strategy);
  }
}

}  // namespace
}  // namespace foreshard::experts_test
