// Plans of schedules with input and weight gradients apart: sound, with the same work as an undivided backward, and with the
// memory that the split costs.
#include <map>
#include <set>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "strategy/schedule/schedule.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"
#include "tests/strategy/support_random_strategy.h"

namespace foreshard::lower_split_test {

namespace {

const std::vector<Schedule> kSplit = {Schedule::ZeroBubbleH1, Schedule::ZeroBubbleH2, Schedule::ZeroBubbleV};

Strategy split_strategy(RandomChoice& random) {
  Strategy s{.dp = random.one_of({1, 2, 4}), .tp = random.one_of({1, 2, 4}), .pp = random.one_of({1, 2, 4})};
  s.pipeline.schedule = random.one_of({Schedule::ZeroBubbleH1, Schedule::ZeroBubbleH2, Schedule::ZeroBubbleV});
  if (s.pipeline.schedule == Schedule::ZeroBubbleV) s.virtual_stages = 2, s.pp = random.one_of({2, 4});
  s.cp = random.one_of({1, 1, 1, 2});
  s.context = random.one_of({ContextKind::AllGather, ContextKind::Ring, ContextKind::AllToAll});
  s.sequence_parallel = random.toss();
  s.batch.micro = random.one_of({1, 2});
  s.batch.global = s.batch.micro * s.dp * random.one_of({1, 2, 3, 5, 9});
  s.zero.stage = random.one_of({0, 1});
  if (s.dp == 4 && random.toss()) s.zero.group = 2;
  s.recompute.kind = random.one_of(
      {RecomputeKind::None, RecomputeKind::None, RecomputeKind::Selective, RecomputeKind::Full, RecomputeKind::Modules});
  if (s.recompute.kind == RecomputeKind::Full) s.recompute.layers = random.one_of({0, 1});
  if (s.recompute.kind == RecomputeKind::Modules)
    s.recompute.modules =
        random.one_of<std::vector<std::string>>({{"norm"}, {"activation", "norm"}, {"attention", "mlp"}, {"dropout"}});
  s.precision = random.one_of({DType::BF16, DType::F32});
  s.dropout = random.toss() ? 0.1 : 0;
  if (random.toss()) s.attention = AttentionKernel::Unfused;
  s.optimizer.clip_norm = random.one_of({0.0, 1.0});
  s.communication.bucket = {random.one_of<std::int64_t>({0, 1000, 50'000, 400'000})};
  s.communication.overlap =
      Overlap{.gradients = random.toss(), .parameters = random.toss(), .p2p = random.toss(), .tp = random.toss()};
  return s;
}

}  // namespace

TEST(LowerSplit, EveryPlanIsSound) {
  RandomChoice random(20261121);
  const Cluster cluster = load_cluster("dgx-a100-x16");
  int plans = 0;
  for (int round = 0; round < how_many(100, 250); ++round) {
    const Model model = random_model(random);
    Strategy strategy = split_strategy(random);
    strategy.communication.transfers = round % 2 == 0 ? Transfers::Whole : Transfers::Split;
    const auto answer = tuned_plan(model, cluster, strategy, {.check = false});
    if (!std::holds_alternative<Lowered>(answer)) continue;
    ++plans;
    const auto defects = check_plan(std::get<Lowered>(answer).plan);
    ASSERT_TRUE(defects.empty()) << describe(std::get<Lowered>(answer).strategy, defects);
  }
  EXPECT_GT(plans, how_many(60, 150));
}

// Deeper pipelines, where transfers of both directions cross on the middle ranks.
TEST(LowerSplit, NoPipelineStandsStill) {
  const Cluster cluster = load_cluster("dgx-a100-x16");
  for (const Schedule schedule : kSplit)
    for (const int pp : {2, 3, 4, 8})
      for (const int m : some_of<int>({1, 2, pp, 2 * pp - 1, 3 * pp + 1}, 2)) {
        Model model = load_model("gpt2-124m");
        std::get<Transformer>(model.shape).layers = 2 * pp;
        Strategy s{.dp = 1, .pp = pp, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = m}};
        if (schedule == Schedule::ZeroBubbleV) s.virtual_stages = 2;
        for (const bool overlap : {true, false}) {
          s.communication.overlap = Overlap{.p2p = overlap};
          const auto defects = check_plan(lowered(model, cluster, s).plan);
          ASSERT_TRUE(defects.empty()) << describe(s, defects);
        }
      }
}

// The two halves together do what an undivided backward does: equal FLOPs, by phase.
TEST(LowerSplit, TheHalvesMakeUpABackward) {
  const auto work = [](Schedule schedule) {
    const Plan plan = lowered("gpt2-124m", "dgx-a100",
                              {.tp = 2,
                               .pp = 4,
                               .sequence_parallel = true,
                               .pipeline = {.schedule = schedule},
                               .batch = {.micro = 1, .global = 8}})
                          .plan;
    std::map<Phase, double> flops;
    for (const Role& role : plan.roles)
      for (const Action& action : role.actions)
        for (const Instruction& run : plan.segments[action.segment.index()].instructions)
          if (const auto* what = std::get_if<Compute>(&run.what)) flops[what->phase] += what->flops.value;
    return flops;
  };
  EXPECT_EQ(work(Schedule::OneFOneB), work(Schedule::ZeroBubbleH1));
}

// One kernel makes the gradients of an attention with sinks, those of the sinks included. It has the four products of any attention's
// gradients, twice the forward's, and so have gpt-oss's layers.
TEST(LowerSplit, TheBackwardOfAnAttentionWithSinksHasFourProducts) {
  Model model = load_model("gpt-oss-20b");
  std::get<Transformer>(model.shape).layers = 2;
  const Plan plan =
      lowered(model, load_cluster("dgx-h100"), {.dp = 8, .experts = {.ep = 8}, .batch = {.micro = 1, .global = 8}}).plan;
  double forward = 0, backward = 0;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      if (const auto* what = std::get_if<Compute>(&run.what); what && is<ops::Attention>(what->op))
        (what->phase == Phase::Forward ? forward : backward) += what->flops.value;
  EXPECT_GT(forward, 0);
  EXPECT_DOUBLE_EQ(backward, 2 * forward);
}

// The kernel that makes both gradients of a norm reads its input and the gradient of its result and writes that of its input; of a layer
// it adds to what came along the residual stream, which it reads as well.
TEST(LowerSplit, TheBackwardOfANormHasThreePasses) {
  const Plan plan = lowered("llama-2-7b", "dgx-a100", {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 512}}).plan;
  const std::int64_t pass = 512LL * 4096 * 2;
  std::int64_t three = 0, four = 0, other = 0;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      if (const auto* what = std::get_if<Compute>(&run.what); what && is<ops::Norm>(what->op) && what->phase == Phase::Backward)
        (what->traffic.value == 3 * pass ? three : what->traffic.value == 4 * pass ? four : other) += 1;
  EXPECT_EQ(three, 1);
  EXPECT_EQ(four, 64);
}

// Bytes per token, sample and hidden element of a GPT layer without dropout and with a flash kernel (h = 12 heads of 64):
// of the layer's 34 sbh without its dropout masks, 14 (inputs of the four products: 2 + 2 + 2 + 8) wait for the weight gradients,
// and 18 of gradients come to them (6 + 2 + 8 + 2): Qi et al. 2024, table 1, W: 32.
TEST(LowerSplit, WhatWaitsForTheWeightGradients) {
  Model model = load_model("gpt2-124m");
  std::get<Transformer>(model.shape).layers = 4;
  const Plan plan =
      lowered(model, load_cluster("dgx-a100"),
              {.dp = 1, .pp = 4, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.micro = 2, .global = 16}})
          .plan;
  const double sbh = 1024.0 * 2 * 768;
  const Role& role = plan.roles[1];
  std::map<BufferId, int> live, most;  // blocks of a buffer at one time
  std::set<BufferId> late;             // released when weight gradients are computed
  for (const Action& action : role.actions)
    for (const Instruction& run : plan.segments[action.segment.index()].instructions) {
      for (const Block& block : run.acquires) most[block.buffer] = std::max(most[block.buffer], ++live[block.buffer]);
      for (const Block& block : run.releases) {
        --live[block.buffer];
        if (!action.does.empty() && action.does.front().work == Work::W) late.insert(block.buffer);
      }
    }
  double kept = 0, deferred = 0;
  for (const BufferId id : late) {
    const Buffer& buffer = role.buffers[id.index()];
    if (buffer.category != Category::Activations || buffer.name.starts_with("input")) continue;
    const bool gradient = buffer.name.find(".kept") != std::string::npos;
    (gradient ? deferred : kept) += static_cast<double>(buffer.bytes.value) / sbh;
    if (gradient) {  // rank 1 owes one, and has one in hand
      EXPECT_EQ(most[id], 2) << buffer.name;
    }
  }
  EXPECT_DOUBLE_EQ(kept, 14);
  EXPECT_NEAR(deferred, 18, 2.01);  // and the gradient that came, when it is copied
}

TEST(LowerSplit, Refusals) {
  const Model model = load_model("gpt2-124m");
  const Cluster cluster = load_cluster("dgx-a100");
  const Infeasible cut = refused(model, cluster,
                                 {.dp = 2,
                                  .pp = 2,
                                  .pipeline = {.schedule = Schedule::ZeroBubbleH1},
                                  .batch = {.micro = 1, .global = 8},
                                  .zero = {.stage = 2}});
  EXPECT_EQ(cut.reason, "schedule zb-h1 needs unsharded gradients, which ZeRO 2 shards");
  const Infeasible one = refused(
      model, cluster, {.dp = 1, .pp = 2, .pipeline = {.schedule = Schedule::ZeroBubbleV}, .batch = {.micro = 1, .global = 8}});
  EXPECT_EQ(one.reason, "schedule zb-v needs exactly 2 virtual stages per rank, found 1");
  EXPECT_EQ(one.would_help, (std::vector<std::string>{"--virtual-stages 2", "--schedule zb-h1"}));
  const Infeasible group = refused(model, cluster,
                                   {.dp = 1,
                                    .pp = 2,
                                    .virtual_stages = 2,
                                    .pipeline = {.schedule = Schedule::ZeroBubbleV, .microbatch_group = 4},
                                    .batch = {.micro = 1, .global = 8}});
  EXPECT_EQ(group.reason, "schedule zb-v has no groups of micro-batches, found groups of 4");
}

// A plan in which a weight gradient is dropped, or comes before its input gradient, is found.
TEST(LowerSplit, MutationsAreFound) {
  const Plan plan =
      lowered("gpt2-124m", "dgx-a100",
              {.dp = 1, .pp = 4, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.micro = 1, .global = 8}})
          .plan;
  const auto rules = [](const Plan& broken) {
    std::set<std::string> names;
    for (const PlanDefect& defect : check_plan(broken)) names.insert(defect.rule);
    return names;
  };
  const auto position = [&](Work work) {
    const auto& actions = plan.roles[2].actions;
    for (std::size_t a = 0; a < actions.size(); ++a)
      if (!actions[a].does.empty() && actions[a].does[0].work == work && actions[a].does[0].microbatch == 3) return a;
    return std::size_t{0};
  };
  ASSERT_TRUE(rules(plan).empty());
  Plan dropped = plan;
  dropped.roles[2].actions.erase(dropped.roles[2].actions.begin() + static_cast<std::ptrdiff_t>(position(Work::W)));
  EXPECT_TRUE(rules(dropped).contains("work-missing"));
  EXPECT_TRUE(rules(dropped).contains("double-acquire") || rules(dropped).contains("life-not-closed"));
  Plan swapped = plan;
  std::swap(swapped.roles[2].actions[position(Work::W)], swapped.roles[2].actions[position(Work::I)]);
  EXPECT_TRUE(rules(swapped).contains("work-order"));
  EXPECT_GT(rules(swapped).size(), 1u);  // and its blocks are used outside their lives
}

}  // namespace foreshard::lower_split_test
