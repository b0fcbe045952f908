// The runtime policies side by side on Llama-2-7B, as docs/offload-planning.md has them.
#include <gtest/gtest.h>

#include <set>

#include "strategy/residency/block_residency.h"
#include "strategy/residency/chunk_residency.h"
#include "strategy/residency/chunks.h"
#include "strategy/residency/module_residency.h"
#include "tests/strategy/residency/support_llama.h"
#include "tests/strategy/residency/support_page.h"

namespace foreshard::runtime_policies_test {

namespace {

struct Policy {
  std::string name = {};
  std::vector<ParameterUnit> units = {};
  std::vector<UnitUse> uses = {};
  Residency residency = {};
};

Policy of_modules(const std::string& name, const ModuleRule& rule) {
  const std::vector<ParameterUnit> modules = llama_modules();
  const std::vector<UnitUse> uses = step_order(static_cast<int>(modules.size()));
  return {name, modules, uses, module_residency(modules, uses, rule)};
}
Policy of_blocks(const std::string& name, const BlockRule& rule) {
  const std::vector<UnitUse> uses = step_order(kLlamaLayers);
  return {name, llama_blocks(), uses, block_residency(llama_blocks(), uses, rule)};
}
Policy of_chunks(const std::string& name, std::int64_t chunk, double kept) {
  const ChunkLayout layout = lay_chunks(llama_modules(), chunk);
  const std::vector<UnitUse> uses = chunk_uses(layout, step_order(static_cast<int>(layout.chunk_of.size())));
  std::int64_t total = 0;
  for (const ParameterUnit& unit : layout.chunks) total += unit.elements;
  return {name, layout.chunks, uses,
          fixed_share_residency(layout.chunks, uses, static_cast<std::int64_t>(kept * static_cast<double>(total)))};
}
// On a device of 16 GiB with 8 GiB of other things at every moment.
Policy of_budget(const std::string& name, std::int64_t chunk, double cap_ratio) {
  const ChunkLayout layout = lay_chunks(llama_modules(), chunk);
  const std::vector<UnitUse> uses = chunk_uses(layout, step_order(static_cast<int>(layout.chunk_of.size())));
  const std::vector<Bytes> others(uses.size(), Bytes{std::int64_t{8} << 30});
  const BudgetRule rule = {.budget = traced_budget({std::int64_t{16} << 30}, cap_ratio, others)};
  return {name, layout.chunks, uses, std::get<Residency>(budget_residency(layout.chunks, uses, rule))};
}

std::vector<Policy> policies() {
  const std::int64_t gemini = least_padding_chunk(llama_modules(), {.step = kLlamaHidden});
  return {
      of_blocks("keep all", {.keep_after_forward = true}),
      of_blocks("release at once", {}),
      of_blocks("l2l", {.ahead_forward = 1, .ahead_backward = 1}),
      of_modules("deepspeed_z3", {}),
      of_blocks("fsdp2", {.ahead_forward = 1,
                          .ahead_backward = 1,
                          .staging_in_forward = true,
                          .gradient = FullGradient::OfUse,
                          .reduction_in_flight = true}),
      of_blocks("bmtrain_z3", {.ahead_forward = 1, .ahead_backward = 1, .gradient = FullGradient::WithGather}),
      of_blocks("bmtrain_z2",
                {.ahead_forward = 1, .ahead_backward = 1, .keep_after_forward = true, .gradient = FullGradient::WithGather}),
      of_chunks("gemini_cpu", gemini, 0),
      of_chunks("gemini_static", gemini, 0.5),
      of_budget("gemini_auto", gemini, 0.9),
      of_budget("patrickstar", kPatrickStarChunk, 0.8)};
}

}  // namespace

TEST(RuntimePolicies, ThePageHasTheirPeaks) {
  for (const Policy& policy : policies()) {
    EXPECT_EQ(residency_fault(policy.units, policy.uses, policy.residency), "") << policy.name;
    std::int64_t total = 0;
    for (const ParameterUnit& unit : policy.units) total += unit.elements;
    char figures[96];
    std::snprintf(figures, sizeof figures, "%.2f | %.2f | %.2f |",
                  in_gib(Bytes{2 * peak_elements(policy.units, policy.uses, policy.residency)}),
                  in_gib(peak_bytes(policy.units, policy.uses, policy.residency)),
                  static_cast<double>(brought_elements(policy.units, policy.residency)) / static_cast<double>(total));
    const std::string row = offload_page_row(policy.name);
    EXPECT_TRUE(row.ends_with(figures)) << policy.name << ": " << figures << " the page: " << row;
  }
}

// Same ZeRO level, different memory.
TEST(RuntimePolicies, FourPresetsHaveFourPeaks) {
  std::set<std::int64_t> peaks;
  for (const Policy& policy : policies())
    for (const char* name : {"deepspeed_z3", "fsdp2", "bmtrain_z3", "bmtrain_z2"})
      if (policy.name == name) peaks.insert(peak_bytes(policy.units, policy.uses, policy.residency).value);
  EXPECT_EQ(peaks,
            (std::set<std::int64_t>{2 * std::int64_t{1'126'170'624}, 10 * kLlamaBlock, 8 * kLlamaBlock, 2 * 34 * kLlamaBlock}));
}

}  // namespace foreshard::runtime_policies_test
