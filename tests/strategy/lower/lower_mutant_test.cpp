// Plans of the engine with one reduction taken out: check_plan names every one of them.
#include <algorithm>
#include <set>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/tune/tune.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::lower_mutant_test {
namespace {

bool sums_over(const Plan& plan, const Instruction& instruction, DenseKind kind) {
  const auto* collective = std::get_if<Collective>(&instruction.what);
  if (!collective || collective->combine == Combine::Max) return false;
  if (collective->kind != CollectiveKind::AllReduce && collective->kind != CollectiveKind::ReduceScatter) return false;
  for (const AxisId a : plan.groups[collective->group.index()].over)
    if (plan.axes[a.index()].dense == kind) return true;
  return false;
}

// The names of the reductions over axes of a kind whose absence goes unnoticed.
std::set<std::string> unnoticed(const Plan& plan, DenseKind kind, int& dropped) {
  std::set<std::string> names;
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i) {
      if (!sums_over(plan, plan.segments[s].instructions[i], kind)) continue;
      Plan mutant = plan;
      mutant.segments[s].instructions[i].what = Mark{};
      ++dropped;
      if (check_plan(mutant).empty()) names.insert(plan.segments[s].instructions[i].name);
    }
  return names;
}

Plan lowered(const Strategy& strategy, bool llama) {
  Transformer t = small_transformer(4);
  t.tied_embeddings = !llama;
  if (llama) {
    t.norm = NormKind::RmsNorm, t.activation = ActivationKind::SwiGlu, t.positions = PositionKind::Rope;
    t.kv_heads = 4, t.qkv_bias = t.projection_bias = t.mlp_bias = false;
  }
  return std::get<Lowered>(tuned_plan({.name = "tiny", .shape = t}, load_cluster("dgx-a100"), strategy)).plan;
}

bool reads_gradients(const Plan& plan, const Instruction& instruction) {
  return std::ranges::any_of(instruction.reads, [&](const Use& use) {
    return std::ranges::any_of(plan.roles.front().buffers[use.buffer.index()].holds,
                               [](const Shard& shard) { return shard.part == TensorPart::Gradient; });
  });
}
bool names_the_gradient(const std::vector<PlanDefect>& defects) {
  return std::ranges::any_of(defects, [](const PlanDefect& d) {
    return d.rule == "gradient-not-reduced" || d.rule == "gradient-over-reduced" || d.rule == "partial-sum";
  });
}

// The sums of gradients that may run over another set of axes without a word about gradients, one group after the other.
std::set<std::string> wrongly_summed(const Plan& plan, int& tried) {
  std::set<std::string> names;
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i) {
      const Instruction& run = plan.segments[s].instructions[i];
      const auto* sum = std::get_if<Collective>(&run.what);
      if (!sum || sum->kind == CollectiveKind::AllGather || !reads_gradients(plan, run)) continue;
      for (unsigned set = 1; set < 1U << plan.axes.size(); ++set) {
        std::vector<AxisId> over;
        for (std::int32_t axis = 0; axis < static_cast<std::int32_t>(plan.axes.size()); ++axis)
          if (set >> static_cast<unsigned>(axis) & 1U) over.push_back({axis});
        if (over == plan.groups[sum->group.index()].over) continue;
        Plan mutant = plan;
        mutant.groups.push_back({"wrong", {}, over});
        std::get<Collective>(mutant.segments[s].instructions[i].what).group = {static_cast<std::int32_t>(mutant.groups.size()) -
                                                                               1};
        ++tried;
        if (!names_the_gradient(check_plan(mutant, {.most_defects = 1000})))
          names.insert(run.name + " over " + std::to_string(set));
      }
    }
  return names;
}

std::string text(const std::set<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += name + " ";
  return all;
}

}  // namespace

TEST(LowerMutants, EveryDroppedSumOfPartialProductsIsNoticed) {
  for (const bool llama : {false, true})
    for (const bool sequence_parallel : {false, true})
      for (const char* recompute : {"none", "selective", "full"}) {
        Strategy strategy{.tp = 2, .pp = 2, .sequence_parallel = sequence_parallel, .batch = {.micro = 1, .global = 8}};
        strategy.recompute.kind = std::string(recompute) == "none"   ? RecomputeKind::None
                                  : std::string(recompute) == "full" ? RecomputeKind::Full
                                                                     : RecomputeKind::Selective;
        const Plan plan = lowered(strategy, llama);
        ASSERT_TRUE(check_plan(plan).empty());
        int dropped = 0;
        const std::set<std::string> names = unnoticed(plan, DenseKind::Tensor, dropped);
        EXPECT_GT(dropped, 6);
        EXPECT_EQ(text(names), "") << llama << sequence_parallel << recompute;
      }
}

// Eight ranks that hold all layers: tensor, context and data, or ZeRO groups of two of four replicas. What ZeRO 3 gathers does not
// say what it holds: where tokens are scattered, too, whether a gradient is of some of them is not known.
TEST(LowerMutants, EveryGradientSummedOverAxesOfAnotherKindIsNoticed) {
  int tried = 0;
  for (const bool sequence_parallel : {false, true})
    for (const int zero : {0, 1, 2, 3})
      for (const bool context : {false, true}) {
        if (zero == 3 && sequence_parallel) continue;
        Strategy strategy{
            .dp = context ? 2 : 4, .tp = 2, .sequence_parallel = sequence_parallel, .batch = {.micro = 1, .global = 8}};
        strategy.cp = context ? 2 : 1, strategy.zero.stage = zero, strategy.zero.group = context ? 0 : 2;
        const Plan plan = lowered(strategy, false);
        ASSERT_EQ(plan.axes.size(), context || zero > 0 ? 3u : 2u);
        ASSERT_TRUE(check_plan(plan).empty());
        const std::set<std::string> names = wrongly_summed(plan, tried);
        EXPECT_EQ(text(names), "") << sequence_parallel << zero << context;
      }
  EXPECT_GT(tried, 100);
}

}  // namespace foreshard::lower_mutant_test
