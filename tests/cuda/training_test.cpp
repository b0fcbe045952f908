// Whole trainings through the CUDA backend on a runtime that is not a GPU: the interpreter, streams, events, arenas and the
// communicator are those of a GPU.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "core/check/check_plan.h"
#include "exec/data/checkpoint.h"
#include "exec/nccl/cuda_communicator.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::gpu::training_test {

static Strategy strategy_in(DType precision, Strategy strategy = {}) {
  strategy = in_double(strategy);
  strategy.precision = precision;
  return strategy;
}

static ExecuteOptions on(FakeRuntime& runtime, int steps, GpuRuns runs = {}) {
  ExecuteOptions options = training(steps);
  options.optimizer.eps = 1e-2;  // Adam makes much of the last bits of small gradients
  options.devices = [&runtime, runs](const Stop& stop) { return std::make_unique<CudaDevices>(runtime, stop, runs); };
  options.patience = std::chrono::milliseconds(60'000);
  return options;
}

static Execution run_on_fake(const Plan& plan, const FakeSettings& settings = {}, int steps = 2) {
  FakeRuntime runtime(settings);
  Execution done = run(plan, on(runtime, steps));
  EXPECT_EQ(runtime.allocated(), 0);
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  return done;
}

static Model of_layers(int layers, Model model) {
  std::get<Transformer>(model.shape).layers = layers;
  return model;
}

static Model small(Model model) { return of_layers(2, std::move(model)); }

TEST(CudaTraining, OneRankEqualsTheHost) {
  for (const Model& model : {small(tiny_gpt()), small(tiny_llama()), small(tiny_bert()), tiny_cnn(), tiny_mlp()}) {
    // Two steps through batch norm bring the host in fp32 3e-5 away from the host in fp64, the kernels 9e-6.
    const int steps = model == tiny_cnn() ? 1 : 2;
    const Plan plan = lowered(model, strategy_in(DType::F32));
    ExecuteOptions options = training(steps);
    options.optimizer.eps = 1e-2;
    const Execution host = run(plan, options), fake = run_on_fake(plan, {}, steps);
    EXPECT_LE(difference(fake, host).largest(), 1e-5) << model.name << " " << difference(fake, host).worst;
  }
}

// Copies have streams of their own, and the host updates beside the GPU, on a runtime that orders nothing by itself.
TEST(CudaTraining, WhatLeavesTheGpuComesBack) {
  const Model model = of_layers(3, tiny_gpt());
  using enum Space;
  const std::vector<OffloadChoice> ways = {{.optimizer = PinnedHost, .parameters = PinnedHost, .gradients = PinnedHost},
                                           {.optimizer = Nvme, .activations = OffloadedActivations::All},
                                           {.optimizer = PinnedHost,
                                            .updated_on = UpdatedOn::Device,
                                            .parameters = Nvme,
                                            .gradients = PinnedHost,
                                            .activations = OffloadedActivations::Inputs}};
  std::uint64_t seed = 31;
  for (Strategy strategy : {Strategy{.batch = {.micro = 4}}, Strategy{.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}}}) {
    const Execution kept = run_on_fake(lowered(model, strategy_in(DType::F32, strategy)));
    for (const OffloadChoice& way : some_of(ways, 1)) {
      FakeSettings settings;
      settings.seed = seed++;
      strategy.offload = way;
      const Execution moved = run_on_fake(lowered(model, strategy_in(DType::F32, strategy)), settings);
      EXPECT_LE(difference(kept, moved).largest(), 1e-5) << seed << " " << difference(kept, moved).worst;
    }
  }
}

// Strategies on virtual ranks of one GPU against one rank.
static std::vector<Strategy> strategies() {
  return {{.dp = 2},
          {.tp = 2},
          {.pp = 2, .batch = {.micro = 2}},
          {.dp = 2, .tp = 2, .sequence_parallel = true, .batch = {.micro = 2}},
          {.dp = 4, .zero = {.stage = 1}},
          {.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}}};
}

TEST(CudaTraining, StrategiesOnVirtualRanksEqualOneRank) {
  const Model model = small(tiny_gpt());
  const Execution one = run_on_fake(lowered(model, strategy_in(DType::F32)), {}, 1);
  std::uint64_t seed = 11;
  for (const Strategy& strategy : strategies()) {
    FakeSettings settings;
    settings.seed = seed++;
    const Strategy tried = strategy_in(DType::F32, strategy);
    const Execution many = run_on_fake(lowered(model, tried), settings, 1);
    EXPECT_LE(difference(many, one).largest(), 1e-5) << name_of(tried) << " " << difference(many, one).worst;
  }
}

// Context parallelism by the kernels of a GPU, over virtual ranks: positions, masks, rings of exchanges and all-to-alls are the host's.
static void expect_context_equals_host(const Model& model, double dropout, const std::vector<Strategy>& strategies) {
  ExecuteOptions options = training(1);
  options.optimizer.eps = 1e-2;
  const Strategy alone = {.batch = {.micro = 1, .global = 2}, .dropout = dropout};
  const Execution one = run(lowered(model, strategy_in(DType::F32, alone)), options);
  for (Strategy strategy : strategies)
    for (const ContextKind context : {ContextKind::AllGather, ContextKind::Ring, ContextKind::AllToAll}) {
      strategy.context = context, strategy.batch.micro = 1, strategy.batch.global = 2, strategy.dropout = dropout;
      FakeSettings settings;
      settings.seed = 31 + static_cast<std::uint64_t>(context);
      const Execution many = run_on_fake(lowered(model, strategy_in(DType::F32, strategy)), settings, 1);
      EXPECT_LE(difference(many, one).largest(), 1e-5)
          << model.name << " " << name_of(context) << " cp" << strategy.cp << " " << difference(many, one).worst;
    }
}

TEST(CudaTraining, ContextParallelismEqualsTheHost) {
  expect_context_equals_host(of_layers(1, tiny_gpt()), 0.1,
                             {{.cp = 2, .communication = {.overlap = Overlap{.tp = true}}}, {.cp = 4}});
}
TEST(CudaTraining, ContextParallelismOfGroupedQueries) {
  expect_context_equals_host(of_layers(1, tiny_llama()), 0, {{.cp = 4}, {.tp = 2, .cp = 2, .sequence_parallel = true}});
}
TEST(CudaTraining, ContextParallelismInAPipeline) {
  expect_context_equals_host(small(tiny_llama()), 0, {{.cp = 2, .pp = 2}, {.tp = 2, .cp = 2, .pp = 2}});
}
TEST(CudaTraining, ContextParallelismOfAnEncoder) {
  Model encoder = of_layers(1, tiny_bert());
  std::get<Transformer>(encoder.shape).pooler = false;
  expect_context_equals_host(encoder, 0.1, {{.dp = 2, .cp = 2, .zero = {.stage = 2}}});
}

// In bf16 the kernels on the tensor cores, and the library where it has the mask: losses as on one rank.
TEST(CudaTraining, ContextParallelismInBf16) {
  Model model = tiny_llama();
  auto& shape = std::get<Transformer>(model.shape);
  shape.layers = 1, shape.head_dim = 64, shape.heads = 2, shape.kv_heads = 2;
  const auto loss = [&](Strategy strategy, bool library) {
    strategy.batch.micro = 1, strategy.batch.global = 1;
    return run_on_fake(lowered(model, strategy_in(DType::BF16, strategy)), {.library_attention = library}, 2).steps[1].loss;
  };
  const double one = loss({}, false);
  for (const bool library : {false, true})
    for (const ContextKind context : {ContextKind::AllGather, ContextKind::Ring, ContextKind::AllToAll})
      EXPECT_NEAR(loss({.cp = 2, .context = context}, library), one, 2e-3 * one) << name_of(context) << " library " << library;
}

static double norm_of(const WholeTensor& tensor) {
  double sum = 0;
  for (const double x : tensor.elements) sum += x * x;
  return std::sqrt(sum);
}

TEST(CudaTraining, Bf16OnVirtualRanksKeepsTheNorms) {
  const Model model = small(tiny_llama());
  const Execution one = run_on_fake(lowered(model, strategy_in(DType::BF16)), {}, 1);
  const Execution many = run_on_fake(lowered(model, strategy_in(DType::BF16, {.dp = 2, .tp = 2})), {}, 1);
  EXPECT_NEAR(many.steps[0].loss, one.steps[0].loss, 5e-3 * one.steps[0].loss);
  double all_one = 0, all_many = 0;
  for (std::size_t t = 0; t < one.gradients.size(); ++t) {
    all_one += std::pow(norm_of(one.gradients[t]), 2);
    all_many += std::pow(norm_of(many.gradients[t]), 2);
  }
  EXPECT_NEAR(std::sqrt(all_many / all_one), 1, 5e-3);
}

// Dropout, attention that drops, Adam and samples differ from run to run; everything else is in graphs.
TEST(CudaTraining, GraphsChangeNoBit) {
  std::uint64_t seed = 20;
  for (auto [model, strategy] : {std::pair{small(tiny_gpt()), Strategy{.dp = 2, .batch = {.micro = 4}, .dropout = 0.1}},
                                 {tiny_cnn(), {.batch = {.micro = 4}}},
                                 {tiny_mlp(), {.dp = 2, .batch = {.micro = 2}}}}) {
    strategy = strategy_in(DType::F32, strategy);
    const Plan plan = lowered(model, strategy);
    FakeSettings settings;
    settings.seed = seed++;
    FakeRuntime plain(settings), drawn(settings);
    ExecuteOptions free = on(drawn, 7, {.graphs = true});
    free.barrier = strategy.dp == 1;  // without it several runs are under way
    const Execution done = run(plan, free);
    const Difference apart = difference(done, run(plan, on(plain, 7)));
    EXPECT_EQ(apart.largest(), 0) << model.name << " " << name_of(strategy) << " " << apart.worst;
    EXPECT_TRUE(drawn.conflicts().empty()) << drawn.conflicts().front();
    EXPECT_GE(drawn.graph_launches(), 5) << model.name;  // the last five of seven runs
    EXPECT_EQ(drawn.graphs(), 0);
    for (const Span& span : done.result.trace.spans) EXPECT_LT(span.begin, span.end);
  }
}

// Three events of each instruction (two, where it meets nobody) in a run that is timed; else one where the run begins.
TEST(CudaTraining, OnlyTheLastRunIsTimed) {
  const Strategy strategy = strategy_in(DType::F32, {.dp = 2, .batch = {.micro = 2}});
  const Plan plan = lowered(tiny_mlp(), strategy);
  for (const bool graphs : {false, true}) {
    FakeRuntime all, last, one;
    const Execution whole = run(plan, on(all, 6, {.graphs = graphs}));
    const Execution done = run(plan, on(last, 6, {.graphs = graphs, .timed_from = 5}));
    static_cast<void>(run(plan, on(one, 1)));
    EXPECT_EQ(difference(done, whole).largest(), 0);
    EXPECT_TRUE(last.conflicts().empty());
    // The clock of both ranks begins with an event; of one run that is timed, of five their first instructions on both.
    const int of_run = one.timed_records() - 2;
    EXPECT_GT(of_run, 20);
    EXPECT_EQ(all.timed_records(), 2 + 6 * of_run);
    EXPECT_EQ(last.timed_records(), 2 + of_run + 5 * 2) << graphs;
    EXPECT_EQ(last.graph_launches() > 0, graphs);
    EXPECT_EQ(last.graphs(), 0);
    EXPECT_EQ(done.peaks, whole.peaks);
    for (const Span& span : done.result.trace.spans) EXPECT_LT(span.begin, span.end);
  }
}

// What two events take is no cost of an instruction: with events that take as long as a kernel the timeline is that of events that take nothing.
TEST(CudaTraining, TheTimeOfTimingIsNoCost) {
  const Plan plan = lowered(tiny_mlp(), strategy_in(DType::F32, {.batch = {.micro = 2}}));
  std::vector<double> seconds;
  for (const std::int64_t event : {0, 1000}) {
    FakeRuntime runtime({.timed_event = event});
    ExecuteOptions options = on(runtime, 2);
    options.time = TimeMode::Emulated;
    seconds.push_back(run(plan, options).iteration_time_s);
  }
  EXPECT_EQ(seconds[0], seconds[1]);
}

// In fp16 with a scale that begins far too high: the steps that overflow are the host's, and so is what comes of the others.
TEST(CudaTraining, ALossScaleThatFollowsOverflowsDoesSoAsOnTheHost) {
  Strategy half = strategy_in(DType::F16, {.dp = 2, .batch = {.micro = 4}});
  half.optimizer.clip_norm = 0.5;
  const Plan plan = with_dynamic_scale(tiny_mlp(), half, 24, 2);
  ExecuteOptions options = training(12);
  options.optimizer.eps = 1e-2;
  FakeRuntime runtime;
  const Execution host = run(plan, options), fake = run(plan, on(runtime, 12, {.graphs = true}));
  int skipped = 0;
  for (std::size_t s = 0; s < host.steps.size(); ++s) {
    EXPECT_EQ(fake.steps[s].skipped, host.steps[s].skipped) << s;
    EXPECT_EQ(fake.steps[s].loss_scale, host.steps[s].loss_scale) << s;
    EXPECT_NEAR(fake.steps[s].loss, host.steps[s].loss, 2e-3 * host.steps[s].loss) << s;
    skipped += host.steps[s].skipped ? 1 : 0;
  }
  EXPECT_GE(skipped, 2);
  EXPECT_LE(skipped, 10);
  EXPECT_TRUE(runtime.conflicts().empty());
}

// ---- mistakes are seen ------------------------------------------------------------------------------------------------------

// What a run with a mistake shows: conflicts, another training, or a failure.
static bool shows(const Plan& plan, const FakeSettings& settings, const Execution& right) {
  FakeRuntime runtime(settings);
  try {
    const auto answer = execute(plan, on(runtime, 1));
    return !runtime.conflicts().empty() || difference(std::get<Execution>(answer), right).largest() > 1e-5;
  } catch (const DeviceError&) {
    return true;
  }
}

TEST(CudaMutations, ADroppedWaitIsAConflictInEverySchedule) {
  const Plan plan = lowered(tiny_mlp(), strategy_in(DType::F32, {.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}}));
  FakeRuntime whole;
  const Execution right = run(plan, on(whole, 1));
  const int waits = whole.waits_that_matter();
  EXPECT_GE(waits, 20);
  int seen = 0;
  const int each = how_many(4, 1);
  for (int wait = 0; wait < waits; wait += each)
    seen += shows(plan, {.seed = 1U + static_cast<std::uint64_t>(wait), .dropped_wait = wait}, right) ? 1 : 0;
  // The others order what happens to be ordered by the waits after them, or by what the host has seen to be done by then; which plan waits
  // count is told exactly below.
  EXPECT_GE(seen, waits / each / 3) << "of " << waits / each;
  RecordProperty("waits", waits);
  RecordProperty("seen", seen);
}

// Which waits a plan needs is what check_plan finds without running anything: those that it misses are conflicts, and the others are
// not. So a wait that nobody misses is one that other waits imply.
TEST(CudaMutations, AWaitIsMissedJustWhenThePlanNeedsIt) {
  const Plan whole = lowered(tiny_mlp(), strategy_in(DType::F32, {.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}}));
  int needed = 0, implied = 0;
  const auto compare = [&](const Plan& plan, const std::string& what) {
    FakeRuntime runtime({.seed = 3});
    static_cast<void>(execute(plan, on(runtime, 2)));
    const auto defects = check_plan(plan);
    (defects.empty() ? implied : needed) += 1;
    EXPECT_EQ(runtime.conflicts().empty(), defects.empty())
        << what << ": " << (defects.empty() ? runtime.conflicts().front() : defects.front().rule + ", " + defects.front().what);
  };
  for (std::size_t s = 0; s < whole.segments.size(); ++s)
    for (std::size_t i = 0; i < whole.segments[s].instructions.size(); ++i) {
      const Instruction& of = whole.segments[s].instructions[i];
      const std::string name = whole.segments[s].name + ", " + of.name;
      for (std::size_t w = 0; w < of.after.size(); ++w) {
        Plan plan = whole;
        auto& after = plan.segments[s].instructions[i].after;
        after.erase(after.begin() + static_cast<std::ptrdiff_t>(w));
        compare(plan, name + ", after " + std::to_string(of.after[w]));
      }
      for (std::size_t w = 0; w < of.waits.size(); ++w) {
        Plan plan = whole;
        auto& waits = plan.segments[s].instructions[i].waits;
        waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
        compare(plan, name + ", wait " + std::to_string(w));
      }
    }
  EXPECT_GE(needed, 20);
  RecordProperty("needed", needed);
  RecordProperty("implied", implied);
}

TEST(CudaMutations, AMissingReductionIsSeen) {
  const Plan plan = lowered(tiny_mlp(), strategy_in(DType::F32, {.dp = 2, .batch = {.micro = 4}}));
  FakeRuntime whole;
  const Execution right = run(plan, on(whole, 1));
  const int reductions = whole.launches().at(KernelId::reduce_peers);
  EXPECT_GE(reductions, 2);
  for (int n = 0; n < reductions; ++n)
    EXPECT_TRUE(shows(plan, {.dropped_work = n, .dropped_kernel = KernelId::reduce_peers}, right)) << n << " of " << reductions;
}

// ---- failures ---------------------------------------------------------------------------------------------------------------

static std::string failure_of(const Plan& plan, const FakeSettings& settings, ExecuteOptions options) {
  FakeRuntime runtime(settings);
  options.devices = on(runtime, 1).devices;
  try {
    static_cast<void>(execute(plan, options));
  } catch (const DeviceError& problem) {
    return problem.what();
  }
  return "";
}

TEST(CudaFailures, OutOfMemoryNamesTheCall) {
  const Plan plan = lowered(tiny_mlp(), strategy_in(DType::F32));
  FakeRuntime unused;
  const std::string why = failure_of(plan, {.memory = {1000}}, on(unused, 1));
  EXPECT_NE(why.find("cudaMalloc of "), std::string::npos) << why;
  EXPECT_NE(why.find("cudaErrorMemoryAllocation"), std::string::npos) << why;
}

TEST(CudaFailures, AFailingCallStopsAllRanksAndNamesRankAndInstruction) {
  const Plan plan = lowered(tiny_mlp(), strategy_in(DType::F32, {.dp = 2, .batch = {.micro = 4}}));
  FakeRuntime whole;
  static_cast<void>(run(plan, on(whole, 2)));
  for (const char* code : {"cudaErrorLaunchFailure", "cudaErrorECCUncorrectable"})
    for (const int part : {2, 3}) {
      FakeRuntime unused;
      const std::string why = failure_of(plan, {.failing_work = whole.works() / part, .failure = code}, on(unused, 2));
      EXPECT_NE(why.find(code), std::string::npos) << why;
      EXPECT_NE(why.find("rank "), std::string::npos) << why;
      EXPECT_NE(why.find("instruction "), std::string::npos) << why;
      EXPECT_NE(why.find(" failed: "), std::string::npos) << why;
    }
}

TEST(CudaFailures, TheCheckpointBeforeStays) {
  const Plan plan = lowered(tiny_mlp(), strategy_in(DType::F32));
  const std::string file = testing::TempDir() + "cuda_failure_" + std::to_string(getpid()) + ".safetensors";
  std::filesystem::remove(file);
  FakeRuntime whole;
  ExecuteOptions options = on(whole, 3);
  options.save = file;
  options.saves.every = 1;
  Execution right = run(plan, options);
  std::filesystem::remove(file);
  EXPECT_NE(failure_of(plan, {.failing_work = whole.works() * 3 / 4}, options), "");
  const TrainingPoint point = training_point(file);
  EXPECT_GE(point.step, 1);
  EXPECT_LT(point.step, 3);
  FakeRuntime again;
  ExecuteOptions rest = on(again, 3 - point.step);
  rest.resume = file;
  const Execution resumed = run(plan, rest);
  right.steps.erase(right.steps.begin(), right.steps.begin() + point.step);
  EXPECT_LE(difference(resumed, right).values, 1e-6);
  std::filesystem::remove(file);
}

TEST(CudaFailures, WhatTheGpuCannotRunIsRefusedBeforeTheRun) {
  FakeRuntime runtime;
  EXPECT_THROW(static_cast<void>(execute(lowered(tiny_mlp(), strategy_in(DType::F64)), on(runtime, 1))), Error);
  ExecuteOptions poison = on(runtime, 1);
  poison.checks.poison = true;
  EXPECT_THROW(static_cast<void>(execute(lowered(tiny_mlp(), strategy_in(DType::F32)), poison)), Error);
  EXPECT_EQ(runtime.allocated(), 0);
}

// ---- what a run tells ---------------------------------------------------------------------------------------------------------

TEST(CudaTraining, SpansAreInOrderAndStepsAllocateNothingOnTheGpu) {
  const Plan plan = lowered(tiny_mlp(), strategy_in(DType::F32, {.dp = 2, .batch = {.micro = 4}}));
  for (const TimeMode mode : {TimeMode::Wall, TimeMode::Emulated}) {
    FakeRuntime runtime;
    ExecuteOptions options = on(runtime, 3);
    options.time = mode;
    options.checks.guards = mode == TimeMode::Wall;
    std::vector<std::int64_t> allocated;
    options.on_step = [&](int, const StepReport&) { allocated.push_back(runtime.allocated()); };
    const Execution done = run(plan, options);
    EXPECT_TRUE(runtime.conflicts().empty());
    EXPECT_EQ(allocated, (std::vector<std::int64_t>(3, allocated.at(0))));
    EXPECT_GT(done.result.trace.makespan.value, 0);
    EXPECT_FALSE(done.peaks.empty());
    for (const Span& span : done.result.trace.spans) {
      EXPECT_LE(span.ready, span.begin);
      EXPECT_LT(span.begin, span.end);
    }
  }
}

// A profiler sees the names that the trace has: every instruction of both ranks, once per step.
TEST(CudaTraining, RangesAreNamedAsTheTrace) {
  const Plan plan = lowered(tiny_mlp(), strategy_in(DType::F32, {.dp = 2, .batch = {.micro = 4}}));
  FakeRuntime runtime;
  static_cast<void>(run(plan, on(runtime, 3)));
  std::map<std::string, int> expected;
  for (const Role& role : plan.roles)
    for (const Action& action : role.actions)
      for (const Instruction& instruction : plan.segments[action.segment.index()].instructions)
        expected[instruction.name] += 3 * Ranks(plan).count();
  EXPECT_EQ(runtime.ranges(), expected);
}

TEST(CudaTraining, WithoutABarrierBetweenStepsTheSameBits) {
  const Plan plan = lowered(tiny_mlp(), strategy_in(DType::F32, {.dp = 2, .batch = {.micro = 4}}));
  FakeRuntime one, two;
  ExecuteOptions free = on(two, 6);
  free.barrier = false;
  const Difference apart = difference(run(plan, free), run(plan, on(one, 6)));
  EXPECT_EQ(apart.values, 0);
  EXPECT_EQ(apart.loss, 0);
  EXPECT_TRUE(two.conflicts().empty());
}

}  // namespace foreshard::gpu::training_test
