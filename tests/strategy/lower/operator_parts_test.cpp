// Operators in parts: which plans there are, which there are not, and what `--parts auto` chooses.
#include <gtest/gtest.h>

#include <map>

#include "core/check/check_plan.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "replay/replay.h"
#include "strategy/tune/tune.h"
#include "tests/core/support_models.h"
#include "tests/how_many.h"
#include "tests/strategy/support_random_strategy.h"

namespace foreshard::operator_parts_test {
namespace {

Model small() { return gpt(4, 512, 8, 1024, 512); }

const Cluster& pcie() {
  static const Cluster cluster = [] {
    Cluster slow = load_cluster("dgx-a100");
    for (auto& link : slow.nodes.front().shape.links)
      if (link.kind == LinkKind::NvLink) link.bandwidth = {25e9};
    return slow;
  }();
  return cluster;
}

Strategy cut(std::vector<int> parts, std::int64_t micro = 8) {
  return {.dp = 1, .tp = 4, .batch = {.micro = micro, .global = micro}, .communication = {.parts = std::move(parts)}};
}

std::string refusal(const Strategy& strategy) { return refused(small(), load_cluster("dgx-h100"), strategy).reason; }

Plan plan_of(const Strategy& strategy) { return lowered(small(), pcie(), strategy).plan; }

TEST(OperatorParts, RefusedByOneSentence) {
  EXPECT_EQ(refusal(cut({4}, 2)), "4 parts do not divide the 2 samples of a micro-batch");
  EXPECT_EQ(refusal(cut({2, 3}, 4)), "6 parts do not divide the 4 samples of a micro-batch");
  EXPECT_EQ(refusal(cut({2, 2, 2})), "a layer has 2 operations that are cut into parts, attention and MLP: found 3 numbers");
  EXPECT_EQ(refusal(cut({1, 2, 2, 2, 1, 4, 2, 2, 4, 4})), "parts 1,2;2,2;1,4;2,2;4,4 names 5 layers, the model has 4");
  Strategy other = cut({2});
  other.cp = 2;
  EXPECT_EQ(refusal(other), "operators in parts run on whole sequences, which cp 2 cuts");
  other = cut({2});
  other.precision = DType::F8;
  EXPECT_EQ(refusal(other), "operators in parts would each scale their fp8 factors by themselves");
  other = {.stages = {{.layers = 2, .dp = 1, .tp = 2}, {.layers = 2, .dp = 1, .tp = 2}}, .communication = {.parts = {2}}};
  EXPECT_EQ(refusal(other), "stages with degrees of their own run their operators whole, not in parts");
}

// Without sums between tensor-parallel ranks there is nothing to hide.
TEST(OperatorParts, OneRankRunsThemWhole) {
  Strategy one = cut({4});
  one.tp = 1;
  Strategy whole = one;
  whole.communication.parts.clear();
  EXPECT_EQ(program_hash(plan_of(one)), program_hash(plan_of(whole)));
}

// Whatever goes together with parts makes a plan that check_plan accepts: schedules, ZeRO, recomputation and its schedules, offload.
TEST(OperatorParts, DrawnPlansAreSound) {
  RandomChoice random(240);
  int sound = 0;
  for (int i = 0; i < how_many(150, 400); ++i) {
    const Model model = random_model(random);
    Strategy s = random_strategy(random);
    s.cp = 1, s.tp = random.one_of({2, 4}), s.batch.global *= 2, s.batch.micro *= 2;
    s.communication.parts = random.one_of<std::vector<int>>({{2}, {1, 2}, {2, 1}, {2, 4}, {1, 2, 4, 1}, {0}});
    if (random(0, 2) == 0) s.communication.activations = {.codec = Codec::Segmented}, s.sequence_parallel = false;
    if (random(0, 3) == 0) s.offload.activations = random.one_of({OffloadedActivations::Inputs, OffloadedActivations::All});
    if (random(0, 5) == 0) s.offload.parameters = Space::PinnedHost, s.optimizer.loss_scale = 1;
    if (random(0, 5) == 0) s.pipeline.schedule = Schedule::ZeroBubbleH1, s.virtual_stages = 1;
    const auto answer = tuned_plan(model, pcie(), s, {.ignore_memory = true, .check = false});
    const auto* made = std::get_if<Lowered>(&answer);
    if (!made) continue;
    const auto defects = check_plan(made->plan);
    ASSERT_TRUE(defects.empty()) << i << ": " << defects[0].rule << " " << defects[0].where << " " << defects[0].what << "\n"
                                 << to_json(s);
    sound += made->strategy.communication.parts.empty() ? 0 : 1;
  }
  EXPECT_GT(sound, how_many(20, 60));
}

TEST(OperatorParts, WithEverySchedule) {
  for (int kind = 0; kind < static_cast<int>(Schedule::Listed); ++kind) {
    int plans = 0;
    for (const int chunks : {1, 2}) {
      Strategy s{.dp = 1, .tp = 2, .pp = 2, .virtual_stages = chunks, .batch = {.micro = 4, .global = 32}};
      s.pipeline.schedule = static_cast<Schedule>(kind), s.communication.parts = {2, 4};
      Model model = small();
      std::get<Transformer>(model.shape).tied_embeddings = false;
      const auto answer = tuned_plan(model, pcie(), s, {.ignore_memory = true, .check = false});
      const auto* made = std::get_if<Lowered>(&answer);
      if (!made) continue;
      ++plans;
      const auto defects = check_plan(made->plan, {.stale_weights_allowed = s.pipeline.schedule == Schedule::PipeMare});
      EXPECT_TRUE(defects.empty()) << name_of(*s.pipeline.schedule) << ": " << defects[0].rule << " " << defects[0].where << " "
                                   << defects[0].what;
    }
    EXPECT_GT(plans, 0) << name_of(static_cast<Schedule>(kind));
  }
}

// Sums of parts carry what the whole sum carries, the parts of an operator do its work, and weights are read once a part.
TEST(OperatorParts, PartsAddUpToTheWhole) {
  const auto totals = [](const Plan& plan) {
    double flops = 0;
    std::int64_t bytes = 0;
    for (const Action& action : plan.roles.front().actions)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions) {
        if (const auto* what = std::get_if<Compute>(&run.what)) flops += what->flops.value;
        if (const auto* what = std::get_if<Collective>(&run.what)) bytes += what->bytes.value;
      }
    return std::pair(flops, bytes);
  };
  const auto whole = totals(plan_of(cut({})));
  for (const std::vector<int>& parts : std::vector<std::vector<int>>{{2}, {8}, {2, 4}, {8, 1}, {8, 1, 2, 4, 1, 1}}) {
    const auto [flops, bytes] = totals(plan_of(cut(parts)));
    EXPECT_NEAR(flops, whole.first, 1e-9 * whole.first);
    EXPECT_EQ(bytes, whole.second);
  }
}

// Layer by layer: how often the sums of a forward run. The last numbers hold for the layers that follow, on every stage.
TEST(OperatorParts, EachLayerHasItsNumbers) {
  for (const int pp : {1, 2, 4}) {
    Strategy s = cut({1, 2, 8, 4, 2, 1});
    s.tp = 2, s.pp = pp, s.batch.global = 16;
    const Plan plan = plan_of(s);
    const std::vector<std::pair<int, int>> expected = {{1, 2}, {8, 4}, {2, 1}, {2, 1}};
    std::map<std::string, int> sums;
    for (const Role& role : plan.roles)
      for (const Action& action : role.actions) {
        if (action.does.empty() || action.does[0].work != Work::F || action.does[0].microbatch != 0) continue;
        for (const Instruction& run : plan.segments[action.segment.index()].instructions)
          if (std::holds_alternative<Collective>(run.what) && run.layer.valid())
            ++sums[role.layers[run.layer.index()] + "." + run.name.substr(0, run.name.find(' '))];
      }
    for (std::size_t layer = 0; layer < expected.size(); ++layer) {
      const auto times = [&](const char* sum) { return sums["layers." + std::to_string(layer) + "." + sum]; };
      EXPECT_EQ(times("projection_reduce"), expected[layer].first) << "pp " << pp << ", layer " << layer;
      EXPECT_EQ(times("fc2_reduce"), expected[layer].second) << "pp " << pp << ", layer " << layer;
    }
  }
}

TEST(OperatorParts, SumsHideBehindTheNextPart) {
  const double whole = makespan_of(plan_of(cut({})), pcie()), parts = makespan_of(plan_of(cut({2})), pcie());
  EXPECT_LT(parts, whole);
  EXPECT_GT(parts, whole / 2);  // each of compute and communication takes as long as before
}

// On links of several speeds, also with two pipeline stages.
TEST(OperatorParts, AutoIsNeverSlowerThanEqualNumbers) {
  for (const double bandwidth : {10e9, 25e9, 60e9, 150e9, 600e9})
    for (const int pp : {1, 2}) {
      Cluster cluster = load_cluster("dgx-a100");
      for (auto& link : cluster.nodes.front().shape.links)
        if (link.kind == LinkKind::NvLink) link.bandwidth = {bandwidth};
      const auto seconds = [&](std::vector<int> parts) {
        Strategy s = cut(std::move(parts));
        s.pp = pp, s.batch.global = 16;
        return makespan_of(lowered(small(), cluster, s).plan, cluster, {.granularity = Granularity::Layer});
      };
      Strategy s = cut({0});
      s.pp = pp, s.batch.global = 16;
      const std::vector<int> parts = std::get<Tuned>(tune(small(), cluster, s)).strategy.communication.parts;
      const double chosen = seconds(parts);
      double equal = seconds({});
      for (const int n : {2, 4, 8}) equal = std::min(equal, seconds({n}));
      EXPECT_LE(chosen, equal) << bandwidth << " pp " << pp;
    }
}

// Codes of a part travel while the next part is computed. Each group of samples has codes of its own, so the borders of its segments come on
// top: per sum and rank 4 bytes for each of 5 borders in the exchange and in the gather.
TEST(OperatorParts, CodesHideBehindTheNextPart) {
  Model model = small();  // of kernels that take longer than their launches
  auto& shape = std::get<Transformer>(model.shape);
  shape.hidden = 2048, shape.ffn_hidden = 8192, shape.heads = shape.kv_heads = 32;
  const auto coded = [&](std::vector<int> parts) {
    Strategy s = cut(std::move(parts));
    s.communication.activations = {.codec = Codec::Segmented};
    return lowered(model, pcie(), s).plan;
  };
  const auto sent = [](const Plan& plan, int& sums) {
    std::int64_t bytes = 0;
    sums = 0;
    for (const Action& action : plan.roles.front().actions)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions)
        if (const auto* what = std::get_if<Collective>(&run.what); what && what->dtype == DType::U8) {
          bytes += what->bytes.value;
          ++sums;
        }
    return bytes;
  };
  int sums = 0, sums_of_two = 0;
  const Plan whole = coded({}), two = coded({2});
  EXPECT_TRUE(check_plan(two).empty());
  const std::int64_t bytes = sent(whole, sums), bytes_of_two = sent(two, sums_of_two);
  EXPECT_EQ(sums_of_two, 2 * sums);
  EXPECT_EQ(bytes_of_two - bytes, std::int64_t{sums} * 4 * 4 * 5);  // 4 ranks
  EXPECT_LT(makespan_of(two, pcie()), makespan_of(whole, pcie()));
}

// `auto` is no slower than any equal number of parts, nor than none; where a micro-batch is one sample it is whole.
TEST(OperatorParts, AutoIsTheBestOfWhatThePlannerTries) {
  Strategy chosen = cut({0});
  const auto tuned = tune(small(), pcie(), chosen);
  const std::vector<int>& parts = std::get<Tuned>(tuned).strategy.communication.parts;
  EXPECT_FALSE(parts.empty());
  const double seconds = makespan_of(plan_of(chosen), pcie());
  EXPECT_EQ(seconds, makespan_of(plan_of(cut(parts)), pcie()));
  for (const int n : {1, 2, 4, 8})
    EXPECT_LE(seconds, makespan_of(plan_of(cut(n == 1 ? std::vector<int>{} : std::vector{n})), pcie()));
  EXPECT_EQ(program_hash(plan_of(cut({0}, 1))), program_hash(plan_of(cut({}, 1))));
}

}  // namespace
}  // namespace foreshard::operator_parts_test
