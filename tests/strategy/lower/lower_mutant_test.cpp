// Plans of the engine with one reduction taken out: check_plan names every one of them.
#include <set>

#include "core/check/check_plan.h"
#include "tests/strategy/support_lower.h"

namespace foreshard {
namespace {

bool sums_over(const Plan& plan, const Instruction& instruction, const std::string& axis) {
  const auto* collective = std::get_if<Collective>(&instruction.what);
  if (!collective || collective->attributes == "max") return false;
  if (collective->kind != CollectiveKind::AllReduce && collective->kind != CollectiveKind::ReduceScatter) return false;
  for (const AxisId a : plan.groups[collective->group.index()].over)
    if (plan.axes[a.index()].name == axis) return true;
  return false;
}

// The names of the reductions over `axis` whose absence goes unnoticed.
std::set<std::string> unnoticed(const Plan& plan, const std::string& axis, int& dropped) {
  std::set<std::string> names;
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i) {
      if (!sums_over(plan, plan.segments[s].instructions[i], axis)) continue;
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
  return std::get<Lowered>(lower({.name = "tiny", .shape = t}, load_cluster("dgx-a100"), strategy)).plan;
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
        Strategy strategy{.tp = 2, .pp = 2, .sequence_parallel = sequence_parallel, .micro_batch = 1, .global_batch = 8};
        strategy.recompute.kind = std::string(recompute) == "none"   ? RecomputeKind::None
                                  : std::string(recompute) == "full" ? RecomputeKind::Full
                                                                     : RecomputeKind::Selective;
        const Plan plan = lowered(strategy, llama);
        ASSERT_TRUE(check_plan(plan).empty());
        int dropped = 0;
        const std::set<std::string> names = unnoticed(plan, "tp", dropped);
        EXPECT_GT(dropped, 6);
        EXPECT_EQ(text(names), "") << llama << sequence_parallel << recompute;
      }
}

}  // namespace foreshard
