// What search finds, tells and leaves out.
#include "strategy/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <thread>

#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "strategy/search/search_framework.h"
#include "strategy/search/search_kept.h"
#include "strategy/search/search_relax.h"
#include "strategy/tune/tune.h"
#include "tests/strategy/support_search.h"

namespace foreshard {

TEST(Search, ThreadsDoNotChangeTheAnswer) {
  const Model model = layers("gpt2-355m", 4);
  const Cluster cluster = workstation(4);
  SearchOptions one = options(8, 512), three = one;
  three.threads = 3;
  const auto a = std::get<SearchResult>(search(model, cluster, one)), b = std::get<SearchResult>(search(model, cluster, three));
  ASSERT_EQ(a.ranked.size(), b.ranked.size());
  for (std::size_t i = 0; i < a.ranked.size(); ++i) EXPECT_EQ(a.ranked[i].point, b.ranked[i].point) << i;
  EXPECT_EQ(a.enumerated, b.enumerated);
}

// Nor does it what is screened where every GPU has a NIC of its own: all that is kept has the same score.
TEST(Search, ThreadsDoNotChangeWhatIsScreened) {
  const Model model = load_model("llama-3-8b");
  const Cluster cluster = load_cluster("dgx-h100");
  SearchOptions one = options(16, 2048), three = one;
  one.base.dp = 2, one.fixed = {"dp", "micro_batch", "sequence_parallel"}, one.refine = 16;
  three = one, three.threads = 3;
  const auto a = std::get<SearchResult>(search(model, cluster, one)), b = std::get<SearchResult>(search(model, cluster, three));
  ASSERT_EQ(a.ranked.size(), b.ranked.size());
  for (std::size_t i = 0; i < a.ranked.size(); ++i) EXPECT_EQ(a.ranked[i].screened.time, b.ranked[i].screened.time) << i;
  EXPECT_EQ(a.refined, b.refined);
}

// Nor where stages share NICs; nor does it matter there what is passed over.
TEST(Search, FindsTheSameWhereStagesShareNics) {
  const Model model = layers("gpt2-355m", 8);
  const Cluster cluster = load_cluster("eth25-a100-x2");
  SearchOptions one = options(32, 512);
  one.fixed = {"overlap", "zero_group", "sequence_parallel"}, one.refine = 16, one.stages = false;
  SearchOptions three = one, all = one;
  three.threads = 3, all.prune = false;
  const auto a = std::get<SearchResult>(search(model, cluster, one)), b = std::get<SearchResult>(search(model, cluster, three)),
             c = std::get<SearchResult>(search(model, cluster, all));
  ASSERT_EQ(a.ranked.size(), b.ranked.size());
  for (std::size_t i = 0; i < a.ranked.size(); ++i) {
    EXPECT_EQ(a.ranked[i].point, b.ranked[i].point) << i;
    EXPECT_EQ(a.ranked[i].screened.time, b.ranked[i].screened.time) << i;
  }
  EXPECT_EQ(a.refined, b.refined);
  EXPECT_GT(a.pruned.redone, 0);
  EXPECT_EQ(c.pruned.redone, 0);
  EXPECT_TRUE(std::ranges::any_of(a.ranked, [](const Candidate& each) { return each.point.pp > 1; }));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(a.ranked[i].score, c.ranked[i].score) << i;
}

// What a search passes over as slower for sure is in a sample.
TEST(Search, ASampleIsOfAllThatFits) {
  SearchOptions some = options(4, 256);
  some.fixed = {"overlap", "zero", "zero_group", "placement"}, some.sample = 1000;
  const auto sampled = std::get<SearchResult>(search(layers("gpt2-355m", 4), workstation(4), some));
  some.sample = 0;
  const auto searched = std::get<SearchResult>(search(layers("gpt2-355m", 4), workstation(4), some));
  EXPECT_GT(searched.pruned.redone, 0);
  EXPECT_EQ(sampled.pruned.redone, 0);
  const auto redone = std::ranges::count_if(
      sampled.sample, [](const Candidate& candidate) { return candidate.point.recompute == RecomputeKind::Selective; });
  const auto kept = std::ranges::count_if(
      sampled.sample, [](const Candidate& candidate) { return candidate.point.recompute == RecomputeKind::None; });
  EXPECT_EQ(redone, kept);
  EXPECT_GT(redone, 10);
}

// Every strategy that is ranked was told before, whoever refined it, and more: variants of the best that were worse.
TEST(Search, TellsWhatItFindsByTheCallingThread) {
  SearchOptions three = options(8, 512);
  three.threads = 3, three.refine = 6;
  std::vector<Strategy> told;
  const std::thread::id me = std::this_thread::get_id();
  three.found = [&](const Candidate& candidate) {
    EXPECT_EQ(std::this_thread::get_id(), me);
    told.push_back(candidate.strategy);
  };
  const auto result = std::get<SearchResult>(search(layers("gpt2-355m", 4), workstation(4), three));
  ASSERT_GE(told.size(), result.ranked.size());
  EXPECT_EQ(static_cast<std::int64_t>(told.size()), result.refined);  // all of these fit
  for (const Candidate& candidate : result.ranked) EXPECT_GE(std::count(told.begin(), told.end(), candidate.strategy), 1);
}

// Whoever forks after a search takes only his own thread along, so none may be left that holds a lock.
TEST(Search, LeavesNoThreadBehind) {
  const auto count = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = count();
  SearchOptions four = options(8, 512);
  four.threads = 4, four.refine = 4;
  for (int again = 0; again < 2; ++again) {
    const auto answer = search(layers("gpt2-355m", 4), workstation(4), four);
    EXPECT_TRUE(std::holds_alternative<SearchResult>(answer));
    EXPECT_EQ(count(), before);
  }
}

// Memory for about half of what whole layers keep: operators made again inside layers beat layers made again.
TEST(Search, SchedulesInsideLayersAreTriedWhereLayersAreRedone) {
  SearchOptions tight = options(64, 1024);
  tight.base.batch.micro = 16, tight.base.device_memory.reserve = 0.73;
  tight.fixed = {"micro_batch"}, tight.best = false;
  const Model model = load_model("gpt2-355m");
  const auto with = search(model, workstation(4), tight);
  tight.schedules = false;
  const auto without = search(model, workstation(4), tight);
  ASSERT_TRUE(std::holds_alternative<SearchResult>(with) && std::holds_alternative<SearchResult>(without));
  const Candidate& layered = std::get<SearchResult>(without).ranked.front();
  const Candidate& best = std::get<SearchResult>(with).ranked.front();
  ASSERT_NE(layered.point.recompute, RecomputeKind::None);
  EXPECT_EQ(best.point.recompute, RecomputeKind::Graph);
  EXPECT_LT(best.score, layered.score);
  tight.schedules = true, tight.base.framework = "megatron";
  const auto megatron = search(model, workstation(4), tight);
  ASSERT_TRUE(std::holds_alternative<SearchResult>(megatron));
  for (const Candidate& c : std::get<SearchResult>(megatron).ranked) EXPECT_NE(c.point.recompute, RecomputeKind::Graph);
  tight.base.recompute = parse_recompute("full:1,0", "test"), tight.fixed = {"micro_batch", "recompute"};
  const auto named = search(model, workstation(4), tight);
  EXPECT_NE(std::get<Infeasible>(named).reason.find("its stages recompute alike"), std::string::npos);
}

// With room for everything the best recomputation is none, whether it may be chosen or has to be.
TEST(Search, BestRecomputationIsNoneWhereEverythingFits) {
  SearchOptions roomy = options(8, 512);
  const Model model = layers("gpt2-355m", 4);
  const auto any = search(model, workstation(4), roomy);
  roomy.base.recompute = parse_recompute("best", "test"), roomy.fixed = {"recompute"};
  const auto fixed = search(model, workstation(4), roomy);
  ASSERT_TRUE(std::holds_alternative<SearchResult>(any) && std::holds_alternative<SearchResult>(fixed));
  const Candidate& best = std::get<SearchResult>(fixed).ranked.front();
  EXPECT_DOUBLE_EQ(best.score, std::get<SearchResult>(any).ranked.front().score);
}

TEST(Search, FixedOptionsStay) {
  SearchOptions fixed = options(8, 512);
  fixed.base.tp = 2, fixed.base.zero.stage = 1;
  fixed.fixed = {"tp", "zero"};
  const auto answer = search(layers("gpt2-355m", 4), workstation(4), fixed);
  for (const Candidate& c : std::get<SearchResult>(answer).ranked) {
    EXPECT_EQ(c.point.tp, 2);
    EXPECT_EQ(c.point.zero, 1);
  }
}

// Layer lists have no screen: all that can be is refined, and by cost alone ResNet-50 is trained data-parallel.
TEST(Search, LayerListsAreRefinedWhole) {
  const auto answer = search(load_model("resnet-50"), workstation(4), options(32, 0));
  const auto& result = std::get<SearchResult>(answer);
  EXPECT_GE(result.refined, result.enumerated - result.pruned.shape);  // and the best with stages by their own times
  EXPECT_EQ(result.ranked.front().point.dp, 4);
  bool longer_first = false;  // stages as long as their own layers take: 18 of them are 9 and 9 no more
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    const Candidate& each = result.ranked[i];
    longer_first |= each.point.pp == 2 && each.strategy.pipeline.layer_split != "9x2";
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(same_family(result.ranked[j].point, each.point)) << "a row per family";
  }
  EXPECT_TRUE(longer_first);
}

// Eight fully connected layers of 8192 x 8192 and eight samples: a replica sums a gigabyte of gradients, a stage sends 128 KiB.
TEST(Search, LargeLayersWithFewSamplesAreSplitByTheModel) {
  std::string text = R"({"model_type": "foreshard-layers", "source": "test", "input": [8192], "classes": 0, "layers": [)";
  for (int i = 0; i < 8; ++i)
    text += (i > 0 ? "," : "") + std::string(R"({"name": "fc)") + std::to_string(i) +
            R"(", "op": "linear", "features": 8192, "bias": false})";
  const Model model = parse_model(text + "]}", "test");
  for (const char* name : {"dgx-a100", "pcie-a100-8", "eth25-a100"}) {
    const auto answer = search(model, load_cluster(name), options(8, 0));
    ASSERT_TRUE(std::holds_alternative<SearchResult>(answer)) << std::get<Infeasible>(answer).reason;
    EXPECT_EQ(std::get<SearchResult>(answer).ranked.front().point.dp, 1) << name;
    EXPECT_EQ(std::get<SearchResult>(answer).ranked.front().point.pp, 8) << name;
    SearchOptions large = options(256, 0);
    large.base.batch.micro = 32, large.fixed = {"micro_batch", "overlap"};
    const auto images = search(load_model("resnet-50"), load_cluster(name), large);
    EXPECT_EQ(std::get<SearchResult>(images).ranked.front().point.dp, 8) << name;
  }
}

// Six layers on four stages: the ends have one.
TEST(Search, StagesThatDoNotDivideTheLayersAreNearlyEven) {
  EXPECT_EQ(nearly_even_split(6, 4), "1,2x2,1");
  EXPECT_EQ(nearly_even_split(7, 4), "2,2x2,1");
  EXPECT_EQ(nearly_even_split(9, 4), "2,2,3,2");
  EXPECT_EQ(nearly_even_split(3, 2), "2,1");
  for (int layers = 2; layers <= 40; ++layers)
    for (int stages = 2; stages <= layers; ++stages) {
      const std::vector<int> split = parse_layer_split(nearly_even_split(layers, stages), "test");
      ASSERT_EQ(std::accumulate(split.begin(), split.end(), 0), layers);
      ASSERT_EQ(split.size(), static_cast<std::size_t>(stages));
      const auto kinds = layers_by_kind(layers, stages);
      EXPECT_EQ(split.front(), kinds[0]);
      EXPECT_EQ(split.back(), kinds[2]);
      const int middle = stages > 2 ? *std::max_element(split.begin() + 1, split.end() - 1) : kinds[1];
      EXPECT_EQ(middle, kinds[1]);
    }
}

TEST(Search, AFrameworkRunsWhatIsLeft) {
  SearchOptions narrow = options(8, 512);
  for (const char* name : {"megatron", "deepspeed", "torchtitan", "fsdp2"}) {
    narrow.base.framework = name;
    const auto answer = search(layers("gpt2-355m", 4), workstation(4), narrow);
    ASSERT_TRUE(std::holds_alternative<SearchResult>(answer)) << name;
    const Runner runner = find_runner(name).value();
    for (const Candidate& c : std::get<SearchResult>(answer).ranked)
      EXPECT_EQ(refused_by(runner, c.point, c.strategy), nullptr) << name;
    EXPECT_GT(std::get<SearchResult>(answer).pruned.framework, 0) << name;
  }
  narrow.base.framework = "fsdp2";
  narrow.base.tp = 2, narrow.fixed = {"tp"};
  const auto none = search(layers("gpt2-355m", 4), workstation(4), narrow);
  EXPECT_NE(std::get<Infeasible>(none).reason.find("only data parallelism"), std::string::npos);
  narrow.base.framework = "torchtitan";  // the reason is what was asked for, not what most strategies meet first
  narrow.base.dropout = 0.1;
  const auto dropped = search(layers("gpt2-355m", 4), workstation(4), narrow);
  EXPECT_NE(std::get<Infeasible>(dropped).reason.find("can run none of the strategies: torchtitan's models have no dropout"),
            std::string::npos);
}

TEST(Search, AnEmptySpaceSaysWhy) {
  SearchOptions odd = options(8, 512);
  odd.base.tp = 3;
  odd.fixed = {"tp"};
  const auto degrees = search(layers("gpt2-355m", 4), workstation(4), odd);
  EXPECT_NE(std::get<Infeasible>(degrees).reason.find("no degrees divide"), std::string::npos);
  odd.base.tp = 1, odd.fixed = {};
  odd.base.batch.micro = 3, odd.fixed = {"micro_batch"};
  EXPECT_NE(std::get<Infeasible>(search(layers("gpt2-355m", 4), workstation(4), odd)).reason.find("no strategy fits"),
            std::string::npos);
  odd = options(8, 512);
  odd.base.tp = 2, odd.fixed = {"tp"};  // 25 heads
  const auto heads = search(layers("gpt2-1.5b", 4), workstation(4), odd);
  EXPECT_NE(std::get<Infeasible>(heads).reason.find("25"), std::string::npos) << std::get<Infeasible>(heads).reason;
  SearchOptions narrow =
      options(8, 512);  // 6 GiB; 1,557,611,200 x 14 bytes are 5.1 on each of 4 GPUs, gradients and the rest more
  narrow.base.device_memory.reserve = 0.75;
  const auto memory = search(load_model("gpt2-1.5b"), workstation(4), narrow);
  EXPECT_NE(std::get<Infeasible>(memory).reason.find("need more memory"), std::string::npos);
}

TEST(Search, TheFrontTradesTimeForMemory) {
  SearchOptions pareto = options(8, 512);
  pareto.objective = Objective::Pareto;
  const auto result = std::get<SearchResult>(search(layers("gpt2-355m", 4), workstation(4), pareto));
  ASSERT_GE(result.front.size(), 2u);
  for (std::size_t i = 1; i < result.front.size(); ++i) {
    EXPECT_GE(result.front[i].estimate.time, result.front[i - 1].estimate.time);
    EXPECT_LT(result.front[i].estimate.peak, result.front[i - 1].estimate.peak);
  }
  for (const Candidate& ranked : result.ranked)  // those above it do not beat it either
    EXPECT_TRUE(std::ranges::any_of(result.front, [&](const Candidate& c) {
      return c.score <= ranked.score && c.estimate.peak <= ranked.estimate.peak;
    })) << ranked.score;
}

// Estimates 1, 2, 3; the simulator makes the first one slow, so the third is looked at, too.
TEST(Search, RerankingGivesThePlaceOfASlowOneToTheNext) {
  std::vector<Candidate> ranked(3);
  for (int i = 0; i < 3; ++i)
    ranked[static_cast<std::size_t>(i)].point.dp = i + 1, ranked[static_cast<std::size_t>(i)].score = i + 1;
  std::vector<std::size_t> asked;
  rerank(ranked, 2, Objective::Time, 0, [&](const std::vector<const Candidate*>& next) {
    std::vector<std::optional<double>> seconds;
    for (const Candidate* c : next) seconds.emplace_back(c->point.dp == 1 ? 9.0 : c->point.dp + 0.5);
    asked.push_back(next.size());
    return seconds;
  });
  EXPECT_EQ(asked, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(ranked[0].point.dp, 2);
  EXPECT_EQ(ranked[1].point.dp, 3);
  EXPECT_EQ(ranked[1].simulated, 3.5);
  EXPECT_EQ(ranked[2].simulated, 9.0);
}

// tp 2 takes 1.000 s; as a GPipe 1.002 s with as much memory, which is no other answer, and 1.002 s with half of it, which is; tp 4
// takes 1.001 s. Without noise all are told apart.
TEST(Search, OfTwinsOneIsRanked) {
  std::vector<Candidate> ranked(4);
  const double seconds[] = {1, 1.002, 1.002, 1.001};
  for (std::size_t i = 0; i < 4; ++i) {
    ranked[i].point.tp = i == 3 ? 4 : 2, ranked[i].score = seconds[i];
    ranked[i].estimate.peak = {i == 2 ? 5LL << 30 : 10LL << 30};
  }
  const auto simulate = [&](const std::vector<const Candidate*>& next) {
    std::vector<std::optional<double>> answers;
    for (const Candidate* c : next) answers.emplace_back(c->score);
    return answers;
  };
  std::vector<Candidate> all = ranked;
  rerank(all, 2, Objective::Time, 0, simulate);
  EXPECT_EQ(all.size(), 4u);
  rerank(ranked, 2, Objective::Time, 0.003, simulate);
  ASSERT_EQ(ranked.size(), 3u);
  EXPECT_EQ(ranked[0].score, 1);
  EXPECT_EQ(ranked[1].point.tp, 4);
  EXPECT_EQ(ranked[2].estimate.peak, Bytes{5LL << 30});
}

// Equal times as far as they are printed: 2 parts in a million are not, and the one with less memory is the better answer.
TEST(Search, OfEqualTimesTheOneWithLessMemoryIsFirst) {
  std::vector<Candidate> ranked(3);
  const double seconds[] = {1, 1.000002, 1.01};
  for (std::size_t i = 0; i < 3; ++i) {
    ranked[i].point.schedule = i == 0 ? Schedule::GPipe : Schedule::OneFOneB, ranked[i].score = seconds[i];
    ranked[i].point.tp = 1 + static_cast<int>(i) / 2;
    ranked[i].estimate.peak = {(10LL - static_cast<std::int64_t>(i)) << 30};
  }
  const auto none = [](const std::vector<const Candidate*>& next) { return std::vector<std::optional<double>>(next.size()); };
  rerank(ranked, 0, Objective::Time, 0, none);
  EXPECT_EQ(ranked[0].point.schedule, Schedule::OneFOneB);
  EXPECT_EQ(ranked[1].point.schedule, Schedule::GPipe);
  EXPECT_EQ(ranked[2].score, 1.01);  // less memory still, but slower
}

// 405,853,388,800 parameters of 2 bytes with fp32 copies and two moments, 14 bytes each, on 4 GPUs: 1.29 TiB on each.
TEST(Search, WhatNoCutMakesFitIsToldAtOnce) {
  SearchOptions asked = options(16, 4096);
  const auto answer = search(load_model("llama-3-405b"), workstation(4), asked);
  ASSERT_TRUE(std::holds_alternative<Infeasible>(answer));
  EXPECT_TRUE(std::get<Infeasible>(answer).reason.starts_with(
      "no strategy fits: parameters and optimizer states alone take 1322.93 GiB on each of 4 GPUs, however they are cut; "))
      << std::get<Infeasible>(answer).reason;
}

// The bound is below what any plan holds: a GPU that has just that much is not refused.
TEST(Search, WhatNeverFitsIsBelowWhatEveryPlanHolds) {
  const Model model = layers("gpt2-124m", 4);
  for (const auto& [tp, pp, zero] : std::vector<std::array<int, 3>>{{1, 1, 3}, {1, 1, 1}, {2, 1, 2}, {2, 2, 0}, {1, 4, 0}}) {
    Cluster cluster = workstation(4);
    Strategy strategy = options(16, 512).base;
    strategy.dp = 4 / (tp * pp), strategy.tp = tp, strategy.pp = pp, strategy.zero.stage = zero;
    const auto lowered = tuned_plan(model, cluster, strategy, {.ignore_memory = true});
    Bytes most = {};
    for (const Role& role : std::get<Lowered>(lowered).plan.roles) {
      Bytes held = {};
      for (const Buffer& buffer : role.buffers)
        if (buffer.category == Category::Parameters || buffer.category == Category::Optimizer)
          held += buffer.bytes * std::ssize(buffer.offsets);
      most = std::max(most, held);
    }
    strategy.device_memory.reserve = 0;
    cluster.gpus.front().memory = most;
    EXPECT_FALSE(states_exceed_memory(model, cluster, strategy)) << tp << pp << zero;
    cluster.gpus.front().memory = {1 << 20};
    EXPECT_TRUE(states_exceed_memory(model, cluster, strategy)) << tp << pp << zero;
  }
}

// Whatever is not simple has to be better by more than the noise to rank first.
TEST(Search, WhatIsNotSimpleIsHandicappedByTheNoise) {
  SearchOptions asked = options(16, 512);
  asked.base.pp = 4, asked.base.zero.stage = 0, asked.base.pipeline.layer_split = "11,13,12,12";
  asked.fixed = {"pp", "zero"};
  int others = 0;
  for (const double noise : {0.0, 0.003}) {
    asked.noise = noise;
    const auto answer = search(load_model("gpt2-1.5b"), workstation(4), asked);
    for (const Candidate& candidate : std::get<SearchResult>(answer).ranked) {
      others += !is_simple(candidate.strategy);
      EXPECT_EQ(candidate.handicap, is_simple(candidate.strategy) ? 1 : 1 + noise);
    }
  }
  EXPECT_GT(others, 0);
}

// A group that is asked for keeps the grids whose replicas it divides; 3 divides none of 8.
TEST(Search, KeepsAZeroGroupWhereItDividesTheReplicas) {
  SearchOptions asked = options(16, 128);
  asked.fixed = {"zero", "zero_group", "recompute", "micro_batch"};
  asked.base.zero.stage = 2, asked.base.zero.group = 4;
  const auto answer = search(layers("gpt2-124m", 4), workstation(8), asked);
  ASSERT_TRUE(std::holds_alternative<SearchResult>(answer));
  const SearchResult& result = std::get<SearchResult>(answer);
  ASSERT_FALSE(result.ranked.empty());
  for (const Candidate& candidate : result.ranked) {
    EXPECT_EQ(candidate.strategy.zero.group, 4);
    EXPECT_EQ(candidate.point.dp % 4, 0);
  }
  EXPECT_GT(result.pruned.shape, 0);
  asked.base.zero.group = 3;
  EXPECT_TRUE(std::holds_alternative<Infeasible>(search(layers("gpt2-124m", 4), workstation(8), asked)));
}

}  // namespace foreshard
