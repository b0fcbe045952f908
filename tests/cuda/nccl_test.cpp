// The NCCL communicator on the twin of tests/cuda/nccl_twin.h: whole trainings, and what goes wrong.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/error.h"
#include "exec/cuda_checks/nccl_selftest.h"
#include "exec/nccl/nccl_communicator.h"
#include "exec/nccl/nccl_ranks.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/twin_session.h"
#include "tests/exec/processes.h"
#include "tests/exec/training.h"

namespace foreshard::gpu::nccl_test {
namespace {

using nccl::Result;

Strategy single(Strategy strategy) {
  strategy = in_double(strategy);
  strategy.precision = DType::F32;
  return strategy;
}

Model small(Model model) {
  std::get<Transformer>(model.shape).layers = 2;
  return model;
}

ExecuteOptions options_for(const Plan& plan, FakeRuntime& runtime, nccl::Library& library, int steps = 2,
                           std::chrono::milliseconds meet = std::chrono::seconds(20), bool graphs = false) {
  ExecuteOptions options = training(steps);
  options.optimizer.eps = 1e-2;  // Adam makes much of the last bits of small gradients
  options.patience = std::chrono::milliseconds(60'000);
  options.devices = [&runtime, &library, ranks = Ranks(plan).count(), meet, graphs](const Stop& stop) {
    return std::make_unique<NcclDevices>(runtime, library, stop,
                                         NcclOptions{.ranks = ranks, .meet = meet, .runs = {.graphs = graphs}});
  };
  return options;
}

struct Ran {
  Execution done = {};
  std::string failure = {};
  TwinReport report = {};
  int graph_launches = 0;
  std::vector<std::string> conflicts = {};
};

Ran run_on_twin(const Plan& plan, const TwinSettings& settings = {}, int steps = 2,
                std::chrono::milliseconds meet = std::chrono::seconds(20), bool graphs = false) {
  FakeRuntime runtime({.seed = 3, .devices = Ranks(plan).count()});
  TwinSession twin(settings);
  Ran ran;
  try {
    ran.done = run(plan, options_for(plan, runtime, twin.library(), steps, meet, graphs));
  } catch (const DeviceError& error) {
    ran.failure = error.what();
  }
  ran.report = twin.end();
  ran.conflicts = runtime.conflicts();
  ran.graph_launches = runtime.graph_launches();
  return ran;
}

// ---- trainings --------------------------------------------------------------------------------------------------------------

TEST(Nccl, StrategiesEqualOneRankOfTheHost) {
  const Model model = small(tiny_gpt());
  ExecuteOptions options = training(1);
  options.optimizer.eps = 1e-2;
  const Execution host = run(lowered(model, single({})), options);
  const std::vector<Strategy> strategies = {{.pp = 2, .batch = {.micro = 2}},
                                            {.dp = 2, .tp = 2, .sequence_parallel = true, .batch = {.micro = 2}},
                                            {.dp = 4, .zero = {.stage = 1}},
                                            {.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}}};
  for (const Strategy& strategy : strategies) {
    const Strategy tried = single(strategy);
    const Ran ran = run_on_twin(lowered(model, tried), {}, 1);
    ASSERT_EQ(ran.failure, "") << name_of(tried);
    EXPECT_LE(difference(ran.done, host).largest(), 1e-5) << name_of(tried) << " " << difference(ran.done, host).worst;
    for (const std::string& complaint : ran.report.complaints) ADD_FAILURE() << name_of(tried) << ": " << complaint;
    for (const std::string& conflict : ran.conflicts) ADD_FAILURE() << name_of(tried) << ": " << conflict;
    EXPECT_GT(ran.report.calls, 0);
    EXPECT_EQ(ran.report.destroyed, ran.report.comms);
    EXPECT_EQ(ran.report.aborted, 0);
    EXPECT_EQ(ran.report.registrations, ran.report.comms) << "the arena of a rank, once for each of its communicators";
    EXPECT_EQ(ran.report.registered, 0) << "what was registered is given back";
  }
}

// Arenas are memory of NCCL's, zeroed here; where it has none, of CUDA's. The training is the same.
TEST(Nccl, ArenasAreMemoryOfTheLibrary) {
  const Plan plan = lowered(small(tiny_gpt()), single({.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 1}}));
  const Ran with = run_on_twin(plan, {}, 2), without = run_on_twin(plan, {.gives_memory = false}, 2);
  for (const Ran* ran : {&with, &without}) {
    ASSERT_EQ(ran->failure, "");
    for (const std::string& complaint : ran->report.complaints) ADD_FAILURE() << complaint;
    for (const std::string& conflict : ran->conflicts) ADD_FAILURE() << conflict;
    EXPECT_EQ(ran->report.kept_memories, 0);
    EXPECT_EQ(ran->report.registered, 0);
  }
  EXPECT_EQ(with.report.memories, 2);  // one per rank
  EXPECT_EQ(without.report.memories, 0);
  for (std::size_t step = 0; step < 2; ++step) EXPECT_EQ(with.done.steps[step].loss, without.done.steps[step].loss);
}

// Two processes (threads with a mesh between them) of two ranks each: the id goes over the mesh, groups are split over both.
TEST(Nccl, ProcessesMeetOverTheMesh) {
  const Plan plan = lowered(small(tiny_gpt()), single({.dp = 2, .tp = 2, .batch = {.micro = 2}}));
  const Ran one = run_on_twin(plan, {}, 1);
  FakeRuntime runtime({.seed = 5, .devices = 4});
  TwinSession twin;
  in_processes(2, 4, [&](ProcessMesh& mesh) {
    ExecuteOptions here = options_for(plan, runtime, twin.library(), 1);
    here.tensors = false, here.processes = &mesh, here.across_processes = true;
    here.devices = [&](const Stop& stop) {
      return std::make_unique<NcclDevices>(runtime, twin.library(), stop,
                                           NcclOptions{.ranks = 4, .mesh = &mesh, .first_gpu = 2 * mesh.process()});
    };
    const Execution done = run(plan, here);
    ASSERT_EQ(done.steps.size(), 1U);
    EXPECT_NEAR(done.steps[0].loss, one.done.steps[0].loss, 1e-5);
  });
  const TwinReport report = twin.end();
  for (const std::string& complaint : report.complaints) ADD_FAILURE() << complaint;
  EXPECT_EQ(report.destroyed, report.comms);
  EXPECT_GT(report.comms, 4);
}

// Graphs hold what lies between the calls of NCCL; no call, no wait and no question of the host falls into a capture, and no bit changes.
TEST(Nccl, GraphsBesideItChangeNoBit) {
  for (const auto& [model, strategy] :
       {std::pair{small(tiny_gpt()), Strategy{.dp = 2, .tp = 2, .sequence_parallel = true, .batch = {.micro = 4}}},
        {tiny_mlp(), {.pp = 2, .batch = {.micro = 2}}},
        {tiny_mlp(), {.dp = 2, .batch = {.micro = 2}}}}) {
    const Plan plan = lowered(model, single(strategy));
    const Ran plain = run_on_twin(plan, {}, 4), drawn = run_on_twin(plan, {}, 4, std::chrono::seconds(20), true);
    ASSERT_EQ(plain.failure + drawn.failure, "") << name_of(strategy);
    EXPECT_EQ(difference(drawn.done, plain.done).largest(), 0) << name_of(strategy);
    for (const std::string& complaint : drawn.report.complaints) ADD_FAILURE() << name_of(strategy) << ": " << complaint;
    for (const std::string& conflict : drawn.conflicts) ADD_FAILURE() << name_of(strategy) << ": " << conflict;
    EXPECT_EQ(drawn.report.calls, plain.report.calls);
    EXPECT_GE(drawn.graph_launches, 2 * Ranks(plan).count()) << name_of(strategy);  // the last two of four runs
    EXPECT_EQ(plain.graph_launches, 0);
  }
}

// Calls that come back before they are on their stream, as a library does that is still connecting.
TEST(Nccl, CallsMayTakeTheirTime) {
  const Ran ran = run_on_twin(lowered(tiny_mlp(), single({.dp = 2, .batch = {.micro = 2}})), {.slow_calls = 5});
  EXPECT_EQ(ran.failure, "");
  EXPECT_TRUE(ran.report.complaints.empty());
}

TEST(Nccl, TwoRanksOnOneGpuAreRefused) {
  const Plan plan = lowered(tiny_mlp(), single({.dp = 2, .batch = {.micro = 2}}));
  FakeRuntime runtime;
  TwinSession twin;
  try {
    static_cast<void>(execute(plan, options_for(plan, runtime, twin.library())));
    FAIL() << "it ran";
  } catch (const DeviceError& error) {
    EXPECT_EQ(std::string(error.what()), "NCCL failed: rank 0 and rank 1 would share GPU 0; NCCL wants one for each");
  }
}

// Since 2.30 they may share one, when somebody says so.
TEST(Nccl, RanksShareAGpuWhereTheLibraryLetsThem) {
  const Plan plan = lowered(tiny_mlp(), single({.dp = 2, .batch = {.micro = 2}}));
  const Ran apart = run_on_twin(plan);
  FakeRuntime runtime;
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  TwinSession twin;
  ExecuteOptions options = options_for(plan, runtime, twin.library());
  options.devices = ranks_by_nccl(runtime, twin.library(), {.ranks = 2, .shares_gpus = true});
  EXPECT_EQ(difference(run(plan, options), apart.done).largest(), 0);
  for (const std::string& complaint : twin.end().complaints) ADD_FAILURE() << complaint;
  const std::tuple<int, const char*, bool> known[] = {
      {23003, "1", true}, {23007, "1", true}, {23003, "0", false}, {23003, nullptr, false}, {22907, "1", false}};
  for (const auto& [version, variable, shares] : known) {
    TwinSession other({.version = version});
    EXPECT_EQ(shares_gpus(nccl::Library(FORESHARD_NCCL_TWIN), variable), shares) << version;
  }
}

// Too few for the streams of two ranks: a wait at the head of a connection keeps the kernel from the GPU for which it waits.
TEST(Nccl, TwoRanksOnOneGpuNeedConnectionsOfTheirOwn) {
  const Plan plan = lowered(small(tiny_gpt()), single({.pp = 2, .batch = {.micro = 1}}));
  for (const int connections : {2, 32}) {
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    FakeRuntime runtime({.seed = 4, .connections = connections});
    TwinSession twin;
    ExecuteOptions options = options_for(plan, runtime, twin.library());
    options.devices = ranks_by_nccl(runtime, twin.library(), {.ranks = 2, .shares_gpus = true});
    options.patience = options.limits.longest_compute = std::chrono::seconds(connections == 2 ? 1 : 60);
    std::string why;
    try {
      static_cast<void>(execute(plan, options));
    } catch (const DeviceError& error) {
      why = error.what();
    }
    EXPECT_EQ(why.empty(), connections == 32) << connections << " " << why;
  }
}

// ---- the comparison with the host -------------------------------------------------------------------------------------------

// 24 sums, three that move, and with two ranks or more a message, of two sizes each.
TEST(NcclSelftest, AllIsRightOnTheTwin) {
  for (const int ranks : {1, 2, 3}) {
    FakeRuntime runtime({.devices = ranks});
    TwinSession twin;
    const auto outcomes = nccl_outcomes(runtime, twin.library(), {.ranks = ranks});
    EXPECT_EQ(outcomes.size(), ranks == 1 ? 54U : 56U);
    for (const NcclOutcome& done : outcomes)
      EXPECT_TRUE(done.right()) << ranks << " " << done.name << " " << done.error << done.fault;
    for (const std::string& complaint : twin.end().complaints) ADD_FAILURE() << complaint;
    EXPECT_EQ(runtime.allocated(), 0);
  }
}

// A call that one rank leaves out: the comparison does not hang. One that is an element short: wrong, or an error.
TEST(NcclSelftest, WhatIsWrongIsTold) {
  for (const bool dropped : {true, false}) {
    FakeRuntime runtime({.devices = 2});
    TwinSettings settings;
    (dropped ? settings.dropped_call : settings.shortened_call) = 11;
    TwinSession twin(settings);
    const auto outcomes = nccl_outcomes(runtime, twin.library(), {.ranks = 2}, std::chrono::milliseconds(300));
    ASSERT_LE(outcomes.size(), 6U);  // two calls each; fewer where the machine itself slept for as long
    EXPECT_FALSE(outcomes.back().right());
    EXPECT_NE(outcomes.back().fault, "");
  }
}

// ---- failures ---------------------------------------------------------------------------------------------------------------

// An error that the library meets on its own threads stops all ranks, with its words, and every communicator is aborted.
TEST(Nccl, AnAsynchronousErrorStopsAllRanks) {
  const Plan plan = lowered(tiny_mlp(), single({.dp = 2, .batch = {.micro = 2}}));
  const int calls = run_on_twin(plan).report.calls;
  ASSERT_GE(calls, 4);
  for (const int call : {0, calls / 2, calls - 1}) {
    const Ran ran = run_on_twin(plan, {.failing_call = call});
    EXPECT_NE(ran.failure.find("remote process exited or there was a network error: the network is broken"), std::string::npos)
        << call << ": " << ran.failure;
    EXPECT_EQ(ran.report.aborted, ran.report.comms) << call;
    for (const std::string& complaint : ran.report.complaints) ADD_FAILURE() << call << ": " << complaint;
  }
}

// Kernels of several communicators are on the GPU when the network breaks: an abort of one would wait for the others.
TEST(Nccl, AllCommunicatorsAreAbortedTogether) {
  const Plan plan = lowered(tiny_mlp(), single({.dp = 2, .pp = 2, .batch = {.micro = 1}}));
  const int calls = run_on_twin(plan).report.calls;
  for (const int call : {calls / 4, calls / 2}) {
    const Ran ran = run_on_twin(plan, {.failing_call = call});
    EXPECT_NE(ran.failure, "") << call;
    for (const std::string& complaint : ran.report.complaints) ADD_FAILURE() << call << ": " << complaint;
  }
}

// A thread that is inside a call when the network breaks is waited for.
TEST(Nccl, NobodyIsInsideWhenAllIsAborted) {
  const Plan plan = lowered(tiny_mlp(), single({.dp = 2, .batch = {.micro = 2}}));
  for (const int call : {0, 1, 2}) {
    const Ran ran = run_on_twin(plan, {.failing_call = call + 1, .stalled_call = call});
    EXPECT_NE(ran.failure, "") << call;
    EXPECT_EQ(ran.report.aborted, ran.report.comms) << call;
    for (const std::string& complaint : ran.report.complaints) ADD_FAILURE() << call << ": " << complaint;
  }
}

// A rank that does not come to the meeting: the others do not wait for ever.
TEST(Nccl, AMeetingThatIsNeverCompleteIsGivenUp) {
  const Plan plan = lowered(tiny_mlp(), single({.dp = 2, .batch = {.micro = 2}}));
  for (const int comm : {1, 3}) {
    const auto begin = std::chrono::steady_clock::now();
    const Ran ran = run_on_twin(plan, {.never_ready = comm}, 1, std::chrono::milliseconds(300));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
    EXPECT_NE(ran.failure.find(comm == 1 ? "ncclCommInitRankConfig failed: not all ranks were there after 300 ms"
                                         : "ncclCommSplit failed: not all ranks were there after 300 ms"),
              std::string::npos)
        << ran.failure;
    EXPECT_EQ(ran.report.aborted, ran.report.comms);
  }
}

TEST(Nccl, AnOldLibraryIsRefused) {
  FakeRuntime runtime;
  TwinSession twin({.version = 21706});
  try {
    const nccl::Library again(FORESHARD_NCCL_TWIN);
    FAIL() << "it was taken";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("version 2.17.6; 2.26 or later is needed"), std::string::npos) << error.what();
  }
  EXPECT_THROW(nccl::Library("/nowhere/libnccl.so.2"), DeviceError);
}

// Where there is a real one, it has all calls; nothing of it is called but its version.
TEST(Nccl, TheRealLibraryHasTheCalls) {
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  if (nccl::candidates(variable).empty()) GTEST_SKIP() << "no libnccl.so.2 here";
  EXPECT_GE(nccl::open_library(variable)->version(), nccl::kOldest);
}

// ---- the twin sees mistakes -------------------------------------------------------------------------------------------------

// A call that a rank leaves out, or makes with one element less, anywhere in a training. Each is complained about, or the run stops.
TEST(NcclTwin, EveryDroppedOrShortenedCallOfATrainingIsSeen) {
  const Plan plan = lowered(tiny_mlp(), single({.dp = 2, .batch = {.micro = 2}}));
  const Ran whole = run_on_twin(plan);
  ASSERT_TRUE(whole.report.complaints.empty());
  for (int call = 0; call < whole.report.calls; call += 2) {
    for (const bool dropped : {true, false}) {
      TwinSettings settings;
      (dropped ? settings.dropped_call : settings.shortened_call) = call;
      FakeRuntime runtime({.seed = 3, .devices = 2});
      TwinSession twin(settings);
      ExecuteOptions options = options_for(plan, runtime, twin.library());
      options.patience = std::chrono::milliseconds(300);
      bool failed = false;
      try {
        static_cast<void>(execute(plan, options));
      } catch (const DeviceError&) {
        failed = true;
      }
      EXPECT_TRUE(failed || !twin.end().complaints.empty()) << call << (dropped ? " dropped" : " shortened");
    }
  }
}

}  // namespace
}  // namespace foreshard::gpu::nccl_test
