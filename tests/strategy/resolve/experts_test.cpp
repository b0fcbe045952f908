// Experts in a plan: the groups of both grids, which tensor is summed over which ranks and cut over which, and what is refused. The numbers of
// ranks are those that Megatron-Core's parallel_state gives for the same degrees (order tp-cp-ep-dp-pp).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/plan/ranks.h"
#include "strategy/estimate/estimate.h"
#include "strategy/resolve/resolve.h"
#include "strategy/resolve/tables_text.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::experts_test {
namespace {

using Members = std::vector<int>;

// Four layers, 8 experts, two of them chosen, shared ones beside them.
Model mixture() {
  Transformer t = small_transformer(4);
  t.norm = NormKind::RmsNorm, t.activation = ActivationKind::SwiGlu, t.positions = PositionKind::Rope;
  t.qkv_bias = t.projection_bias = t.mlp_bias = t.tied_embeddings = false;
  t.block.experts = {.count = 8, .chosen = 2, .width = 32, .shared_width = 64};
  return {.name = "mixture", .shape = t};
}

// 32 ranks: expert groups fold over tensor, context and data ranks; each expert is on two ranks of a stage.
Strategy folded() {
  return {
      .dp = 4, .tp = 2, .cp = 2, .pp = 2, .experts = {.ep = 8}, .sequence_parallel = true, .batch = {.micro = 1, .global = 8}};
}
// 16 ranks: two of them share each expert.
Strategy shared() {
  return {
      .dp = 4, .tp = 2, .pp = 2, .experts = {.ep = 2, .etp = 2}, .sequence_parallel = true, .batch = {.micro = 1, .global = 8}};
}
Plan plan_of(const Strategy& strategy) {
  const int nodes = std::max(1, strategy.dp * strategy.tp * strategy.cp * strategy.pp / 8);
  return lowered(mixture(), load_cluster("dgx-a100-x" + std::to_string(nodes)), strategy).plan;
}

Members numbers(const std::vector<RankId>& ranks) {
  Members numbers;
  for (const RankId rank : ranks) numbers.push_back(rank.value);
  return numbers;
}

// All groups along axes of these kinds, in the order of their first members.
std::vector<Members> groups(const Plan& plan, const Kinds& kinds) {
  const Ranks ranks(plan);
  std::set<AxisId> wanted;
  for (std::size_t a = 0; a < plan.axes.size(); ++a)
    if (is_of(plan.axes[a], kinds)) wanted.insert({static_cast<std::int32_t>(a)});
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const Group& group = plan.groups[g];
    if (std::set(group.over.begin(), group.over.end()) != wanted || group.roles.size() > 1) continue;
    std::set<Members> all;
    for (int rank = 0; rank < ranks.count(); ++rank)
      all.insert(numbers(ranks.members(GroupId{static_cast<std::int32_t>(g)}, RankId{rank})));
    return {all.begin(), all.end()};
  }
  ADD_FAILURE() << "no such group";
  return {};
}

// Ranks 0 to `ranks` in groups of `size`, each `stride` apart.
std::vector<Members> strided(int ranks, int size, int stride) {
  std::vector<Members> all;
  for (int first = 0; first < ranks; ++first) {
    if (first / stride % size != 0) continue;
    Members& group = all.emplace_back();
    for (int i = 0; i < size; ++i) group.push_back(first + i * stride);
  }
  return all;
}

constexpr DenseKind kTensor = DenseKind::Tensor, kContext = DenseKind::Context, kData = DenseKind::Data;

TEST(ExpertGroups, FoldOverTensorContextAndDataRanks) {
  const Plan plan = plan_of(folded());
  ASSERT_EQ(Ranks(plan).count(), 32);
  EXPECT_EQ(groups(plan, {kTensor}), strided(32, 2, 1));   // (0 1) ...
  EXPECT_EQ(groups(plan, {kContext}), strided(32, 2, 2));  // (0 2) (1 3) (4 6) (5 7) ...
  const std::vector<Members> dense = groups(plan, {kData, kContext});
  ASSERT_EQ(dense.size(), 4U);
  EXPECT_EQ(dense[0], (Members{0, 2, 4, 6, 8, 10, 12, 14}));
  EXPECT_EQ(dense[1], (Members{1, 3, 5, 7, 9, 11, 13, 15}));
  EXPECT_EQ(dense[2][0], 16);
  const std::vector<Members> experts = groups(plan, {ExpertKind::Expert});
  ASSERT_EQ(experts.size(), 4U);
  EXPECT_EQ(experts[0], (Members{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(experts[3], (Members{24, 25, 26, 27, 28, 29, 30, 31}));
  EXPECT_EQ(groups(plan, {ExpertKind::ExpertData}), strided(32, 2, 8));  // (0 8) (1 9) ... (7 15) (16 24) ...
  for (int rank = 0; rank < 16; ++rank) EXPECT_EQ(Ranks(plan).twin({rank}, {1}).value, rank + 16);  // pp (0 16) (1 17) ...
}

TEST(ExpertGroups, RanksThatShareAnExpertAreNeighbours) {
  const Plan plan = plan_of(shared());
  ASSERT_EQ(Ranks(plan).count(), 16);
  EXPECT_EQ(groups(plan, {kTensor}), strided(16, 2, 1));
  EXPECT_EQ(groups(plan, {ExpertKind::ExpertTensor}), strided(16, 2, 1));
  EXPECT_EQ(groups(plan, {kData}), strided(16, 4, 2));                   // (0 2 4 6) (1 3 5 7) ...
  EXPECT_EQ(groups(plan, {ExpertKind::Expert}), strided(16, 2, 2));      // (0 2) (1 3) (4 6) (5 7) ...
  EXPECT_EQ(groups(plan, {ExpertKind::ExpertData}), strided(16, 2, 4));  // (0 4) (1 5) (2 6) (3 7) ...
  for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(Ranks(plan).twin({rank}, {1}).value, rank + 8);
}

// ---- gradients ---------------------------------------------------------------------------------------------------------------------------

// Of each tensor, the groups over which its gradient is summed, as `rank` sees them. A sum works on a range of a buffer of gradients.
std::map<std::string, std::set<Members>> sums(const Plan& plan, int rank) {
  const Ranks ranks(plan);
  const Role& role = plan.roles[ranks.role({rank}).index()];
  std::map<std::string, std::set<Members>> found;
  std::set<SegmentId> segments;
  for (const Action& action : role.actions) segments.insert(action.segment);
  for (const SegmentId segment : segments)
    for (const Instruction& run : plan.segments[segment.index()].instructions) {
      const auto* sum = std::get_if<Collective>(&run.what);
      if (!sum || (sum->kind != CollectiveKind::AllReduce && sum->kind != CollectiveKind::ReduceScatter)) continue;
      const Use& use = run.reads.at(0);
      const Buffer& buffer = role.buffers[use.buffer.index()];
      for (const Shard& shard : buffer.holds) {
        const Bytes end = use.from + use.length.value_or(buffer.bytes);
        if (shard.part == TensorPart::Gradient && shard.at >= use.from && shard.at < end)
          found[plan.tensors[shard.tensor.index()].name].insert(numbers(ranks.members(sum->group, RankId{rank})));
      }
    }
  return found;
}

// Routed experts over the ranks that hold the same ones; what tensor ranks hold whole (router, norms) over them, too; the rest, shared
// experts among them, over data and context.
TEST(ExpertGradients, AreSummedOverTheRanksThatHoldTheSame) {
  for (const int zero : {0, 1, 2, 3}) {
    Strategy strategy = folded();
    strategy.zero.stage = zero;
    const std::map<std::string, std::set<Members>> of = sums(plan_of(strategy), 3);
    const Members tensor = {2, 3}, replicas = {1, 3, 5, 7, 9, 11, 13, 15}, experts = {3, 11};
    int seen = 0;
    for (const auto& [name, groups] : of) {
      SCOPED_TRACE(name + " zero " + std::to_string(zero));
      const bool whole = name.find("norm") != std::string::npos || name.find("router") != std::string::npos;
      const bool routed = name.find(".experts.") != std::string::npos;
      const std::set<Members> expected = routed ? std::set{experts} : whole ? std::set{tensor, replicas} : std::set{replicas};
      EXPECT_EQ(groups, expected);
      seen += routed || name.find("shared_fc") != std::string::npos || name.find("router") != std::string::npos;
    }
    EXPECT_EQ(seen, 2 * (3 + 2 + 1)) << zero;  // of the two layers of the first stage
  }
}

TEST(ExpertGradients, OfExpertsThatRanksShare) {
  const std::map<std::string, std::set<Members>> of = sums(plan_of(shared()), 3);
  EXPECT_EQ(of.at("layers.0.experts.gate.weight"), (std::set<Members>{{3, 7}}));
  EXPECT_EQ(of.at("layers.0.shared_fc1.weight"), (std::set<Members>{{1, 3, 5, 7}}));
  EXPECT_EQ(of.at("layers.0.router.weight"), (std::set<Members>{{2, 3}, {1, 3, 5, 7}}));
}

// Each rank has experts that no other has: nothing is summed, and ZeRO has nothing to cut.
TEST(ExpertGradients, OfExpertsWithoutReplicasAreNotSummed) {
  for (const int zero : {0, 1, 2, 3}) {
    const Strategy alone{.dp = 8, .experts = {.ep = 8}, .batch = {.micro = 1, .global = 8}, .zero = {.stage = zero}};
    const Plan plan = plan_of(alone);
    const std::map<std::string, std::set<Members>> of = sums(plan, 0);
    EXPECT_FALSE(of.contains("layers.0.experts.gate.weight")) << zero;
    EXPECT_EQ(of.at("layers.0.router.weight"), (std::set<Members>{{0, 1, 2, 3, 4, 5, 6, 7}}));
    for (const Buffer& buffer : plan.roles[0].buffers)
      for (const Shard& shard : buffer.holds)
        if (plan.tensors[shard.tensor.index()].grid == Grid::Expert) {
          EXPECT_TRUE(shard.flat_by.empty()) << buffer.name;
        }
  }
}

// ---- states --------------------------------------------------------------------------------------------------------------------------------

// ZeRO 1 cuts the states of experts over their replicas, the others over data and context; experts are cut over expert ranks, and over those
// that share them.
TEST(ExpertStates, AreCutOverTheirOwnReplicas) {
  for (Strategy strategy : {folded(), shared()}) {
    strategy.zero.stage = 1;
    const Plan plan = plan_of(strategy);
    const auto degree = [&](const std::vector<AxisId>& axes, const Kinds& kinds) {
      int product = 1;
      for (const AxisId axis : axes) {
        EXPECT_TRUE(is_of(plan.axes[axis.index()], kinds));
        product *= plan.axes[axis.index()].size;
      }
      return product;
    };
    int experts = 0, dense = 0;
    for (const Role& role : plan.roles)
      for (const Buffer& buffer : role.buffers)
        for (const Shard& shard : buffer.holds) {
          if (shard.part != TensorPart::Momentum) continue;
          const Tensor& tensor = plan.tensors[shard.tensor.index()];
          if (tensor.name.find(".experts.") != std::string::npos) {
            EXPECT_EQ(tensor.grid, Grid::Expert);
            EXPECT_EQ(degree(shard.flat_by, {ExpertKind::ExpertData}), 2) << tensor.name;
            EXPECT_EQ(degree(shard.split_by, {ExpertKind::Expert, ExpertKind::ExpertTensor}),
                      strategy.experts.ep * strategy.experts.etp);
            ++experts;
          } else {
            EXPECT_EQ(tensor.grid, Grid::Dense) << tensor.name;
            EXPECT_EQ(degree(shard.flat_by, {kData, kContext}), strategy.dp * strategy.cp) << tensor.name;
            EXPECT_LE(degree(shard.split_by, {kTensor}), 2);
            ++dense;
          }
        }
    EXPECT_EQ(experts, 4 * 3);
    EXPECT_GT(dense, 4 * 3);
  }
}

// ---- dispatchers ---------------------------------------------------------------------------------------------------------------------------

Strategy by(Dispatcher dispatcher, Strategy strategy) {
  strategy.experts.dispatcher = dispatcher;
  return strategy;
}

// 16 expert ranks on two nodes: rank r is on node r / 8. Tokens go between ranks with the same place on each node, then inside a node.
TEST(Dispatchers, OncePerNodeHasGroupsBetweenAndInsideNodes) {
  Model model = mixture();
  std::get<Transformer>(model.shape).block.experts.count = 16;
  const Strategy strategy = by(Dispatcher::OncePerNode, {.dp = 16, .experts = {.ep = 16}, .batch = {.micro = 1, .global = 16}});
  const Plan plan = lowered(model, load_cluster("dgx-a100-x2"), strategy).plan;
  EXPECT_EQ(groups(plan, {ExpertKind::OuterExpert}), strided(16, 2, 8));  // (0 8) (1 9) ...
  EXPECT_EQ(groups(plan, {ExpertKind::Expert}), strided(16, 8, 1));
  int cut = 0;
  for (const Buffer& buffer : plan.roles[0].buffers)
    for (const Shard& shard : buffer.holds) {
      if (plan.tensors[shard.tensor.index()].grid != Grid::Expert || shard.part != TensorPart::Value) continue;
      int ranks = 1;
      for (const AxisId axis : shard.split_by) ranks *= plan.axes[axis.index()].size;
      EXPECT_EQ(ranks, 16);
      ++cut;
    }
  EXPECT_GT(cut, 0);
}

// Ranks of an expert group on one node, in the order in which ranks take GPUs.
TEST(Dispatchers, TheNodesOfAnExpertGroup) {
  const auto on_node = [](Strategy strategy) {
    const auto answer = resolve(mixture(), load_cluster("dgx-a100-x2"), by(Dispatcher::OncePerNode, std::move(strategy)));
    const auto* resolved = std::get_if<Strategy>(&answer);
    return resolved ? resolved->experts.node_ranks : -1;
  };
  const BatchSizes batch = {.micro = 1, .global = 16};
  EXPECT_EQ(on_node({.dp = 16, .experts = {.ep = 8}, .batch = batch}), 8);
  EXPECT_EQ(on_node({.dp = 16, .experts = {.ep = 4}, .batch = batch}), 4);                   // all on one node
  EXPECT_EQ(on_node({.dp = 16, .experts = {.ep = 4, .etp = 4}, .batch = batch}), 2);         // 4 GPUs share an expert
  EXPECT_EQ(on_node({.dp = 16, .experts = {.ep = 8, .node_ranks = 2}, .batch = batch}), 2);  // as said
  const RankOrder stages_first = {std::nullopt, DenseKind::Tensor, DenseKind::Context, DenseKind::Data};
  EXPECT_EQ(on_node({.dp = 8, .pp = 2, .experts = {.ep = 8}, .batch = batch, .placement = stages_first}), 4);
  EXPECT_EQ(on_node({.dp = 16, .experts = {.ep = 8, .node_ranks = 3}, .batch = batch}), -1);
}

Instruction& named(Plan& plan, const std::string& name) {
  for (Segment& segment : plan.segments)
    for (Instruction& run : segment.instructions)
      if (run.name == name) return run;
  ADD_FAILURE() << "no instruction " << name;
  return plan.segments[0].instructions[0];
}

// Every rank has the results of its own experts only: a plan that does not add them is refused. So is one that adds the gradients of
// gathered tokens nowhere.
TEST(Dispatchers, PartialSumsOfExpertsAreNoticed) {
  const Plan good = plan_of(by(Dispatcher::AllGather, {.dp = 8, .experts = {.ep = 4}, .batch = {.micro = 1, .global = 8}}));
  EXPECT_TRUE(check_plan(good).empty());
  for (const char* name : {"combine_reduce_scatter", "dispatch_tokens_gather"}) {
    Plan plan = good;
    bool changed = false;
    for (Segment& segment : plan.segments)
      for (Instruction& run : segment.instructions) {
        auto* what = std::get_if<Collective>(&run.what);
        if (!what || run.name != name || what->kind != CollectiveKind::ReduceScatter) continue;
        const Bytes bytes = {what->bytes.value / 4};
        run.what = Copy{.bytes = bytes, .slice = what->group};
        run.stream = {0}, changed = true;
      }
    EXPECT_TRUE(changed) << name;
    const std::vector<PlanDefect> defects = check_plan(plan);
    EXPECT_TRUE(std::ranges::any_of(defects, [](const PlanDefect& d) { return d.rule == "partial-sum"; })) << name;
  }
}

// Two-level all-to-alls, where the dispatcher says so.
TEST(Dispatchers, HierarchicalUsesAnAlgorithmOfTwoLevels) {
  for (const DispatcherRow& row : kDispatchers) {
    Plan plan = plan_of(by(row.dispatcher, {.dp = 8, .experts = {.ep = 4}, .batch = {.micro = 1, .global = 8}}));
    for (const Segment& segment : plan.segments)
      for (const Instruction& run : segment.instructions)
        if (const auto* what = std::get_if<Collective>(&run.what); what && what->kind == CollectiveKind::AllToAll)
          EXPECT_EQ(what->algorithm, row.two_level ? Algorithm::TwoLevel : Algorithm::Ring) << row.name;
  }
}

// In a cell of DualPipe one micro-batch is computed during the all-to-alls of the other: with a stream of their own the iteration is faster,
// and by more than in a schedule without cells, where only shared experts can be computed meanwhile.
TEST(Dispatchers, AllToAllsOverlapTheOtherMicrobatchOfACell) {
  const auto gain = [](Schedule schedule) {
    Strategy strategy{
        .dp = 8, .pp = 2, .experts = {.ep = 8}, .pipeline = {.schedule = schedule}, .batch = {.micro = 4, .global = 8 * 4 * 8}};
    double seconds[2] = {};
    for (const bool overlaps : {false, true}) {
      strategy.communication.overlap = Overlap{.tp = overlaps};
      const Cluster cluster = load_cluster("dgx-a100-x2");
      const Lowered plan = lowered(mixture(), cluster, strategy);
      EXPECT_TRUE(check_plan(plan.plan).empty());
      seconds[overlaps ? 1 : 0] = refine(plan, cluster).time.value;
    }
    return 1 - seconds[1] / seconds[0];
  };
  const double cells = gain(Schedule::DualPipe), none = gain(Schedule::OneFOneB);
  EXPECT_GT(cells, none);
  EXPECT_GT(cells, 0.01);
}

// Codes of rows: encoded before the way there, decoded after it; the way back and what goes beside the rows stay as they are.
TEST(Dispatchers, RowsAreSentInEightBits) {
  Strategy strategy{.dp = 8, .experts = {.ep = 4}, .batch = {.micro = 1, .global = 8}};
  Plan plain = plan_of(strategy);
  strategy.communication.dispatch.codec = Codec::Float8;
  Plan coded = plan_of(strategy);
  const Cluster cluster = load_cluster("dgx-a100");
  const auto resolved = resolve(mixture(), cluster, strategy);
  const Strategy& s = std::get<Strategy>(resolved);
  const auto tables = tables_of(mixture(), s, std::get<OpGraph>(graph_of(mixture(), s)));
  std::string text;
  for (const TextOfTable& table : texts_of(std::get<StrategyTables>(tables)))
    for (const std::vector<std::string>& row : table.rows)
      for (const std::string& cell : row) text += cell + "\n";
  EXPECT_NE(text.find("rows to experts as codes: fp8"), std::string::npos);
  EXPECT_TRUE(check_plan(coded).empty());
  const auto bytes = [](Plan& plan, const char* name) { return std::get<Collective>(named(plan, name).what).bytes.value; };
  const std::int64_t rows = bytes(plain, "dispatch_all_to_all");
  // bf16 against a byte, and four for 128: rows are multiples of 128 numbers
  EXPECT_EQ(bytes(coded, "dispatch_all_to_all, exchange codes"), rows / 2 + rows / 2 / 128 * 4);
  EXPECT_EQ(bytes(coded, "combine_all_to_all"), rows);
  EXPECT_EQ(bytes(coded, "combine_all_to_all, exchange codes"), rows / 2 + rows / 2 / 128 * 4);  // in the backward
  EXPECT_EQ(bytes(coded, "expert_counts_all_to_all"), bytes(plain, "expert_counts_all_to_all"));
}

// ---- what is refused -------------------------------------------------------------------------------------------------------------------------

Infeasible refusal(const Model& model, const Strategy& strategy) {
  const auto answer = resolve(model, load_cluster("dgx-a100-x2"), strategy);
  if (const auto* why = std::get_if<Infeasible>(&answer)) return *why;
  return {.reason = "none"};
}

TEST(ExpertDegrees, ThatCannotBeAreRefused) {
  Strategy base{.dp = 4, .tp = 2, .experts = {.ep = 4}, .sequence_parallel = true, .batch = {.micro = 1, .global = 8}};
  EXPECT_EQ(refusal(mixture(), base).reason, "none");

  const Model dense = {.name = "dense", .shape = small_transformer(4)};
  EXPECT_EQ(refusal(dense, base),
            (Infeasible{.reason = "dense has no experts that ep 4 x etp 1 could share", .would_help = {"--ep 1 --etp 1"}}));
  Strategy s = base;
  s.experts.ep = 1, s.experts.etp = 2;
  EXPECT_EQ(refusal(dense, s).reason, "dense has no experts that ep 1 x etp 2 could share");

  s = base, s.experts.etp = 4;
  EXPECT_EQ(refusal(mixture(), s), (Infeasible{.reason = "ep 4 x etp 4 does not divide tp x cp x dp = 8",
                                               .would_help = {"degrees whose product divides 8"}}));
  s = base, s.zero = {.stage = 1, .group = 2};
  EXPECT_EQ(refusal(mixture(), s),
            (Infeasible{.reason = "ZeRO groups below dp do not say which replicas of an expert they hold",
                        .would_help = {"--zero-group 4"}}));
  s.zero.group = 4;
  EXPECT_EQ(refusal(mixture(), s).reason, "none");

  s = base, s.dp = 8, s.tp = 1, s.sequence_parallel = false, s.offload.optimizer = Space::PinnedHost;
  EXPECT_EQ(refusal(mixture(), s),
            (Infeasible{.reason = "the states of experts stay on the device", .would_help = {"--offload-optimizer device"}}));
  s = {.batch = {.micro = 1, .global = 8}};
  s.stages = {{.layers = 2, .dp = 4, .tp = 2}, {.layers = 2, .dp = 8, .tp = 1}};
  EXPECT_EQ(refusal(mixture(), s), (Infeasible{.reason = "stages with degrees of their own do not share experts",
                                               .would_help = {"--dp, --tp and --pp"}}));
}

TEST(ExpertDegrees, DispatchersThatCannotBeAreRefused) {
  Strategy s{.dp = 8, .experts = {.ep = 4}, .batch = {.micro = 1, .global = 8}};
  s.experts.dispatcher = Dispatcher::OncePerNode, s.experts.node_ranks = 3;
  EXPECT_EQ(refusal(mixture(), s),
            (Infeasible{.reason = "--expert-node-ranks 3 does not divide ep 4", .would_help = {"--expert-node-ranks 0"}}));
  s.experts.node_ranks = 2, s.tp = 2, s.dp = 4, s.sequence_parallel = true;
  s.placement = {DenseKind::Data, DenseKind::Tensor, DenseKind::Context, std::nullopt};
  s.experts.ep = 8;
  EXPECT_EQ(refusal(mixture(), s).reason,
            "the ranks of an expert group on one node do not have consecutive experts with this placement");
  s = {.dp = 8, .experts = {.ep = 4}, .batch = {.micro = 1, .global = 8}};
  s.communication.dispatch.codec = Codec::Float8, s.experts.dispatcher = Dispatcher::AllGather;
  EXPECT_EQ(
      refusal(mixture(), s),
      (Infeasible{
          .reason = "--compress-dispatch fp8 sends rows of tokens in codes, --expert-dispatcher all-gather gathers tokens",
          .would_help = {"--expert-dispatcher all-to-all", "--compress-dispatch none"}}));
  Model narrow = mixture();
  std::get<Transformer>(narrow.shape).hidden = 72;
  s.experts.dispatcher = Dispatcher::AllToAll;
  EXPECT_EQ(refusal(narrow, s).reason,
            "codes of rows are whole 32-bit words, so that --compress-dispatch needs a hidden size that 32 divides: 72");
}

// Expert groups of 2 ranks lie across those of 3 tensor ranks.
TEST(ExpertDegrees, ThatLieAcrossTheDenseGridAreRefused) {
  const Strategy across{.dp = 4, .tp = 3, .experts = {.ep = 2}, .batch = {.micro = 1, .global = 8}};
  EXPECT_EQ(refusal(mixture(), across).reason,
            "expert degree 2 makes groups of 2 ranks, which lie across those of the dense grid (1, 3, 12)");
}

// What the shapes do not allow is an answer, too.
TEST(ExpertDegrees, ThatShapesDoNotAllowAreRefused) {
  const Strategy three{.dp = 3, .experts = {.ep = 3}, .batch = {.micro = 1, .global = 9}};
  EXPECT_EQ(refused(mixture(), load_cluster("dgx-a100"), three).reason, "ep 3 does not divide the 8 experts of a layer");
  const Strategy whole{.dp = 2, .tp = 2, .experts = {.ep = 2}, .batch = {.micro = 1, .global = 8}};
  EXPECT_EQ(refused(mixture(), load_cluster("dgx-a100"), whole).reason,
            "tensor-parallel ranks would send the same tokens to the experts: --sequence-parallel");
}

}  // namespace
}  // namespace foreshard::experts_test
