// Stages with degrees of their own: the order of turns, who meets whom, and that every plan is sound.
#include <algorithm>
#include <map>
#include <random>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/plan/ranks.h"
#include "strategy/schedule/stage_turns.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::stages_test {
namespace {

Model small(bool tied, int layers = 4) {
  Transformer t = small_transformer(layers);
  t.tied_embeddings = tied;
  return {.name = "small", .shape = t};
}

Strategy staged(const std::string& stages, std::int64_t batch) {
  return {.stages = parse_stages(stages, "test"), .batch = {.micro = 1, .global = batch, .seq = 64}};
}

std::string words(const std::vector<ScheduleOp>& list) {
  std::string text;
  for (const ScheduleOp& op : list)
    text += (text.empty() ? "" : " ") + std::string(op.work == Work::F ? "F" : "B") + std::to_string(op.microbatch);
  return text;
}

}  // namespace

// With as many replicas on every stage: p - r, as 1F1B. Else what the stages behind take, in turns of this stage: two replicas before
// one keep (2 + 1) / 2 -> 2, one before two (1 + 2) / 1 = 3.
TEST(StageTurns, WhatAReplicaKeeps) {
  EXPECT_EQ(kept_in_turn({2, 2, 2}, 0), 3);
  EXPECT_EQ(kept_in_turn({2, 2, 2}, 1), 2);
  EXPECT_EQ(kept_in_turn({2, 2, 2}, 2), 1);
  EXPECT_EQ(kept_in_turn({2, 1}, 0), 2);
  EXPECT_EQ(kept_in_turn({1, 2}, 0), 3);
  EXPECT_EQ(kept_in_turn({8, 4, 1}, 0), 2);  // 13 / 8
  EXPECT_EQ(kept_in_turn({8, 4, 1}, 1), 2);  // 5 / 4
}

TEST(StageTurns, ListsOfTwoReplicasBeforeOne) {
  const std::vector<StageTurns> turns = stage_turns(Schedule::OneFOneB, {2, 1}, 8);
  EXPECT_EQ(words(turns[0].list), "F0 F1 B0 F2 B1 F3 B2 B3");  // four of eight micro-batches each, two kept
  EXPECT_EQ(words(turns[1].list), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
  EXPECT_EQ(turns[0].input_slots, 0);
  EXPECT_EQ(turns[1].input_slots, 4);     // two replicas keep two each
  EXPECT_EQ(turns[0].gradient_slots, 2);  // one sender, and one more
  EXPECT_EQ(words(stage_turns(Schedule::GPipe, {2, 1}, 4)[0].list), "F0 F1 B0 B1");
}

TEST(StageTurns, EqualReplicasHaveTheListsOfOneFOneB) {
  for (const int p : {1, 2, 3, 5})
    for (const int d : {1, 2, 4})
      for (const Schedule schedule : {Schedule::OneFOneB, Schedule::GPipe}) {
        const auto turns = stage_turns(schedule, std::vector<int>(static_cast<std::size_t>(p), d), 12 * d);
        const ScheduleLists lists = schedule_entry(schedule).lists({.p = p, .m = 12});
        for (int s = 0; s < p; ++s)
          EXPECT_EQ(turns[static_cast<std::size_t>(s)].list, lists[static_cast<std::size_t>(s)]) << p << " " << d << " " << s;
      }
}

// Four ranks of the middle stage: factors 2 and 2; the last stage has the first of them.
TEST(Stages, RanksAxesAndGroups) {
  const Plan plan = lowered(small(false), load_cluster("dgx-a100"), staged("1:2x1,2:1x4,1:1x2", 4)).plan;
  ASSERT_EQ(plan.axes.size(), 2u);
  EXPECT_EQ(plan.axes[0], (Axis{.name = "tp", .dense = DenseKind::Tensor, .size = 2}));
  EXPECT_EQ(plan.axes[1], (Axis{.name = "tp.2", .dense = DenseKind::Tensor, .size = 2}));
  ASSERT_EQ(plan.roles.size(), 4u);
  EXPECT_EQ(plan.roles[0].name, "stage 0, replica 0");
  EXPECT_EQ(plan.roles[1].name, "stage 0, replica 1");
  EXPECT_EQ(plan.roles[2].name, "stage 1");
  EXPECT_EQ(plan.roles[2].axes, (std::vector<AxisId>{{1}, {0}}));
  EXPECT_EQ(plan.roles[3].axes, (std::vector<AxisId>{{0}}));
  EXPECT_EQ(plan.stages, 3);
  EXPECT_EQ(plan.microbatches, 4);
  const Ranks ranks(plan);
  EXPECT_EQ(ranks.count(), 8);
  for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(ranks.device({rank}).value, rank);  // stage by stage
}

namespace {

struct Transfer {
  RoleId from = {}, to = {};
  bool operator==(const Transfer&) const = default;
};

// Who sends what of a micro-batch forward, by the exchanges of both ends.
std::map<int, std::vector<Transfer>> forward_transfers(const Plan& plan) {
  std::map<int, std::vector<Transfer>> all;
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(plan.roles.size()); ++r)
    for (const Action& action : plan.roles[RoleId{r}.index()].actions)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions)
        if (const auto* exchange = std::get_if<Exchange>(&run.what); exchange && exchange->to && exchange->tag == "forward.0") {
          EXPECT_EQ(action.does.front().work, Work::F);
          all[action.does.front().microbatch].push_back({{r}, {r + exchange->to->role_shift}});
        }
  return all;
}

}  // namespace

// Roles 0, 1 | 2, 3, 4 | 5: micro-batch 4 goes from replica 0 to replica 1 to the last stage.
TEST(Stages, MicroBatchesGoToTheReplicaWhoseTurnItIs) {
  const Plan plan = lowered(small(false), load_cluster("dgx-a100"), staged("1:2x1,2:3x1,1:1x1", 6)).plan;
  const auto transfers = forward_transfers(plan);
  ASSERT_EQ(transfers.size(), 6u);
  for (const auto& [m, list] : transfers)
    EXPECT_EQ(list, (std::vector<Transfer>{{{m % 2}, {2 + m % 3}}, {{2 + m % 3}, {5}}})) << m;
}

// One stage of eight replicas is data parallelism over eight ranks: the same arena.
TEST(Stages, OneStageIsDataParallelism) {
  const Plan plan = lowered(small(true), load_cluster("dgx-a100"), staged("4:8x1", 16)).plan;
  const Strategy s{.dp = 8, .batch = {.micro = 1, .global = 16, .seq = 64}};
  const Plan same = lowered(small(true), load_cluster("dgx-a100"), s).plan;
  ASSERT_EQ(plan.roles.size(), 8u);
  for (const Role& role : plan.roles) EXPECT_EQ(arena_bytes(role, Space::Device), arena_bytes(same.roles[0], Space::Device));
}

TEST(Stages, RandomOnesAreSound) {
  std::mt19937 random(77);
  const Cluster cluster = load_cluster("dgx-a100-x4");
  const auto any = [&](std::initializer_list<int> list) { return list.begin()[random() % list.size()]; };
  int handed = 0;
  for (int done = 0; done < 150;) {
    const bool tied = any({0, 1}) != 0;
    Strategy s{.batch = {.micro = 1, .global = any({12, 24, 48}), .seq = 64}};
    const int count = any({1, 2, 3, 4, 5});
    for (int stage = 0; stage < count; ++stage)
      s.stages.push_back({any({1, 1, 2}), any({1, 1, 2, 3, 4, 6}), any({1, 1, 2, 4, 8})});
    if (tied) s.stages.back().tp = s.stages.front().tp;
    int ranks = 0, layers = 0;
    for (const StageDegrees& stage : s.stages) ranks += stage.dp * stage.tp, layers += stage.layers;
    if (ranks > 32) continue;
    s.pipeline.schedule = any({0, 1, 1}) ? Schedule::OneFOneB : Schedule::GPipe;
    s.communication.bucket = {any({0, 1000, 50'000})};
    s.recompute.kind = any({0, 1}) ? RecomputeKind::None : any({0, 1}) ? RecomputeKind::Full : RecomputeKind::Selective;
    s.communication.overlap.emplace();
    for (const OverlapPart& part : kOverlapParts) *s.communication.overlap.*part.field = any({0, 1}) != 0;
    const Plan plan = lowered(small(tied, layers), cluster, s).plan;
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << to_text(s.stages) << " " << name_of(*s.pipeline.schedule) << ": " << defects[0].rule << " "
                                 << defects[0].where << " " << defects[0].what;
    handed += std::ranges::any_of(plan.groups, [](const Group& group) { return group.name == "hand over"; });
    ++done;
  }
  EXPECT_GT(handed, 50);
}

// Every sum over replicas and between the copies of the embedding is missed when it is left out.
TEST(Stages, SumsThatAreLeftOutAreNoticed) {
  const Plan plan = lowered(small(true), load_cluster("dgx-a100"), staged("1:2x1,2:2x2,1:2x1", 4)).plan;
  int dropped = 0;
  for (std::size_t s = 0; s < plan.segments.size(); ++s)
    for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i) {
      const auto* sum = std::get_if<Collective>(&plan.segments[s].instructions[i].what);
      if (!sum || sum->kind != CollectiveKind::AllReduce || sum->combine == Combine::Max) continue;
      Plan mutant = plan;
      mutant.segments[s].instructions[i].what = Mark{};
      EXPECT_FALSE(check_plan(mutant).empty()) << plan.segments[s].instructions[i].name;
      ++dropped;
    }
  EXPECT_GT(dropped, 10);
}

// What was resolved says the same again.
TEST(Stages, AResolvedStrategyIsTakenBack) {
  const Lowered first = lowered(small(true), load_cluster("dgx-a100"), staged("1:2x1,3:1x1", 4));
  EXPECT_EQ(first.strategy.pp, 2);
  EXPECT_EQ(first.strategy.pipeline.layer_split, "1,3");
  const Lowered again = lowered(small(true), load_cluster("dgx-a100"), parse_strategy(to_json(first.strategy), "test"));
  EXPECT_EQ(program_hash(again.plan), program_hash(first.plan));
}

TEST(Stages, RefusalsSayWhy) {
  const Cluster cluster = load_cluster("dgx-a100");
  const auto why = [&](const std::string& stages, auto change, std::int64_t batch = 12, bool tied = false) {
    Strategy s = staged(stages, batch);
    change(s);
    return refused(small(tied), cluster, s).reason;
  };
  const auto as_is = [](Strategy&) {};
  EXPECT_EQ(why("2:4x2,2:1x1", as_is), "stages 2:4x2,2:1x1 are 9 ranks, but dgx-a100 has 8 GPUs");
  EXPECT_EQ(why("2:1x2,2:1x3", as_is), "tensor-parallel degree 2 of one stage does not divide 3 of another");
  EXPECT_EQ(why("2:1x1,2:1x2", as_is, 12, true),
            "the first stage has tp 1, the last one tp 2: the embedding that they share is cut in as many parts on both");
  EXPECT_EQ(why("2:5x1,2:1x1", as_is), "12 micro-batches cannot be dealt out to 5 replicas of a stage evenly");
  EXPECT_EQ(why("2:1x1,3:1x1", as_is), "layer split \"2,3\" adds up to 5 layers, the model has 4");
  EXPECT_EQ(why("2:1x1,2:1x1", [](Strategy& s) { s.pipeline.layer_split = "1,3"; }),
            "layer split \"1,3\" beside stages of 2,2 layers");
  const std::string beside = "stages that are said one by one have degrees of their own: found ";
  EXPECT_EQ(why("4:2x1", [](Strategy& s) { s.tp = 2; }), beside + "tp 2 beside them");
  EXPECT_EQ(why("4:2x1", [](Strategy& s) { s.dp = 2; }), beside + "dp 2 beside them");
  EXPECT_EQ(why("4:2x1", [](Strategy& s) { s.pp = 2; }), beside + "pp 2 beside them");
  const std::string none = "stages that are said one by one cannot have ";
  EXPECT_EQ(why("4:2x1", [](Strategy& s) { s.zero.stage = 1; }), none + "ZeRO 1");
  EXPECT_EQ(why("4:2x1", [](Strategy& s) { s.cp = 2; }), none + "context parallelism");
  EXPECT_EQ(why("4:1x2", [](Strategy& s) { s.sequence_parallel = true; }), none + "sequence parallelism");
  EXPECT_EQ(why("4:1x2", [](Strategy& s) { s.virtual_stages = 2; }), none + "virtual stages");
  EXPECT_EQ(why("4:1x2", [](Strategy& s) { s.optimizer.clip_norm = 1; }), none + "clipping by the global norm");
  EXPECT_EQ(why("4:1x2", [](Strategy& s) { s.optimizer.loss_scale = 0; }), none + "a dynamic loss scale");
  EXPECT_EQ(why("4:1x2", [](Strategy& s) { s.pipeline.schedule = Schedule::ZeroBubbleH1; }), none + "schedule zb-h1");
  EXPECT_EQ(why("4:1x2", [](Strategy& s) { s.recompute = parse_recompute("auto", ""); }), none + "recompute auto");
  EXPECT_EQ(why("4:1x2", [](Strategy& s) { s.framework = "megatron"; }), none + "framework megatron");
  EXPECT_EQ(why("4:1x2",
                [](Strategy& s) {
                  s.placement = {DenseKind::Data, DenseKind::Tensor, DenseKind::Context, std::nullopt};
                }),
            none + "another placement than stage by stage");
  EXPECT_EQ(refused(load_model("vgg-16"), cluster, {.stages = {{16, 1, 2}}, .batch = {.global = 8}}).reason,
            "vgg-16 is a layer list: its stages cannot have tp 2");
}

}  // namespace foreshard::stages_test
