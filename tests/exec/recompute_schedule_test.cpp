// Schedules of recomputation, executed: whatever is dropped and made again, and again, the bits are those of the plan that keeps
// everything, and the memory is the plan's own.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <random>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "strategy/tune/tune.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::recompute_schedule_test {
namespace {

Bytes activations(const Plan& plan) {
  Bytes most = {};
  for (const Role& role : plan.roles) {
    Bytes bytes = {};
    for (const Buffer& buffer : role.buffers)
      if (buffer.category == Category::Activations) bytes += buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
    most = std::max(most, bytes);
  }
  return most;
}

// The most that is alive at once of what waits for the backward.
Bytes most_alive(const MemoryCurve& curve) {
  const auto which = static_cast<std::size_t>(Category::Activations);
  Bytes now = curve.start[which], most = now;
  for (const MemoryEvent& event : curve.events) {
    if (event.category == Category::Activations) now += event.bytes;
    most = std::max(most, now);
  }
  return most;
}

std::optional<Plan> lowered_or_not(const Model& model, const Strategy& strategy) {
  static const Cluster cluster = load_cluster("dgx-a100");
  auto answer = tuned_plan(model, cluster, strategy);
  if (std::holds_alternative<Infeasible>(answer)) {
    EXPECT_NE(std::get<Infeasible>(answer).reason.find("is too little"), std::string::npos)
        << std::get<Infeasible>(answer).reason;
    return {};
  }
  return std::get<Lowered>(std::move(answer)).plan;
}

// Operators that run more than once in one micro-batch's forward and backward on the first rank, and the most often.
struct Repeats {
  int operators = 0, most = 0;
};
Repeats repeats(const Plan& plan) {
  std::map<std::pair<int, std::string>, int> times;
  for (const Segment& segment : plan.segments)
    if (segment.name == "backward.0")
      for (const Instruction& run : segment.instructions)
        if (const auto* what = std::get_if<Compute>(&run.what); what && what->phase == Phase::Recompute)
          ++times[{run.layer.value, run.name}];
  Repeats found{.operators = static_cast<int>(times.size())};
  for (const auto& [which, count] : times) found.most = std::max(found.most, count);
  return found;
}

void expect_sound(const Plan& plan, const std::string& name) {
  for (const PlanDefect& defect : check_plan(plan))
    ADD_FAILURE() << name << ": " << defect.rule << " " << defect.where << " " << defect.what;
}

// The same bits as without recomputation; on one rank the peak of the measured run is that of the plan played by its costs.
// Gives the most activations alive at once.
Bytes expect_same_training(const Plan& plan, const Execution& kept, const std::string& name) {
  expect_sound(plan, name);
  const Execution again = run(plan, training(1));
  EXPECT_EQ(difference(kept, again).largest(), 0) << name;
  ExecuteOptions emulated = training(1);
  emulated.time = TimeMode::Emulated;
  const MemoryTimeline planned = run(plan, emulated).result.memory;
  const MemoryTimeline measured = memory_timeline(plan, again.result.trace);
  EXPECT_EQ(sum(measured.curves[0].peak), sum(planned.curves[0].peak)) << name;
  EXPECT_EQ(sum(again.peaks[0]), sum(planned.curves[0].peak)) << name;
  EXPECT_EQ(measured.curves[0].peak, planned.curves[0].peak) << name;
  EXPECT_EQ(most_alive(measured.curves[0]), most_alive(planned.curves[0])) << name;
  return most_alive(planned.curves[0]);
}

// A chain of blocks with branches: each layer reads the one before, the joins read two.
Model random_graph(std::mt19937& random) {
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  LayerList list{.input = {2, 6, 6}, .classes = 3};
  std::string last = "stem";
  list.layers.push_back({.name = "stem", .op = LayerOp::Conv2d, .features = 4, .kernel = 3, .stride = 1, .padding = 1});
  for (int block = 0; block < number(1, 3); ++block) {
    const std::string name = "b" + std::to_string(block) + ".", from = last;
    for (int i = 0; i < number(1, 4); ++i) {
      const std::string own = name + std::to_string(i);
      switch (number(0, 2)) {
        case 0:
          list.layers.push_back(
              {.name = own, .op = LayerOp::Conv2d, .inputs = {last}, .features = 4, .kernel = 3, .stride = 1, .padding = 1});
          break;
        case 1: list.layers.push_back({.name = own, .op = LayerOp::BatchNorm, .inputs = {last}}); break;
        default: list.layers.push_back({.name = own, .op = LayerOp::Relu, .inputs = {last}}); break;
      }
      last = own;
    }
    list.layers.push_back({.name = name + "add", .op = LayerOp::Add, .inputs = {last, from}});
    last = name + "add";
  }
  list.layers.push_back({.name = "flat", .op = LayerOp::Flatten});
  list.layers.push_back({.name = "fc", .op = LayerOp::Linear, .features = 3, .bias = true});
  return {.name = "random", .shape = list};
}

// Rotor and Graph on four families with budgets from a twentieth of all activations to all of them. Less budget is never more
// memory; none of the plans keeps more activations than its budget.
TEST(RecomputeSchedule, KeepsEveryBitInsideTheBudget) {
  int plans = 0, deepest = 0;
  for (const Model& model : {tiny_gpt(), tiny_llama(), tiny_mlp(), tiny_cnn()})
    for (const RecomputeKind kind : {RecomputeKind::Rotor, RecomputeKind::Graph}) {
      const auto strategy = [&](Bytes budget) {
        return in_double({.batch = {.micro = 2}, .recompute = {.kind = kind, .budget = budget}});
      };
      const Plan everything = lowered(model, in_double({.batch = {.micro = 2}}));
      const Execution kept = run(everything, training(1));
      Bytes before = {std::int64_t{1} << 60};
      for (const int twentieths : {20, 14, 9, 6, 4, 3, 2}) {
        const Bytes budget{activations(everything).value * twentieths / 20};
        const auto plan = lowered_or_not(model, strategy(budget));
        if (!plan) continue;
        ++plans;
        const std::string name = model.name + " " + to_text(strategy(budget).recompute);
        const Bytes alive = expect_same_training(*plan, kept, name);
        EXPECT_LE(alive, budget) << name;
        EXPECT_LE(alive, before) << name;
        before = alive;
        deepest = std::max(deepest, repeats(*plan).most);
      }
    }
  EXPECT_GT(plans, 25);
  EXPECT_GE(deepest, 2);  // made again, and again
}

// Four layers and one checkpoint beside the input (Griewank and Walther): 4 + 3 + 2 + ... forwards by the closed form, less the
// four of the forward itself, are run again.
TEST(RecomputeSchedule, RevolveRunsItsForwards) {
  for (const auto& [checkpoints, forwards] : {std::pair{0, 10}, {1, 8}, {2, 7}, {3, 7}}) {
    const Strategy strategy =
        in_double({.batch = {.micro = 8}, .recompute = {.kind = RecomputeKind::Revolve, .checkpoints = checkpoints}});
    const Plan plan = lowered(tiny_gpt(), strategy);
    int norms = 0;
    for (const Segment& segment : plan.segments)
      for (const Instruction& run : segment.instructions)
        if (const auto* what = std::get_if<Compute>(&run.what);
            what && run.name == "norm1" && (what->phase == Phase::Forward || what->phase == Phase::Recompute))
          ++norms;
    EXPECT_EQ(norms, forwards) << checkpoints;
    expect_same_training(plan, run(lowered(tiny_gpt(), in_double({.batch = {.micro = 8}})), training(1)),
                         to_text(strategy.recompute));
  }
}

// Random residual networks, random budgets.
TEST(RecomputeSchedule, RandomGraphsKeepEveryBit) {
  std::mt19937 random(29);
  int plans = 0, redone = 0;
  for (int trial = 0; trial < 30; ++trial) {
    const Model model = random_graph(random);
    const Plan everything = lowered(model, in_double({.batch = {.micro = 4}}));
    const Execution kept = run(everything, training(1));
    for (const RecomputeKind kind : {RecomputeKind::Rotor, RecomputeKind::Graph}) {
      const Bytes budget{activations(everything).value * std::uniform_int_distribution<int>(20, 95)(random) / 100};
      const auto plan =
          lowered_or_not(model, in_double({.batch = {.micro = 4}, .recompute = {.kind = kind, .budget = budget}}));
      if (!plan) continue;
      ++plans;
      redone += repeats(*plan).operators > 0;
      expect_same_training(*plan, kept, std::to_string(trial) + " " + name_of(kind));
    }
  }
  EXPECT_GT(plans, 25);
  EXPECT_GT(redone, 15);
}

// Beside everything else a strategy can say: pipelines, chunks, tensor and sequence parallelism, ZeRO, dropout, overlap.
TEST(RecomputeSchedule, GoesWithEveryOtherChoice) {
  std::mt19937 random(31);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int plans = 0;
  for (int trial = 0; trial < how_many(12, 40); ++trial) {
    const Model model = number(0, 1) ? tiny_gpt() : tiny_llama();
    Strategy s = in_double({.dp = number(1, 2), .tp = number(1, 2), .pp = number(1, 2)});
    if (s.pp == 2 && number(0, 1)) s.virtual_stages = 2;
    if (s.virtual_stages == 1 && number(0, 1)) s.pipeline.schedule = Schedule::GPipe;
    s.sequence_parallel = s.tp > 1 && number(0, 1);
    s.zero.stage = s.dp > 1 ? number(0, 3) : 0;
    s.dropout = number(0, 1) ? 0.1 : 0;
    s.communication.overlap = Overlap{
        .gradients = number(0, 1) == 1, .parameters = number(0, 1) == 1, .p2p = number(0, 1) == 1, .tp = number(0, 1) == 1};
    const Plan everything = lowered(model, s);
    const Execution kept = run(everything, training(1));
    s.recompute.kind =
        std::array{RecomputeKind::Rotor, RecomputeKind::Graph, RecomputeKind::Revolve}[static_cast<std::size_t>(number(0, 2))];
    if (s.recompute.kind == RecomputeKind::Revolve)
      s.recompute.checkpoints = number(0, 2);
    else
      s.recompute.budget = {activations(everything).value * number(15, 90) / 100};
    const auto plan = lowered_or_not(model, s);
    if (!plan) continue;
    ++plans;
    const std::string name = std::to_string(trial) + name_of(s) + " " + to_text(s.recompute);
    expect_sound(*plan, name);
    EXPECT_EQ(difference(kept, run(*plan, training(1))).largest(), 0) << name;
  }
  EXPECT_GT(plans, how_many(5, 30));
}

}  // namespace
}  // namespace foreshard::recompute_schedule_test
