// Two derivations of what a layer keeps, written independently: keep_rule, which lower obeys, and core's retention(), which the
// published activation formulas are tested with.
#include "strategy/recompute/keep_rule.h"

#include <gtest/gtest.h>

#include <random>

#include "core/graph/op_graph_saved.h"
#include "tests/core/support_models.h"

namespace foreshard::keep_rule_test {
namespace {

Transformer random_model(std::mt19937& random) {
  const auto coin = [&] { return random() % 2 == 0; };
  Transformer t = std::get<Transformer>(gpt(2, 64, 8, 512, 64).shape);
  if (coin()) t.activation = ActivationKind::SwiGlu;
  if (coin()) t.norm = NormKind::RmsNorm;
  if (coin()) t.positions = PositionKind::Rope;
  if (coin()) t.kv_heads = 4;
  if (random() % 4 == 0) t.activation = ActivationKind::Relu;
  t.post_norm = random() % 4 == 0;
  t.causal = !t.post_norm;
  return t;
}

TEST(KeepRule, AgreesWithRetention) {
  std::mt19937 random(11);
  const auto coin = [&] { return random() % 2 == 0; };
  const std::vector<Redone> rules = {{},
                                     {.modules = {"attention"}},
                                     {.modules = {"activation"}},
                                     {.modules = {"norm", "activation"}},
                                     {.modules = {"mlp"}},
                                     {.modules = {"attention", "norm"}},
                                     {.whole = true}};
  for (int round = 0; round < 200; ++round) {
    const Model model = {.name = "random", .shape = random_model(random)};
    const Sharding cut = {.micro_batch = 2,
                          .seq = 64,
                          .tp = coin() ? 4 : 1,
                          .cp = coin() ? 2 : 1,
                          .sequence_parallel = coin(),
                          .flash_attention = coin(),
                          .dropout = coin() ? 0.1 : 0.0};
    const OpGraph graph = build_op_graph(model, cut);
    for (const Redone& rule : rules) {
      const LayerGraph& layer = graph.kinds[1];
      const Retention expected = rule.whole ? full_recompute(layer) : retention(layer, rule.modules);
      const KeepRule found = keep_rule(layer, rule);
      std::vector<int> stored;
      for (std::size_t v = 0; v < found.stored.size(); ++v) {
        if (found.stored[v]) stored.push_back(static_cast<int>(v));
      }
      EXPECT_EQ(stored, expected.kept) << "round " << round << (rule.whole ? ", whole" : "")
                                       << (rule.modules.empty() ? "" : ", " + rule.modules.front());
    }
  }
}

// A Llama layer ends with fc2 and the second residual sum. Nothing in the backward reads what they make, so that a recomputation
// which stops early leaves them out: 2 of 12 operators. What is stored is the same.
TEST(KeepRule, EarlyStopLeavesOutTheEnd) {
  const Model model = llama(1, 64, 128, 4, 4, 64);
  const OpGraph graph = build_op_graph(model, {.micro_batch = 1, .seq = 32, .flash_attention = true});
  const LayerGraph& layer = graph.kinds[1];
  const KeepRule whole = keep_rule(layer, {.whole = true}), stops = keep_rule(layer, {.whole = true, .stops = true});
  EXPECT_EQ(stops.stored, whole.stored);
  std::vector<std::string> left_out;
  for (std::size_t i = 0; i < layer.operators.size(); ++i) {
    EXPECT_TRUE(whole.redone[i]) << layer.operators[i].name;
    if (!stops.redone[i]) left_out.push_back(layer.operators[i].name);
  }
  EXPECT_EQ(left_out, (std::vector<std::string>{"fc2", "residual2"}));
}

}  // namespace
}  // namespace foreshard::keep_rule_test
