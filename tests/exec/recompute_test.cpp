// What is computed again has the bits it had the first time, and what is not kept is not there.
#include <gtest/gtest.h>

#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "strategy/tune/tune.h"
#include "tests/exec/training.h"

namespace foreshard::recompute_test {
namespace {

// Four layers on one device; the first one, two, all of them, only attention and norms, or none computed again. Gradients and
// weights after a step are equal bit by bit, and the peak falls with every further layer. On one stream the blocks alive
// together do not depend on timing, so that the peak of the ranks is that of the plan's own order.
TEST(Recompute, KeepsEveryBitAndHasThePlannedPeak) {
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    const auto strategy = [](Recompute recompute) {
      return in_double({.batch = {.micro = 2}, .recompute = std::move(recompute)});
    };
    const Execution kept = run(lowered(model, strategy({})), training(1));
    Bytes before = sum(kept.peaks[0]);
    for (const Recompute& recompute :
         {Recompute{.kind = RecomputeKind::Full, .layers = 1}, Recompute{.kind = RecomputeKind::Full, .layers = 2},
          Recompute{.kind = RecomputeKind::Full, .layers = 3}, Recompute{.kind = RecomputeKind::Full}}) {
      const Plan plan = lowered(model, strategy(recompute));
      const Execution again = run(plan, training(1));
      EXPECT_EQ(difference(kept, again).largest(), 0) << to_text(recompute);
      ExecuteOptions emulated = training(1);
      emulated.time = TimeMode::Emulated;
      EXPECT_EQ(sum(again.peaks[0]), sum(run(plan, emulated).result.memory.curves[0].peak)) << to_text(recompute);
      EXPECT_LT(sum(again.peaks[0]), before) << to_text(recompute);
      before = sum(again.peaks[0]);
    }
    for (const Recompute& recompute :
         {Recompute{.kind = RecomputeKind::Selective},
          Recompute{.kind = RecomputeKind::Modules, .modules = {"attention", "norm"}},
          Recompute{.kind = RecomputeKind::Modules, .modules = {"norm", "qkv", "rope", "activation", "mlp"}},
          Recompute{.kind = RecomputeKind::Modules,
          .modules = {"attention", "norm", "projection", "activation", "mlp", "dropout"}}}) {
      const Execution again = run(lowered(model, strategy(recompute)), training(1));
      EXPECT_EQ(difference(kept, again).largest(), 0) << to_text(recompute);
      EXPECT_LE(sum(again.peaks[0]), sum(kept.peaks[0])) << to_text(recompute);
    }
    Strategy stops = strategy({.kind = RecomputeKind::Full});  // a framework that leaves out what nobody reads
    stops.framework = "fsdp2";
    stops.dropout = 0, stops.optimizer.clip_norm = 0;
    EXPECT_EQ(difference(kept, run(lowered(model, stops), training(1))).largest(), 0);
  }
}

// Every layer in a way of its own: the bits of the plan that keeps everything, and the peak of its own order.
TEST(Recompute, KeepsEveryBitLayerByLayer) {
  for (const Model& model : {tiny_gpt(), tiny_llama(), tiny_bert()})
    for (const Schedule schedule : {Schedule::OneFOneB, Schedule::GPipe, Schedule::ZeroBubbleH1})
      for (const int pp : {1, 2}) {
        const auto strategy = [&](const char* text) {
          return in_double({.pp = pp,
                            .pipeline = {.schedule = schedule},
                            .batch = {.micro = 2},
                            .recompute = parse_recompute(text, "test"),
                            .dropout = 0.1});
        };
        const Execution kept = run(lowered(model, strategy("none")), training(1));
        for (const char* text : {"each:full,norm+activation,none,selective", "each:none,mlp+norm,full,attention+dropout"}) {
          const Plan plan = lowered(model, strategy(text));
          const Execution again = run(plan, training(1));
          EXPECT_EQ(difference(kept, again).largest(), 0) << model.name << " " << text << " pp " << pp;
          if (pp > 1) continue;
          ExecuteOptions emulated = training(1);
          emulated.time = TimeMode::Emulated;
          EXPECT_EQ(sum(again.peaks[0]), sum(run(plan, emulated).result.memory.curves[0].peak)) << text;
          EXPECT_LT(sum(again.peaks[0]), sum(kept.peaks[0])) << text;
        }
      }
}

// With less and less memory: the choice fits by its own order's peak, computes the same bits, and the ways of layers are mixed.
TEST(Recompute, TheBestChoiceRunsInTheMemoryThatItWasGiven) {
  const Model model = tiny_gpt();
  const double capacity = 80.0 * (1 << 30);
  Strategy s = in_double({.batch = {.micro = 4}});
  const Plan whole = lowered(model, s);
  const Execution kept = run(whole, training(1));
  const auto most = static_cast<double>(arena_bytes(whole.roles[0], Space::Device).value);
  int mixed = 0;
  for (const double share : {0.95, 0.9, 0.85, 0.8}) {
    s.device_memory.framework = Bytes{0};
    s.device_memory.reserve = 1 - most * share / capacity;
    s.recompute = parse_recompute("best", "test");
    const auto answer = tuned_plan(model, load_cluster("dgx-a100"), s);
    if (std::holds_alternative<Infeasible>(answer)) continue;
    const Lowered& chosen = std::get<Lowered>(answer);
    EXPECT_LE(static_cast<double>(arena_bytes(chosen.plan.roles[0], Space::Device).value), most * share + 1);
    const Execution again = run(chosen.plan, training(1));
    EXPECT_EQ(difference(kept, again).largest(), 0) << to_text(chosen.strategy.recompute);
    EXPECT_LE(static_cast<double>(sum(again.peaks[0]).value), most * share + 1);
    mixed += chosen.strategy.recompute.kind == RecomputeKind::Each;
  }
  EXPECT_GE(mixed, 2);
}

// Layers of a list whose activation is the output: what the input's half makes again is its own, beside what the next layer kept for the weights'.
TEST(Recompute, LayersOfListsUnderHalves) {
  for (const Schedule schedule : {Schedule::ZeroBubbleH1, Schedule::ZeroBubbleH2, Schedule::ZeroBubbleV})
    for (const char* layers : {"layers:0", "layers:2", "layers:0,1", "layers:0,1,2", "full"}) {
      Strategy s = in_double({.pp = 2, .pipeline = {.schedule = schedule}, .batch = {.micro = 2}});
      if (schedule == Schedule::ZeroBubbleV) s.virtual_stages = 2;
      const Execution kept = run(lowered(tiny_mlp(), s), training(2));
      s.recompute = parse_recompute(layers, "test");
      EXPECT_EQ(difference(kept, trained(tiny_mlp(), s, 2)).largest(), 0) << name_of(s) << " " << layers;
    }
}

// Two stages of two layers under each schedule: other layers redone on each stage, by counts and by numbers of the model.
TEST(Recompute, KeepsEveryBitStageByStage) {
  for (const Schedule schedule : {Schedule::OneFOneB, Schedule::GPipe, Schedule::ZeroBubbleH1})
    for (const Model& model : {tiny_gpt(), tiny_llama()}) {
      const auto strategy = [&](const char* text) {
        return in_double(
            {.pp = 2, .pipeline = {.schedule = schedule}, .batch = {.micro = 2}, .recompute = parse_recompute(text, "test")});
      };
      const Execution kept = run(lowered(model, strategy("none")), training(1));
      for (const char* text : {"full:2,0", "full:1,2", "layers:1-2"})
        EXPECT_EQ(difference(kept, run(lowered(model, strategy(text)), training(1))).largest(), 0) << text;
    }
}

}  // namespace
}  // namespace foreshard::recompute_test
