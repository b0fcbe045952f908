// Plans of looped-bfs, interleaved-zb-1p, v-half, v-min, chimera, dualpipe, dualpipe-v, of 1F1B in cells and of lists from a file: sound, and what is
// particular to each.
#include <map>
#include <random>
#include <set>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/plan/ranks.h"
#include "core/strategy/strategy_options.h"
#include "replay/replay.h"
#include "strategy/resolve/schedule_table.h"
#include "strategy/schedule/schedule.h"
#include "tests/how_many.h"
#include "tests/strategy/support_random_strategy.h"

namespace foreshard::lower_schedules_test {

namespace {

const std::vector<Schedule> kNew = {Schedule::LoopedBfs,
                                    Schedule::InterleavedZeroBubble,
                                    Schedule::VHalf,
                                    Schedule::VMin,
                                    Schedule::Chimera,
                                    Schedule::DualPipe,
                                    Schedule::DualPipeV,
                                    Schedule::OneFOneBCells,
                                    Schedule::InterleavedCells,
                                    Schedule::ZeroBubble2p};

Model small_model(int layers, bool tied) {
  Transformer t = small_transformer(layers);
  t.tied_embeddings = tied;
  return {.name = "small", .shape = t};
}

Strategy random_strategy(std::mt19937& random) {
  const auto any = [&](auto... choices) {
    const std::array all{choices...};
    return all[random() % all.size()];
  };
  Strategy s{.dp = any(1, 2), .tp = any(1, 2), .pp = any(2, 4)};
  s.pipeline.schedule = kNew[random() % kNew.size()];
  const ScheduleEntry& entry = schedule_entry(*s.pipeline.schedule);
  s.virtual_stages = entry.chunks == Chunks::One ? 1 : 2;
  s.batch.micro = any(1, 2);
  s.batch.global = s.batch.micro * s.dp * s.pp * any(1, 2, 3);
  s.sequence_parallel = random() % 2 == 0;
  s.zero.stage = entry.routes > 1 ? 0 : entry.cells ? any(0, 1, 2, 3) : any(0, 1);
  s.recompute.kind = any(RecomputeKind::None, RecomputeKind::Selective, RecomputeKind::Full);
  s.precision = any(DType::BF16, DType::F32);
  if (entry.routes == 1) s.optimizer.clip_norm = any(0.0, 1.0);
  s.communication.bucket = {any(std::int64_t{0}, std::int64_t{1000}, std::int64_t{50'000})};
  s.communication.overlap = Overlap{.gradients = random() % 2 == 0, .p2p = random() % 2 == 0, .tp = random() % 2 == 0};
  return s;
}

}  // namespace

TEST(LowerSchedules, EveryPlanIsSound) {
  std::mt19937 random(20261123);
  const Cluster cluster = load_cluster("dgx-a100-x16");
  std::map<Schedule, int> plans;
  for (int round = 0; round < how_many(120, 300); ++round) {
    const Model model = small_model(8, random() % 2 == 0);
    const auto answer = tuned_plan(model, cluster, random_strategy(random), {.check = false});
    if (!std::holds_alternative<Lowered>(answer)) continue;
    const auto& [plan, strategy] = std::get<Lowered>(answer);
    ++plans[*strategy.pipeline.schedule];
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << describe(strategy, defects);
  }
  for (const Schedule schedule : kNew) EXPECT_GT(plans[schedule], how_many(3, 10)) << name_of(schedule);
}

// Deeper pipelines, where transfers of both directions cross on the middle ranks.
TEST(LowerSchedules, NoPipelineStandsStill) {
  const Cluster cluster = load_cluster("dgx-a100-x16");
  for (const Schedule schedule : kNew)
    for (const int pp : some_of<int>({2, 4, 8}, 2))
      for (const int times : some_of<int>({1, 2, 3}, 2))
        for (const bool overlap : {true, false}) {
          Strategy s{.dp = 1, .pp = pp, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = pp * times}};
          if (schedule_entry(schedule).chunks != Chunks::One) s.virtual_stages = 2;
          s.communication.overlap = Overlap{.p2p = overlap};
          if (schedule_entry(schedule).refuse({.p = pp, .m = pp * times, .v = s.virtual_stages})) continue;
          const auto defects = check_plan(lowered(small_model(2 * pp, true), cluster, s).plan);
          ASSERT_TRUE(defects.empty()) << describe(s, defects);
        }
}

// Every stage stands on the ranks r and p-1-r, each with half of the micro-batches, and both sum its gradients.
TEST(LowerSchedules, TwoRoutesHoldEveryStageTwice) {
  for (const Schedule schedule : {Schedule::Chimera, Schedule::DualPipe}) {
    const Plan plan = lowered(small_model(8, false), load_cluster("dgx-a100"),
                              {.dp = 2, .pp = 4, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 16}})
                          .plan;
    EXPECT_EQ(plan.stages, 4);
    EXPECT_EQ(plan.microbatches, 8);
    std::map<int, std::set<int>> microbatches_of_stage, roles_of_stage;
    for (std::size_t r = 0; r < plan.roles.size(); ++r) {
      std::map<int, int> forwards;
      for (const Action& action : plan.roles[r].actions)
        for (const Does& does : action.does)
          if (does.work == Work::F) {
            EXPECT_TRUE(microbatches_of_stage[does.stage].insert(does.microbatch).second);
            roles_of_stage[does.stage].insert(static_cast<int>(r)), ++forwards[does.stage];
          }
      for (const auto& [stage, count] : forwards) EXPECT_EQ(count, 4);
    }
    for (int stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(microbatches_of_stage[stage].size(), 8u);
      EXPECT_EQ(roles_of_stage[stage], (std::set<int>{stage, 3 - stage}));
    }
    int sums = 0;
    for (const Segment& segment : plan.segments)
      for (const Instruction& run : segment.instructions)
        if (const auto* sum = std::get_if<Collective>(&run.what)) {
          const Group& group = plan.groups[sum->group.index()];
          ASSERT_EQ(group.roles.size(), 2u);
          EXPECT_EQ(group.roles[0].value + group.roles[1].value, 3);
          EXPECT_EQ(group.over.size(), 1u);  // and the replicas
          ++sums;
        }
    EXPECT_GT(sums, 0);
  }
}

// The states are cut over the replicas of one rank of the pair. Shards are summed over both ranks.
TEST(LowerSchedules, ZeroOneCutsWhatTwoRoutesHold) {
  const auto plan_of = [](int zero) {
    return lowered(small_model(8, false), load_cluster("dgx-a100"),
                   {.dp = 2,
                    .pp = 4,
                    .pipeline = {.schedule = Schedule::DualPipe},
                    .batch = {.micro = 1, .global = 16},
                    .zero = {.stage = zero}})
        .plan;
  };
  const auto states = [](const Plan& plan) {
    Bytes sum = {};
    for (const Buffer& buffer : plan.roles[0].buffers)
      if (buffer.category == Category::Optimizer) sum += buffer.bytes;
    return sum.value;
  };
  const Plan plan = plan_of(1);
  EXPECT_TRUE(check_plan(plan).empty());
  EXPECT_EQ(2 * states(plan), states(plan_of(0)));
  std::map<CollectiveKind, std::set<std::pair<std::size_t, std::size_t>>> parties;  // roles and axes
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      if (const auto* sum = std::get_if<Collective>(&run.what)) {
        const Group& group = plan.groups[sum->group.index()];
        parties[sum->kind].insert({group.roles.size(), group.over.size()});
      }
  using Parties = decltype(parties)::mapped_type;
  EXPECT_EQ(parties[CollectiveKind::ReduceScatter], (Parties{{0, 1}}));
  EXPECT_EQ(parties[CollectiveKind::AllReduce], (Parties{{2, 0}}));
  EXPECT_EQ(parties[CollectiveKind::AllGather], (Parties{{0, 1}}));
}

// A cell is one action that does a forward and a backward; the sums between tensor-parallel ranks of the one lie beside computes of the other.
TEST(LowerSchedules, CellsHideSums) {
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy s{.dp = 1,
             .tp = 2,
             .pp = 4,
             .virtual_stages = 2,
             .pipeline = {.schedule = Schedule::DualPipeV},
             .batch = {.micro = 1, .global = 16}};
  s.communication.overlap = Overlap{.tp = true};
  const auto time_of = [&](const Strategy& strategy) {
    const Plan plan = lowered(load_model("gpt2-355m"), cluster, strategy).plan;
    const auto defects = check_plan(plan);
    EXPECT_TRUE(defects.empty()) << describe(strategy, defects);
    return makespan_of(plan, cluster);
  };
  const Plan plan = lowered(load_model("gpt2-355m"), cluster, s).plan;
  int cells = 0;
  for (const Action& action : plan.roles[1].actions)
    if (action.does.size() == 3) {
      EXPECT_EQ(action.does[0].work, Work::F);
      EXPECT_EQ(action.does[1].work, Work::I);
      EXPECT_EQ(action.does[2].work, Work::W);
      ++cells;
    }
  EXPECT_EQ(cells, 2 * (16 - 8 + 2) + 2);  // 2 (n - 2H + q + 1) + H - 1 - q with q = 1
  const double with_cells = time_of(s);
  s.pipeline.schedule = Schedule::Listed;
  for (auto list : schedule_entry(Schedule::DualPipeV).lists({.p = 4, .m = 16, .v = 2})) {
    for (ScheduleOp& op : list) op.with_next = false;
    std::string text = to_text(ScheduleLists{list});
    text.pop_back();
    s.pipeline.order.push_back(text);
  }
  EXPECT_LT(with_cells, 0.97 * time_of(s));
}

TEST(LowerSchedules, WhatTwoRoutesCannotDoIsRefused) {
  const Cluster cluster = load_cluster("dgx-a100");
  const auto why = [&](Strategy s) {
    s.pp = 4, s.dp = 2, s.batch = {.micro = 1, .global = 16}, s.pipeline.schedule = Schedule::Chimera;
    return refused(small_model(8, false), cluster, s).reason;
  };
  EXPECT_EQ(why({.zero = {.stage = 2}}), "schedule chimera has every stage on two ranks, ZeRO 2 cuts the gradients of one");
  EXPECT_EQ(why({.optimizer = {.clip_norm = 1}}),
            "schedule chimera has every stage on two ranks, the norm of all gradients would count each of them twice");
  EXPECT_EQ(why({.recompute = {.kind = RecomputeKind::Rotor}}),
            "schedule chimera has every stage on two ranks, recompute rotor plans the runs of one");
}

// The lists of a rule, given as a file, make the plan of the rule; others are played as they stand.
TEST(LowerSchedules, ListsOfAFile) {
  const Cluster cluster = load_cluster("dgx-a100");
  const auto ranks_of = [](const ScheduleLists& lists) {
    std::vector<std::string> ranks;
    for (const auto& list : lists) ranks.push_back(to_text(ScheduleLists{list}));
    for (std::string& rank : ranks) rank.pop_back();  // the line break
    return ranks;
  };
  for (const Schedule schedule : {Schedule::OneFOneB, Schedule::GPipe, Schedule::ZeroBubbleH1, Schedule::ZeroBubbleV}) {
    Strategy s{.dp = 1, .pp = 4, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 8}};
    if (schedule == Schedule::ZeroBubbleV) s.virtual_stages = 2;
    const Plan by_rule = lowered(small_model(8, false), cluster, s).plan;
    s.pipeline.order = ranks_of(schedule_entry(schedule).lists({.p = 4, .m = 8, .v = s.virtual_stages}));
    s.pipeline.schedule = Schedule::Listed;
    EXPECT_EQ(program_hash(lowered(small_model(8, false), cluster, s).plan), program_hash(by_rule)) << name_of(schedule);
  }
  Strategy own{.dp = 1, .pp = 2, .batch = {.micro = 1, .global = 2}};
  set_option(own, "schedule_order", "0F0 0B0 0F1 0B1; 1F0 1B0 1F1 1B1", "test");  // one micro-batch at a time
  EXPECT_EQ(own.pipeline.schedule, Schedule::Listed);
  EXPECT_TRUE(check_plan(lowered(small_model(8, false), cluster, own).plan).empty());
  Strategy cell{.dp = 1, .tp = 2, .pp = 2, .batch = {.micro = 1, .global = 3}};  // of one stage: both need the same scratch
  cell.communication.overlap = Overlap{.tp = true};
  set_option(cell, "schedule_order", "0F0 0F1&0B0 0F2&0B1 0B2; 1F0 1B0 1F1 1B1 1F2 1B2", "test");
  for (const RecomputeKind kind : {RecomputeKind::None, RecomputeKind::Selective, RecomputeKind::Full}) {
    cell.recompute.kind = kind;
    const auto defects = check_plan(lowered(small_model(8, false), cluster, cell).plan);
    EXPECT_TRUE(defects.empty()) << describe(cell, defects);
  }
  const auto why = [&](const std::string& order) {
    Strategy s{.dp = 1, .pp = 2, .batch = {.micro = 1, .global = 2}};
    set_option(s, "schedule_order", order, "test");
    return refused(small_model(8, false), cluster, s).reason;
  };
  EXPECT_EQ(why("0F0 0B0; 1F0 1B0"), "the lists of schedule file do not fit: 1 micro-batch where the strategy has 2");
  EXPECT_EQ(why("0F0 0F1 0B0 0B1 1F0 1F1 1B0 1B1"), "the lists of schedule file do not fit: 1 list for 2 pipeline ranks");
  EXPECT_EQ(why("0F0 0B0 0F1 0B1; 1F1 1F0 1B0 1B1"), "the lists of schedule file deadlock: rank 0 is at 0B0 and waits for 1B0");
}

// Updates between the backwards; as many places for weights as there are versions.
TEST(LowerSchedules, PipelinesWithoutAFlushKeepVersions) {
  const Cluster cluster = load_cluster("dgx-a100");
  for (const Schedule schedule : {Schedule::PipeDream, Schedule::PipeDream2BW, Schedule::PipeMare})
    for (const int dp : {1, 2})
      for (const int pp : {1, 2, 4}) {
        Strategy s{.dp = dp, .pp = pp, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 8 * dp}};
        const Plan plan = lowered(small_model(8, false), cluster, s).plan;
        const auto defects = check_plan(plan);
        ASSERT_TRUE(defects.empty()) << describe(s, defects);
        const ScheduleShape shape = {.p = pp, .m = 8};
        const ScheduleEntry& entry = schedule_entry(schedule);
        EXPECT_EQ(plan.updates, 8 / entry.backwards_per_update(shape));
        for (std::size_t r = 0; r < plan.roles.size(); ++r) {
          for (const Buffer& buffer : plan.roles[r].buffers)
            if (buffer.category == Category::Parameters) {
              EXPECT_EQ(static_cast<int>(buffer.offsets.size()),
                        plan.updates > 1 ? entry.weight_versions(shape, static_cast<int>(r)) : 1)
                  << name_of(schedule) << " pp " << pp << " rank " << r;
            }
          std::map<int, int> forward;
          for (const Action& action : plan.roles[r].actions)
            for (const Does& does : action.does) {
              if (does.work == Work::F) forward[does.microbatch] = does.version;
              if (does.work == Work::B) {
                EXPECT_EQ(does.version, schedule == Schedule::PipeMare ? -1 : forward[does.microbatch]);
              }
            }
        }
      }
}

// Rank r of p: its gradients are late by p-1-r updates, and by one under 2BW, whose rate is therefore never divided.
TEST(LowerSchedules, UpdatesDivideTheirRateByTheDelay) {
  const Cluster cluster = load_cluster("dgx-a100");
  for (const Schedule schedule : {Schedule::OneFOneB, Schedule::PipeDream, Schedule::PipeDream2BW, Schedule::PipeMare})
    for (const OptimizerKind kind : {OptimizerKind::Adam, OptimizerKind::Sgd}) {
      Strategy s{.dp = 2, .pp = 4, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 16}};
      s.optimizer.kind = kind, s.optimizer.delay_annealing = 50;
      Plan plan = lowered(small_model(8, false), cluster, s).plan;
      EXPECT_TRUE(check_plan(plan).empty());
      const bool late = schedule == Schedule::PipeDream || schedule == Schedule::PipeMare;
      for (std::size_t r = 0; r < plan.roles.size(); ++r) {
        const int delay = 3 - static_cast<int>(r);
        const ops::DelayedRate expected = late && delay > 1 ? ops::DelayedRate{delay, 50} : ops::DelayedRate{};
        int updates = 0;
        for (const Action& action : plan.roles[r].actions)
          for (Instruction& instruction : plan.segments[action.segment.index()].instructions) {
            auto* what = std::get_if<Compute>(&instruction.what);
            if (!what || !is<ops::Adam, ops::Sgd>(what->op)) continue;
            ops::DelayedRate& rate =
                kind == OptimizerKind::Adam ? std::get<ops::Adam>(what->op).rate : std::get<ops::Sgd>(what->op).rate;
            EXPECT_EQ(rate, expected) << name_of(schedule) << " rank " << r;
            if (++updates > 1 || !late) continue;
            for (const ops::DelayedRate& wrong : {ops::DelayedRate{delay + 1, 50}, ops::DelayedRate{2, 51}}) {
              const ops::DelayedRate right = std::exchange(rate, wrong);
              const auto defects = check_plan(plan);
              EXPECT_TRUE(!defects.empty() && defects[0].rule == "rate-delay");
              rate = right;
            }
          }
        EXPECT_GT(updates, 0);
      }
    }
}

TEST(LowerSchedules, WhatUpdatesOfStagesCannotDoIsRefused) {
  const Cluster cluster = load_cluster("dgx-a100");
  const auto why = [&](Strategy s, bool tied = false) {
    s.pp = 2, s.dp = 2, s.batch = {.micro = 1, .global = 16}, s.pipeline.schedule = Schedule::PipeDream;
    return refused(small_model(8, tied), cluster, s).reason;
  };
  const std::string pipedream = "schedule pipedream updates each stage by itself, ";
  EXPECT_EQ(why({.zero = {.stage = 1}}), pipedream + "ZeRO 1 gathers parameters once for a step");
  EXPECT_EQ(why({.optimizer = {.clip_norm = 1}}), pipedream + "the norm of all gradients is that of all stages");
  EXPECT_EQ(why({.offload = {.parameters = Space::PinnedHost}}),
            pipedream + "offloaded parameters and gradients come and go once for a step");
  EXPECT_EQ(why({.recompute = {.kind = RecomputeKind::Rotor}}), pipedream + "recompute rotor plans the runs of a step");
  EXPECT_EQ(why({}, true),
            pipedream +
                "a tied embedding takes the gradients of the first and the last stage: the last would wait in each update "
                "until the gradient has passed all stages, and the pipeline would run empty");
}

}  // namespace foreshard::lower_schedules_test
