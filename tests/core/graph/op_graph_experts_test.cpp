// Mixtures of experts in the operator graph: parameters, FLOPs, kept bytes and what goes between ranks against closed forms and
// published numbers (docs/model-families.md), and what is refused.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>

#include "core/base/error.h"
#include "core/graph/op_graph.h"
#include "core/graph/op_graph_saved.h"
#include "core/model/model.h"
#include "tests/core/support_models.h"

namespace foreshard::op_graph_experts_test {
namespace {

const char* const kModels[] = {"qwen3-30b-a3b", "qwen3-235b-a22b", "mixtral-8x7b", "deepseek-v2-lite", "kimi-k2",
                               "gpt-oss-120b",  "llama-4-scout",   "olmoe-1b-7b",  "moonlight-16b-a3b"};

const Transformer& transformer(const Model& model) { return std::get<Transformer>(model.shape); }

Model without_mtp(const std::string& name) {
  Model model = load_model(name);
  std::get<Transformer>(model.shape).block.mtp_modules = 0;
  return model;
}

std::int64_t elements(const std::vector<std::int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

const LayerGraph& layer_of(const OpGraph& graph, std::size_t layer) {
  return graph.kinds[static_cast<std::size_t>(graph.layers[layer].kind)];
}
bool has(const LayerGraph& layer, const std::string& name) {
  for (const Operator& op : layer.operators)
    if (op.name == name) return true;
  return false;
}
const Operator& named(const LayerGraph& layer, const std::string& name) {
  for (const Operator& op : layer.operators)
    if (op.name == name) return op;
  ADD_FAILURE() << "no operator " << name;
  return layer.operators.front();
}
const Value& value(const LayerGraph& layer, const std::string& name) {
  for (const Value& v : layer.values)
    if (v.name == name) return v;
  ADD_FAILURE() << "no value " << name;
  return layer.values.front();
}

std::int64_t degree(const Sharding& s, const Kinds& kinds) {
  std::int64_t product = 1;
  for (const AxisKind& kind : kinds) {
    if (kind == AxisKind(DenseKind::Tensor)) product *= s.tp;
    if (kind == AxisKind(DenseKind::Context)) product *= s.cp;
    if (kind == AxisKind(ExpertKind::Expert)) product *= s.ep;
    if (kind == AxisKind(ExpertKind::ExpertTensor)) product *= s.etp;
  }
  return product;
}

// Norms over all heads are not cut over tensor ranks, and biases of experts not over expert-tensor ranks.
bool allows(const Transformer& t, const Sharding& s) {
  return (s.tp == 1 || t.attention.qk_norm != QkNorm::AllHeads) && (s.etp == 1 || !t.block.experts.biases);
}

// ---- parameters and FLOPs ------------------------------------------------------------------------------------------------------------

// 3072 tokens: each expert of these models gets a whole number of them. Each of tp ranks does its part of a sample; the ranks of an expert
// group each bring as many tokens as they work on.
TEST(OpGraphExperts, ParametersAndFlopsOfAllRanksAreThoseOfTheModel) {
  int checked = 0;
  std::vector<const char*> names(std::begin(kModels), std::end(kModels));
  names.insert(names.end(), {"deepseek-v3", "glm-4.5-air"});  // with a module for multi-token prediction
  for (const char* name : names) {
    const Model model = load_model(name);
    for (const auto& [tp, ep, etp] : {std::array{1, 1, 1}, {1, 4, 1}, {2, 4, 1}, {2, 2, 2}}) {
      const Sharding sharding{.seq = 3072, .tp = tp, .sequence_parallel = tp > 1, .ep = ep, .etp = etp};
      if (!allows(transformer(model), sharding)) continue;
      const OpGraph graph = build_op_graph(model, sharding);
      std::int64_t parameters = 0;
      double flops = 0;
      for (std::size_t i = 0; i < graph.layers.size(); ++i) {
        for (const Parameter& p : layer_of(graph, i).parameters) {
          if (!p.tied) parameters += elements(p.shape);
          ASSERT_EQ(elements(p.local) * (p.split_dim < 0 ? 1 : degree(sharding, p.split_over)), elements(p.shape)) << p.name;
        }
        for (const Operator& op : layer_of(graph, i).operators)
          flops += op.forward.flops.value + op.input_grad.flops.value + op.weight_grad.flops.value;
      }
      EXPECT_EQ(parameters, parameter_count(model, tp)) << name;
      EXPECT_NEAR(tp * flops / model_flops_per_sample(model, 3072, tp).value, 1, 1e-12) << name << " tp " << tp << " ep " << ep;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 11 * 4 - 3);
}

// Megatron's counts of Mixtral-8x7B with tensor degree 2: routed parameters follow the product of both expert degrees.
TEST(OpGraphExperts, ParametersOfARankOfMixtral) {
  for (const auto& [ep, etp] : {std::pair{8, 1}, {4, 2}}) {
    const OpGraph graph =
        build_op_graph(load_model("mixtral-8x7b"), {.seq = 4096, .tp = 2, .sequence_parallel = true, .ep = ep, .etp = etp});
    std::int64_t routed = 0, others = 0;
    for (std::size_t i = 0; i < graph.layers.size(); ++i)
      for (const Parameter& p : layer_of(graph, i).parameters) (p.grid == Grid::Expert ? routed : others) += elements(p.local);
    EXPECT_EQ(routed, 5'637'144'576) << "ep " << ep;
    EXPECT_EQ(others, 803'475'456) << "ep " << ep;
  }
}

// Every tensor-parallel rank scores its own part of the tokens, and the loads are those of whole sequences.
TEST(OpGraphExperts, TheRouterIsWholeOnEveryRank) {
  const OpGraph graph =
      build_op_graph(load_model("mixtral-8x7b"), {.seq = 4096, .tp = 2, .cp = 2, .sequence_parallel = true, .ep = 4});
  const LayerGraph& layer = layer_of(graph, 1);
  for (const Parameter& p : layer.parameters) {
    if (p.name != "router.weight") continue;
    EXPECT_EQ(p.split_dim, -1);
    EXPECT_EQ(p.grid, Grid::Dense);
  }
  EXPECT_EQ(std::get<ops::Route>(named(layer, "route").op).ranks, 4);
  EXPECT_EQ(degree({.tp = 2, .cp = 2, .ep = 7, .etp = 7}, named(layer, "expert_loads_sum").communication->over), 4);
  EXPECT_EQ(value(layer, "dispatched").dims, (std::vector<std::int64_t>{4, 4096 / 4 * 2 / 4, 4096}));
  EXPECT_FALSE(has(layer_of(build_op_graph(load_model("mixtral-8x7b"), {.seq = 4096}), 1), "expert_loads_sum"));
}

// ---- kept bytes ------------------------------------------------------------------------------------------------------------------------

std::int64_t bytes_per_token(const Model& model, int ep) {
  const OpGraph graph = build_op_graph(model, {.seq = 8192, .ep = ep});
  const LayerGraph& layer = layer_of(graph, graph.layers.size() - 2);  // the last one: a mixture
  return kept_bytes(layer, retention(layer)).value / 8192;             // loads and counts are less than a byte
}

// bf16, flash, no recompute: 4 h (inputs of norm, router and dispatch), 2 E logits, 20 k (the experts chosen and their rows, 64 bits each,
// their fp32 weights), k (2 h + 6 fe) in the experts and 6 fs in the shared ones; the experts' outputs, 2 k h, unless weights multiply inputs.
std::int64_t bytes_of_mixture(const Transformer& t) {
  const Experts& e = t.block.experts;
  const std::int64_t outputs = e.scaled_inputs ? 0 : 2 * e.chosen * t.hidden;
  return 4 * t.hidden + 2 * e.count + 20 * e.chosen + e.chosen * (2 * t.hidden + 6 * e.width) + 6 * e.shared_width + outputs;
}

TEST(OpGraphExperts, BytesOfALayerInClosedForm) {
  for (const char* name : kModels) {
    const Model model = without_mtp(name);
    const Transformer& t = transformer(model);
    Model dense = model;
    auto& d = std::get<Transformer>(dense.shape);
    d.block.experts = {};
    if (t.attention.full_unrotated || t.attention.local.size() > 1) d.attention.local = {t.attention.local.back()};
    const OpGraph graph = build_op_graph(dense, {.seq = 8192});
    const LayerGraph& layer = layer_of(graph, graph.layers.size() - 2);
    const std::int64_t attention = kept_bytes(layer, retention(layer)).value / 8192 - 4 * t.hidden - 6 * t.ffn_hidden;
    for (const int ep : {1, 8}) EXPECT_EQ(bytes_per_token(model, ep), attention + bytes_of_mixture(t)) << name << " ep " << ep;
  }
}

// The published sums count 9 E for the router (fp32 logits and scores, a map) where the graph keeps 2 E and 20 k, and 2 dr for the keys' part
// that turns: they differ by 7 E - 20 k (+ 128), which is 0.52 % of gpt-oss-120b and less than 0.5 % of the others.
TEST(OpGraphExperts, BytesOfPublishedModels) {
  const struct {
    const char* name;
    std::int64_t bytes, apart;
  } rows[] = {{"deepseek-v3", 572'288, 7 * 256 - 20 * 8 + 128},
              {"qwen3-30b-a3b", 147'712, 7 * 128 - 20 * 8},
              {"qwen3-235b-a22b", 291'200, 7 * 128 - 20 * 8},
              {"mixtral-8x7b", 258'248, 7 * 8 - 20 * 2},
              {"gpt-oss-120b", 158'080, 7 * 128 - 20 * 4}};
  for (const auto& row : rows) {
    const std::int64_t found = bytes_per_token(without_mtp(row.name), 8);
    EXPECT_EQ(found, row.bytes - row.apart) << row.name;
    EXPECT_NEAR(static_cast<double>(found) / static_cast<double>(row.bytes), 1, 0.0052) << row.name;
  }
}

// ---- what goes between ranks -------------------------------------------------------------------------------------------------------------

// Plain all-to-all: k (ep - 1) / ep copies of each token leave a rank, each way, and as many gradients in the backward. DeepSeek-V3, 64 ranks,
// 4096 tokens, bf16: 462.4 MB.
TEST(OpGraphExperts, BytesOfDispatchAndCombine) {
  const OpGraph graph = build_op_graph(without_mtp("deepseek-v3"), {.seq = 4096, .ep = 64});
  const LayerGraph& layer = layer_of(graph, 10);
  for (const char* name : {"dispatch_all_to_all", "combine_all_to_all"}) {
    const Communication& all = *named(layer, name).communication;
    EXPECT_EQ(all.forward, CollectiveKind::AllToAll);
    EXPECT_EQ(all.backward, CollectiveKind::AllToAll);
    EXPECT_EQ(all.over, Kinds{ExpertKind::Expert});
    EXPECT_NEAR(static_cast<double>(all.bytes.value) * 63 / 64, 462.4e6, 0.05e6) << name;
  }
  const Communication& counts = *named(layer, "expert_counts_all_to_all").communication;
  EXPECT_EQ(counts.bytes.value, 256 * 8);
  EXPECT_FALSE(counts.backward);
}

// Bytes that leave a rank for the other members, by the algorithms' volumes: (n - 1) / n of an all-to-all and of a gather.
double sent(const LayerGraph& layer, const std::string& name, int members) {
  return static_cast<double>(named(layer, name).communication->bytes.value) * (members - 1) / members;
}

// The published volumes of DeepSeek-V3 on 64 ranks of 8 nodes, 4096 tokens, bf16, one way (docs/experts.md): 443.7 MB once per rank,
// 272.0 MB once per node, both with free routing (one group). Node-limited: groups are chosen by their two best scores, so that a token is
// on 3.954 nodes and 7.496 ranks (simulated; the graph's draw is within 1 % of them), and 7/8 of the nodes are others.
TEST(OpGraphExperts, BytesOfTokensThatAreSentOnce) {
  Model limited = without_mtp("deepseek-v3"), model = limited;
  Experts& free = std::get<Transformer>(model.shape).block.experts;
  free.groups = free.chosen_groups = 1;
  const auto of = [](const Model& m, Dispatcher dispatcher, int nodes) {
    return build_op_graph(m, {.seq = 4096, .ep = 64, .dispatcher = dispatcher, .expert_nodes = nodes});
  };
  const double token = 4096 * 7168 * 2;
  const OpGraph rank = of(model, Dispatcher::OncePerRank, 1), node = of(model, Dispatcher::OncePerNode, 8);
  for (const char* name : {"dispatch_once_all_to_all", "combine_once_all_to_all"}) {
    EXPECT_NEAR(sent(layer_of(rank, 10), name, 64), 443.7e6, 0.7e6) << name;  // 491.3 rows to each rank, rounded up
    EXPECT_NEAR(sent(layer_of(node, 10), name, 8), 272.0e6, 0.1e6) << name;
    EXPECT_EQ(named(layer_of(node, 10), name).communication->over, Kinds{ExpertKind::OuterExpert});
  }
  EXPECT_FALSE(has(layer_of(rank, 10), "dispatch_all_to_all"));  // a part is one rank
  const double inside = sent(layer_of(node, 10), "dispatch_all_to_all", 8);
  EXPECT_NEAR(inside, token * 8 * 7 / 8, 1e-3 * inside);  // inside a node, a row for each expert
  EXPECT_NEAR(sent(layer_of(of(limited, Dispatcher::OncePerNode, 8), 10), "dispatch_once_all_to_all", 8), token * 3.954 * 7 / 8,
              0.01 * token * 3.954);
  EXPECT_NEAR(sent(layer_of(of(limited, Dispatcher::OncePerRank, 1), 10), "dispatch_once_all_to_all", 64),
              token * 7.496 * 63 / 64, 0.01 * token * 7.496);
}

// An all-gather moves (ep - 1) T h, an all-to-all k T h (ep - 1) / ep: less for k > ep.
TEST(OpGraphExperts, BytesOfGatheredTokens) {
  const Model model = load_model("qwen3-30b-a3b");  // k 8
  for (const int ep : {4, 8, 16}) {
    const OpGraph gathers = build_op_graph(model, {.seq = 4096, .ep = ep, .dispatcher = Dispatcher::AllGather});
    const OpGraph sends = build_op_graph(model, {.seq = 4096, .ep = ep});
    const double token = 4096.0 * 2048 * 2, all = sent(layer_of(gathers, 1), "dispatch_tokens_gather", ep);
    EXPECT_EQ(all, (ep - 1) * token);
    EXPECT_EQ(sent(layer_of(gathers, 1), "combine_reduce_scatter", ep), all);
    EXPECT_EQ(sent(layer_of(sends, 1), "dispatch_all_to_all", ep), 8 * token * (ep - 1) / ep);
    EXPECT_EQ(all < sent(layer_of(sends, 1), "dispatch_all_to_all", ep), ep < 8) << ep;
  }
}

// Whatever brings the tokens, a rank's experts work on the same rows.
TEST(OpGraphExperts, DispatchersGiveTheSameRowsToExperts) {
  const Model model = load_model("qwen3-30b-a3b");
  for (const ExpertLoad& load : {ExpertLoad{}, ExpertLoad{ExpertLoad::Kind::Gini, 0.15}})
    for (const DispatcherRow& row : kDispatchers) {
      const Sharding sharding{
          .seq = 4096, .ep = 16, .expert_load = load, .dispatcher = row.dispatcher, .expert_nodes = row.by_node ? 2 : 1};
      const OpGraph graph = build_op_graph(model, sharding),
                    plain = build_op_graph(model, {.seq = 4096, .ep = 16, .expert_load = load});
      EXPECT_EQ(named(layer_of(graph, 1), "experts_fc1").shapes[0], named(layer_of(plain, 1), "experts_fc1").shapes[0])
          << row.name;
      EXPECT_EQ(named(layer_of(graph, 1), "experts_fc1").forward.flops, named(layer_of(plain, 1), "experts_fc1").forward.flops);
    }
}

// A rank's rows go to the etp ranks that share the experts: gathered behind the dispatch, summed before the combine.
TEST(OpGraphExperts, RanksThatShareAnExpertSeeTheSameRows) {
  const Sharding sharding{.seq = 1024, .tp = 2, .sequence_parallel = true, .ep = 4, .etp = 2};
  const OpGraph graph = build_op_graph(load_model("mixtral-8x7b"), sharding);
  const LayerGraph& layer = layer_of(graph, 1);
  const std::int64_t rows = 512 * 2, bytes = rows * 4096 * 2;  // of this rank
  EXPECT_EQ(named(layer, "dispatch_all_to_all").communication->bytes.value, bytes);
  for (const char* name : {"dispatch_gather", "combine_reduce"}) {
    const Communication& c = *named(layer, name).communication;
    EXPECT_EQ(c.over, Kinds{ExpertKind::ExpertTensor}) << name;
    EXPECT_EQ(c.bytes.value, 2 * bytes) << name;
  }
  EXPECT_EQ(named(layer, "dispatch_gather").communication->forward, CollectiveKind::AllGather);
  EXPECT_EQ(named(layer, "dispatch_gather").communication->backward, CollectiveKind::ReduceScatter);
  EXPECT_EQ(named(layer, "combine_reduce").communication->forward, CollectiveKind::ReduceScatter);
  EXPECT_EQ(named(layer, "combine_reduce").communication->backward, CollectiveKind::AllGather);
  EXPECT_TRUE(std::get<ops::Dispatch>(named(layer, "dispatch").op).dealt);
  EXPECT_EQ(named(layer, "experts_fc1").shapes[0].dims, (std::vector<std::int64_t>{2, rows * 2 / 2, 2 * 14336 / 2, 4096}));
}

// Rows that a rank sends: its copies, times what the most loaded rank gets over the mean; with a capacity, of each expert, room for it.
TEST(OpGraphExperts, RoomFollowsLoadAndCapacity) {
  const Model model = load_model("mixtral-8x7b");  // 8 experts, two chosen
  const auto room = [&](ExpertLoad load, double capacity, int ep) {
    const OpGraph graph = build_op_graph(model, {.seq = 1000, .ep = ep, .expert_load = load, .expert_capacity = capacity});
    const std::vector<std::int64_t> dims = value(layer_of(graph, 1), "dispatched").dims;
    EXPECT_EQ(dims[0], ep);
    return dims[1];
  };
  EXPECT_EQ(room({}, 0, 1), 2000);
  EXPECT_EQ(room({}, 0, 4), 500);
  EXPECT_EQ(room({ExpertLoad::Kind::Factor, 1.25}, 0, 4), 625);
  EXPECT_EQ(room({ExpertLoad::Kind::Factor, 1.25}, 0, 1), 2000);  // one rank has all
  EXPECT_EQ(room({.kind = ExpertLoad::Kind::Worst}, 0, 4), 2000);
  EXPECT_EQ(room({.kind = ExpertLoad::Kind::Worst}, 0, 8), 1000);  // a token chooses an expert once
  EXPECT_EQ(room({}, 1, 4), 2 * 250);                              // capacity 1 x 2000 / 8
  EXPECT_EQ(room({}, 1.25, 8), 313);                               // 312.5
  EXPECT_EQ(room({}, 1, 1), 8 * 250);
  EXPECT_EQ(room({}, 100, 8), 1000);
}

// Without padding an expert takes at most its capacity, and no more rows are sent than the load gives.
TEST(OpGraphExperts, RowsWithoutPadding) {
  const Model model = load_model("mixtral-8x7b");  // 8 experts, two chosen
  const auto room = [&](ExpertLoad load, double capacity) {
    const Sharding sharding{
        .seq = 1000, .ep = 4, .expert_load = std::move(load), .expert_capacity = capacity, .expert_unpadded = true};
    return value(layer_of(build_op_graph(model, sharding), 1), "dispatched").dims[1];
  };
  EXPECT_EQ(room({}, 2), 500);  // 1000 tokens x 2 on 4 ranks
  EXPECT_EQ(room({ExpertLoad::Kind::Factor, 1.25}, 2), 625);
  EXPECT_EQ(room({ExpertLoad::Kind::Factor, 1.25}, 1), 2 * 250);  // the capacity
  // 16 choices: 4 of expert 0, 3 of expert 1, so 7/16 of 2000 go to rank 0; with capacity 1.5 (375 rows) 375 + 375.
  const ExpertLoad measured{.kind = ExpertLoad::Kind::Measured, .measured = {{4, 3, 2, 2, 2, 1, 1, 1}}};
  EXPECT_EQ(room(measured, 8), 875);
  EXPECT_EQ(room(measured, 1.5), 750);
}

// Each layer has the rows of its own loads, and equal layers are one kind.
TEST(OpGraphExperts, MeasuredLoadsOfEachLayer) {
  Model model = load_model("mixtral-8x7b");
  std::get<Transformer>(model.shape).layers = 4;
  const std::vector<double> even(8, 1.0), uneven = {3, 1, 1, 1, 1, 1, 0, 0}, other = {0, 0, 2, 2, 2, 1, 1, 0};
  Sharding sharding{.seq = 1000, .ep = 4};
  sharding.expert_load = {.kind = ExpertLoad::Kind::Measured, .measured = {even, uneven, even, other}};
  const OpGraph graph = build_op_graph(model, sharding);
  EXPECT_EQ(graph.kinds.size(), 2U + 3U);
  EXPECT_EQ(graph.layers[1].kind, graph.layers[3].kind);
  const auto room = [&](std::size_t layer) { return value(layer_of(graph, layer), "dispatched").dims[1]; };
  EXPECT_EQ(room(1), 500);
  EXPECT_EQ(room(2), 1000);  // rank 0: 4 of 8
  EXPECT_EQ(room(4), 1000);  // rank 1: 4 of 8
  sharding.expert_load.measured.pop_back();
  try {
    build_op_graph(model, sharding);
    ADD_FAILURE() << "three lists for four layers";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "the measured loads are of 3 layers, the model has 4 with experts");
  }
  sharding.expert_load.measured = {{1, 1}};
  try {
    build_op_graph(model, sharding);
    ADD_FAILURE() << "two experts";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "the measured loads are of 2 experts, a layer of the model has 8");
  }
}

// ---- kinds of layers ---------------------------------------------------------------------------------------------------------------------

std::string kind_of(const OpGraph& graph, int layer) { return layer_of(graph, static_cast<std::size_t>(layer + 1)).kind; }

TEST(OpGraphExperts, DenseFirstLayersAreAKindOfTheirOwn) {
  for (const auto& [name, dense] :
       {std::pair{"deepseek-v3", 3}, {"deepseek-v2-lite", 1}, {"kimi-k2", 1}, {"mixtral-8x7b", 0}}) {
    const Model model = without_mtp(name);
    const OpGraph graph = build_op_graph(model, {.seq = 1024});
    EXPECT_EQ(graph.kinds.size(), dense > 0 ? 4U : 3U) << name;
    for (int i = 0; i < transformer(model).layers; ++i) {
      EXPECT_EQ(kind_of(graph, i), i < dense || dense == 0 ? "decoder" : "moe_decoder") << name << " " << i;
      EXPECT_EQ(has(layer_of(graph, static_cast<std::size_t>(i + 1)), "route"), i >= dense) << name << " " << i;
      EXPECT_EQ(has(layer_of(graph, static_cast<std::size_t>(i + 1)), "fc1"), i < dense) << name << " " << i;
    }
  }
}

// Llama 4 Maverick: every second layer is a mixture, every fourth one sees all; Scout: all are mixtures.
TEST(OpGraphExperts, MixturesAndFullLayersCross) {
  const OpGraph maverick = build_op_graph(load_model("llama-4-maverick"), {.seq = 1024});
  const char* const kinds[] = {"decoder", "moe_decoder", "decoder", "full_moe_decoder"};
  for (int i = 0; i < 48; ++i) EXPECT_EQ(kind_of(maverick, i), kinds[i % 4]) << i;
  const OpGraph scout = build_op_graph(load_model("llama-4-scout"), {.seq = 1024});
  for (int i = 0; i < 48; ++i) EXPECT_EQ(kind_of(scout, i), i % 4 == 3 ? "full_decoder" : "decoder") << i;
}

// ---- what is refused -----------------------------------------------------------------------------------------------------------------------

Transformer mixture() {
  Transformer t = transformer(llama(2, 64, 96, 4, 4, 128));
  t.block.experts = {.count = 8, .chosen = 2, .width = 24, .shared_width = 32};
  return t;
}

std::string refusal(const std::function<void(Transformer&, Sharding&)>& change) {
  Transformer t = mixture();
  Sharding sharding{.seq = 16};
  change(t, sharding);
  try {
    build_op_graph({.shape = t}, sharding);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(OpGraphExperts, WhatCannotBeIsRefused) {
  EXPECT_EQ(refusal([](Transformer&, Sharding&) {}), "");
  const auto dense = [](Transformer& t) { t.block.experts = {}; };
  EXPECT_EQ(refusal([&](Transformer& t, Sharding& s) { dense(t), s.ep = 2; }), "the model has no experts: --ep 1 and --etp 1");
  EXPECT_EQ(refusal([&](Transformer& t, Sharding& s) { dense(t), s.etp = 2; }), "the model has no experts: --ep 1 and --etp 1");
  EXPECT_EQ(refusal([&](Transformer& t, Sharding& s) { dense(t), s.expert_capacity = 1; }),
            "the model has no experts: --expert-capacity 0");
  const char* const plain = "a mixture of experts needs products without biases beside it, and norms before it";
  EXPECT_EQ(refusal([](Transformer& t, Sharding&) { t.activation = ActivationKind::Gelu; }), "");
  EXPECT_EQ(refusal([](Transformer& t, Sharding&) { t.mlp_bias = true; }), plain);
  EXPECT_EQ(refusal([](Transformer& t, Sharding&) { t.post_norm = true; }), plain);
  EXPECT_EQ(refusal([](Transformer&, Sharding& s) { s.ep = 3; }), "ep 3 does not divide the 8 experts of a layer");
  EXPECT_EQ(refusal([](Transformer&, Sharding& s) { s.ep = 16; }), "ep 16 does not divide the 8 experts of a layer");
  EXPECT_EQ(refusal([](Transformer&, Sharding& s) { s.etp = 5; }), "etp 5 does not divide the 24 columns of an expert");
  EXPECT_EQ(
      refusal([](Transformer& t, Sharding& s) { t.block.experts.shared_width = 33, s.tp = 2, s.sequence_parallel = true; }),
      "tp 2 does not divide the 33 columns of the shared experts");
  EXPECT_EQ(refusal([](Transformer&, Sharding& s) { s.tp = 2; }),
            "tensor-parallel ranks would send the same tokens to the experts: --sequence-parallel");
  EXPECT_EQ(refusal([](Transformer& t, Sharding& s) { t.block.experts.biases = true, s.etp = 2; }),
            "biases of experts would be added by each of etp 2 ranks: --etp 1");
  EXPECT_EQ(refusal([](Transformer& t, Sharding&) {
              t.block.experts.score = RouterScore::SoftmaxOfChosen, t.block.experts.chosen = 1;
            }),
            "a softmax over one chosen expert is always 1, so the router would not learn");
  EXPECT_EQ(refusal([](Transformer& t, Sharding&) { t.block.mtp_modules = 1, t.positions = PositionKind::Learned; }),
            "multi-token prediction is for decoders with norms before their blocks and rotary positions");
}

}  // namespace
}  // namespace foreshard::op_graph_experts_test
