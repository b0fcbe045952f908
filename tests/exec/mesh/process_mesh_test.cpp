// Meshes of several processes, each played by a thread of this one, over loopback.
#include "exec/mesh/process_mesh.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <future>
#include <random>

#include "core/base/error.h"
#include "exec/arithmetic/host_float16.h"
#include "exec/communicator/tcp_communicator.h"
#include "exec/communicator/thread_communicator.h"
#include "exec/mesh/mesh_frame.h"
#include "exec/mesh/mesh_words.h"
#include "tests/exec/processes.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::process_mesh_test {
namespace {

using namespace std::chrono_literals;

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// 5 ranks on 3 processes: 0, 1-2, 3-4, as floor(p 5 / 3) = 0, 1, 3, 5 says.
TEST(ProcessMesh, DealsRanksInOrder) {
  in_processes(3, 5, [](ProcessMesh& mesh) {
    EXPECT_EQ(mesh.first_rank(0), 0);
    EXPECT_EQ(mesh.first_rank(1), 1);
    EXPECT_EQ(mesh.first_rank(2), 3);
    EXPECT_EQ(mesh.first_rank(3), 5);
    const int expected[] = {0, 1, 1, 2, 2};
    for (std::int32_t r = 0; r < 5; ++r) EXPECT_EQ(mesh.process_of({r}), expected[r]);
  });
}

TEST(ProcessMesh, GathersWordsInOrder) {
  in_processes(4, 4, [](ProcessMesh& mesh) {
    for (int round = 0; round < 20; ++round) {
      const std::string own = std::string(static_cast<std::size_t>(mesh.process()), 'x') + std::to_string(round);
      const std::vector<std::string> all = mesh.all_gather(own);
      ASSERT_EQ(all.size(), 4U);
      for (std::size_t p = 0; p < 4; ++p) EXPECT_EQ(all[p], std::string(p, 'x') + std::to_string(round));
      EXPECT_EQ(mesh.gather(own).size(), mesh.process() == 0 ? 4U : 0U);
    }
  });
}

// All ranks pass a collective to `make`, once through threads and once through processes.
using Blocks = std::vector<std::vector<std::byte>>;
struct Case {
  Collective what = {};
  DType dtype = DType::F64;
  std::int64_t in = 0, out = 0;  // bytes; out 0: in place
};

Blocks drawn(const Case& at, int ranks, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Blocks blocks(static_cast<std::size_t>(ranks), std::vector<std::byte>(static_cast<std::size_t>(at.in)));
  for (auto& block : blocks)
    for (std::size_t i = 0; i < block.size(); i += static_cast<std::size_t>(size_of(at.dtype).value)) {
      if (at.dtype == DType::F64) {
        const double x = uniform(random);
        std::memcpy(&block[i], &x, sizeof x);
      } else {
        const BFloat16 x = to_bfloat16(static_cast<float>(uniform(random)));
        std::memcpy(&block[i], &x, sizeof x);
      }
    }
  return blocks;
}

CollectiveCall call_of(const Case& at, int ranks, std::vector<std::byte>& in, std::vector<std::byte>& out) {
  CollectiveCall call{.what = at.what, .from = {in.data(), {at.in}, at.dtype}, .where = "test"};
  call.to = at.out == 0 ? call.from : MemoryRange{out.data(), {at.out}, at.dtype};
  for (std::int32_t r = 0; r < ranks; ++r) call.members.push_back({r});
  return call;
}

Blocks by_threads(const Case& at, int ranks) {
  Stop stop;
  ThreadMeetings meetings(stop);
  Blocks in = drawn(at, ranks, 7), out(in.size(), std::vector<std::byte>(static_cast<std::size_t>(at.out)));
  std::vector<std::unique_ptr<StreamTask>> tasks;
  for (std::int32_t r = 0; r < ranks; ++r) {
    const auto i = static_cast<std::size_t>(r);
    tasks.push_back(ThreadCommunicator(meetings, {r}).collective(call_of(at, ranks, in[i], out[i])));
  }
  std::vector<std::thread> threads;
  for (auto& task : tasks) threads.emplace_back([&task] { task->run(0), task->run(1); });
  for (std::thread& thread : threads) thread.join();
  return at.out == 0 ? in : out;
}

Blocks by_processes(const Case& at, int ranks, int processes, bool lends) {
  Blocks in = drawn(at, ranks, 7), out(in.size(), std::vector<std::byte>(static_cast<std::size_t>(at.out)));
  in_processes(processes, ranks, lends, [&](ProcessMesh& mesh) {
    Stop stop;
    std::vector<std::unique_ptr<StreamTask>> tasks;
    for (std::int32_t r = mesh.first_rank(mesh.process()); r < mesh.first_rank(mesh.process() + 1); ++r) {
      const auto i = static_cast<std::size_t>(r);
      tasks.push_back(TcpCommunicator(mesh, stop, {r}).collective(call_of(at, ranks, in[i], out[i])));
    }
    std::vector<std::thread> threads;
    for (auto& task : tasks) threads.emplace_back([&task] { task->run(0), task->run(1); });
    for (std::thread& thread : threads) thread.join();
    static_cast<void>(mesh.all_gather(""));
  });
  return at.out == 0 ? in : out;
}

// Bit for bit, run twice in a row, 4 ranks as 4 and as 3 processes (two ranks in one), through memory and through the network.
TEST(TcpCommunicator, CollectivesGiveTheBitsOfThreads) {
  using K = CollectiveKind;
  const std::int64_t full = 4 * 8 * 129, part = full / 4;
  std::vector<Case> cases = {
      {{.kind = K::AllReduce, .bytes = {full + 8}}, DType::F64, full + 8, 0},
      {{.kind = K::AllReduce, .bytes = {full}, .combine = Combine::Mean}, DType::F64, full, full},
      {{.kind = K::AllReduce, .bytes = {8}, .combine = Combine::Max}, DType::F64, 8, 0},
      {{.kind = K::AllReduce, .bytes = {full}, .accumulate = true}, DType::BF16, full, full},
      {{.kind = K::AllReduce, .bytes = {full}}, DType::BF16, full, 0},
      {{.kind = K::ReduceScatter, .bytes = {full}}, DType::F64, full, 0},
      {{.kind = K::ReduceScatter, .bytes = {full}, .accumulate = true}, DType::BF16, full, part},
      {{.kind = K::AllGather, .bytes = {full}}, DType::F64, full, 0},
      {{.kind = K::AllGather, .bytes = {full}}, DType::F64, part, full},
      {{.kind = K::Broadcast, .bytes = {full}}, DType::F64, full, 0},
      {{.kind = K::Reduce, .bytes = {full}}, DType::F64, full, full},
      {{.kind = K::AllToAll, .bytes = {full}}, DType::F64, full, full},
      // Of many chunks, the last of which are of other sizes than the rest, and differ from slice to slice.
      {{.kind = K::AllReduce, .bytes = {10'000'008}}, DType::F64, 10'000'008, 0},
      {{.kind = K::AllReduce, .bytes = {6'000'016}, .accumulate = true}, DType::BF16, 6'000'016, 6'000'016},
      {{.kind = K::ReduceScatter, .bytes = {3'000'000}}, DType::F64, 3'000'000, 750'000},
      {{.kind = K::Reduce, .bytes = {2'000'000}}, DType::F64, 2'000'000, 2'000'000},
      {{.kind = K::AllGather, .bytes = {2'000'000}}, DType::F64, 500'000, 2'000'000},
      {{.kind = K::Broadcast, .bytes = {2'000'000}}, DType::F64, 2'000'000, 0},
      {{.kind = K::AllToAll, .bytes = {2'000'000}}, DType::F64, 2'000'000, 2'000'000}};
  // Every algorithm: rounds of messages instead of sums of all at once.
  using A = Algorithm;
  for (const A algorithm : {A::Tree, A::DoubleTree, A::Hierarchical, A::TwoDimensional, A::ParameterServer, A::GatherToRoot})
    for (const std::int64_t bytes : {std::int64_t{8}, full + 8})
      for (const bool accumulate : {false, true})
        cases.push_back({{.algorithm = algorithm, .bytes = {bytes}, .accumulate = accumulate, .servers = 2},
                         DType::F64,
                         bytes,
                         accumulate ? bytes : 0});
  for (const A algorithm : {A::DoubleTree, A::TwoDimensional})  // of several messages
    cases.push_back({{.algorithm = algorithm, .bytes = {3'000'008}}, DType::F64, 3'000'008, 0});
  cases.push_back({{.algorithm = A::ParameterServer, .bytes = {full + 8}, .servers = 4}, DType::F64, full + 8, 0});
  cases.push_back(
      {{.kind = K::ReduceScatter, .algorithm = A::Hierarchical, .bytes = {full}, .servers = 2}, DType::F64, full, part});
  cases.push_back({{.kind = K::AllGather, .algorithm = A::TwoDimensional, .bytes = {full}}, DType::F64, part, full});
  cases = some_of(std::move(cases), 8);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].what.group = {0};
    const Blocks expected = by_threads(cases[i], 4);
    for (const int processes : {4, 3})
      for (const bool lends : {true, false})
        EXPECT_EQ(by_processes(cases[i], 4, processes, lends), expected) << "case " << i << ", " << processes << ", " << lends;
  }
}

// Two messages are lent before anybody waits for them. The first is taken in two pieces, the second has not the size that is awaited.
TEST(ProcessMesh, WhatIsLentMayComeEarly) {
  in_processes(2, 2, [](ProcessMesh& mesh) {
    std::vector<std::byte> bytes(100'000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
    if (mesh.process() == 0) {
      for (int i = 0; i < 2; ++i) EXPECT_EQ(mesh.lend({0}, {1}, 9, bytes, 0), mesh.lends_to({1}));
      for (int i = 0; i < 2; ++i) static_cast<void>(mesh.all_gather(""));  // they have come; they have been taken
      return;
    }
    static_cast<void>(mesh.all_gather(""));
    std::vector<std::byte> place(bytes.size());
    std::condition_variable changed;
    Stop stop;
    MeshWatch watch(mesh, std::array{RankId{0}});
    MeshReceive whole{.place = place, .changed = &changed},
        short_one{.place = std::span(place).first(99'999), .changed = &changed};
    mesh.post({0}, {1}, 9, whole);
    mesh.meet({0}, whole, stop, watch);
    if (mesh.borrows_from({0}))
      for (const std::size_t at : {0, 60'000})
        mesh.take({0}, whole, at, std::span(place).subspan(at, at == 0 ? 60'000 : 40'000));
    EXPECT_EQ(place, bytes);
    mesh.post({0}, {1}, 9, short_one);
    EXPECT_EQ(message([&] { mesh.await({0}, short_one, stop, watch); }),
              "receiving from process 0 (rank 0) failed: a message of 100000 bytes instead of 99999 bytes");
    watch.end();
    static_cast<void>(mesh.all_gather(""));
  });
}

// A whole training: losses of every step are the same double.
TEST(TcpCommunicator, TrainingGivesTheLossesOfThreads) {
  const Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 1}}));
  ExecuteOptions threads = training(3);
  threads.tensors = false;
  const Execution expected = run(plan, threads);
  in_processes(3, 8, [&](ProcessMesh& mesh) {
    ExecuteOptions here = threads;
    here.processes = &mesh;
    here.patience = 20s;
    const Execution done = run(plan, here);
    ASSERT_EQ(done.steps.size(), 3U);
    for (std::size_t s = 0; s < 3; ++s) EXPECT_EQ(done.steps[s].loss, expected.steps[s].loss);
    if (mesh.process() != 0) {
      EXPECT_TRUE(done.result.trace.spans.empty());
      return;
    }
    EXPECT_EQ(done.result.trace.spans.size(), expected.result.trace.spans.size());
    EXPECT_EQ(done.peaks.size(), 8U);
    for (std::size_t r = 0; r < 8; ++r) EXPECT_EQ(sum(done.result.memory.curves[r].peak), sum(done.peaks[r]));
  });
}

// A rank that fails in one process stops all, and all tell which one it was.
TEST(ProcessMesh, AFailureAnywhereStopsAll) {
  const Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .pp = 2, .batch = {.micro = 1}}));
  std::atomic<int> told = 0;
  in_processes(2, 4, [&](ProcessMesh& mesh) {
    ExecuteOptions here = training(3);
    here.tensors = false, here.processes = &mesh, here.patience = 20s;
    here.before = [](RankId rank, int action, int, int run) {
      if (rank.value == 3 && action == 2 && run == 1) throw std::runtime_error("the cable was pulled");
    };
    try {
      static_cast<void>(execute(plan, here));
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 3, action 2"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("the cable was pulled"), std::string::npos) << error.what();
      ++told;
    }
  });
  EXPECT_EQ(told, 2);
}

// A rank that hangs in another process is blamed by all, not those that wait for it.
TEST(ProcessMesh, AHangAnywhereIsNamedByAll) {
  // The rank comes back when the test is over; nobody waits for threads that were given up, so their plan stays for good.
  static const Plan& plan = *new Plan(lowered(tiny_gpt(), in_double({.dp = 2, .pp = 2, .batch = {.micro = 1}})));
  static std::atomic<int> told = 0;
  in_processes(2, 4, [&](ProcessMesh& mesh) {
    ExecuteOptions here = training(2);
    here.tensors = false, here.processes = &mesh, here.patience = 1500ms;
    here.before = [](RankId rank, int action, int instruction, int run) {
      for (int i = 0; rank.value == 3 && action == 2 && instruction == 1 && run == 1 && told < 2 && i < 6000; ++i)
        std::this_thread::sleep_for(10ms);
    };
    try {
      static_cast<void>(execute(plan, here));
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 3, action 2"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("instruction 1"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("does not come to an end"), std::string::npos) << error.what();
      ++told;
    }
  });
  EXPECT_EQ(told, 2);
}

TEST(ProcessMesh, WhoDoesNotComeIsNamed) {
  MeshOptions first = mesh_options(0, 3, 4, free_port()), second = mesh_options(1, 3, 4, free_port());
  first.rendezvous = second.rendezvous = 200ms;
  EXPECT_EQ(message([&] { ProcessMesh mesh(first); }),
            "rendezvous on port " + std::to_string(first.place.port) +
                " (MASTER_PORT) failed: of 3 processes these did not come within 200 ms: 1, 2");
  const std::string lonely = message([&] { ProcessMesh mesh(second); });
  EXPECT_NE(lonely.find("rendezvous of process 1 (MASTER_ADDR, MASTER_PORT) failed: connection to 127.0.0.1:"),
            std::string::npos)
      << lonely;
  EXPECT_EQ(message([&] { ProcessMesh mesh(mesh_options(0, 3, 2, free_port())); }),
            "environment: number of processes: found 3, expected at most 2, the ranks of the plan");
}

// What else knocks at the door (a scanner of ports, a browser, somebody who says nothing or sends noise) is shown out, and the
// processes of the run meet all the same.
// A name that this machine resolves to its own loopback address, as Debian's /etc/hosts does with the machine's name; here a spelling of it that is
// no address to inet_pton. Nobody outside can connect, so process 0 says why the others may not come.
TEST(ProcessMesh, ListensAtTheRequestedAddressOnly) {
  EXPECT_EQ(ListeningSocket("127.1", 0).address(), "127.0.0.1");
  EXPECT_EQ(ListeningSocket("127.0.0.2", 0).address(), "127.0.0.2");
  EXPECT_EQ(ListeningSocket(0).address(), "0.0.0.0");
  MeshOptions options = mesh_options(0, 2, 2, free_port());
  options.place.address = "127.1", options.rendezvous = std::chrono::milliseconds(100);
  std::string said;
  try {
    const ProcessMesh mesh(options);
  } catch (const DeviceError& error) {
    said = error.what();
  }
  EXPECT_TRUE(
      said.ends_with("; 127.1 is 127.0.0.1 here, where other machines cannot connect (MASTER_ADDR: an address of the network)"))
      << said;
}

TEST(ProcessMesh, StrangersAreShownOut) {
  const int port = free_port();
  std::vector<std::future<void>> all;
  all.push_back(std::async(std::launch::async, [&] { ProcessMesh mesh(mesh_options(0, 2, 2, port)); }));
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    Socket stranger = Socket::connect("127.0.0.1", port, std::chrono::steady_clock::now() + 20s);
    std::string noise(random() % 200, ' ');
    for (char& c : noise) c = static_cast<char>(random());
    if (i % 4 == 1) noise = "GET / HTTP/1.1\r\n\r\n";
    if (i % 4 == 2 && noise.size() >= 8) {  // the right first word, then lies
      const std::uint32_t magic = 0x66736831;
      std::memcpy(noise.data(), &magic, sizeof magic);
    }
    if (!noise.empty()) stranger.send(noise.data(), noise.size());
  }
  all.push_back(std::async(std::launch::async, [&] { ProcessMesh mesh(mesh_options(1, 2, 2, port)); }));
  for (auto& one : all) EXPECT_NO_THROW(one.get());
}

// What two processes hear that run different things.
static std::vector<std::string> refusals(const std::function<std::string(int process)>& run) {
  const int port = free_port();
  std::vector<std::future<std::string>> said;
  for (int p = 0; p < 2; ++p)
    said.push_back(std::async(std::launch::async, [&, p] {
      return message([&] {
        MeshOptions own = mesh_options(p, 2, 2, port);
        own.run = run(p);
        ProcessMesh mesh(own);
      });
    }));
  std::vector<std::string> all;
  for (auto& one : said) all.push_back(one.get());
  return all;
}

TEST(ProcessMesh, OtherPlansAreRefusedEverywhere) {
  for (const std::string& one : refusals([](int p) { return "plan=abc\nsteps=" + std::to_string(3 + p) + "\n"; }))
    EXPECT_EQ(one, "rendezvous failed: process 1: found steps=4, expected steps=3, which process 0 runs");
}

TEST(ProcessMesh, AnotherKindOfDeviceIsRefused) {
  for (const std::string& one :
       refusals([](int p) { return std::string("plan=abc\ndevice=") + (p == 0 ? "NVIDIA H100" : "host") + "\n"; }))
    EXPECT_EQ(one, "rendezvous failed: process 1: found device=host, expected device=NVIDIA H100, which process 0 runs");
}

// Of three, the second comes and is killed before the third has come: nobody waits for the third until the time is over.
TEST(ProcessMesh, WhoEndsDuringTheRendezvousIsNamed) {
  const int port = free_port();
  auto first = std::async(std::launch::async, [&] { return message([&] { ProcessMesh mesh(mesh_options(0, 3, 3, port)); }); });
  {
    Socket second = Socket::connect("127.0.0.1", port, std::chrono::steady_clock::now() + 20s);
    const std::string hello = text_of(MeshHello{1, 3, 4711, "", ""});
    const MeshFrame frame{.bytes = static_cast<std::int64_t>(hello.size())};
    second.send(&frame, sizeof frame), second.send(hello.data(), hello.size());
    std::this_thread::sleep_for(100ms);
  }
  ASSERT_EQ(first.wait_for(10s), std::future_status::ready);
  EXPECT_EQ(first.get(), "rendezvous failed: process 1 (rank 1) has ended before all had come");
}

// A process that is no longer scheduled takes nothing from its connection: a message larger than what the kernel keeps does not hold its sender
// for longer than the patience.
TEST(ProcessMesh, ASenderOfMuchIsFreedWhenTheOtherHangs) {
  const int port = free_port();
  auto first = std::async(std::launch::async, [&] {
    MeshOptions own = mesh_options(0, 2, 2, port);
    own.patience = 700ms;
    ProcessMesh mesh(own);
    const std::vector<std::byte> much(std::size_t{64} << 20U);
    return message([&] { mesh.send({0}, {1}, 3, much, 0); });
  });
  Socket hung = Socket::connect("127.0.0.1", port, std::chrono::steady_clock::now() + 20s);
  const std::string hello = text_of(MeshHello{1, 2, 4711, "", ""});
  const MeshFrame frame{.bytes = static_cast<std::int64_t>(hello.size())};
  hung.send(&frame, sizeof frame), hung.send(hello.data(), hello.size());
  MeshFrame answer;
  ASSERT_TRUE(hung.receive(&answer, sizeof answer));
  std::vector<char> welcome(static_cast<std::size_t>(answer.bytes));
  ASSERT_TRUE(hung.receive(welcome.data(), welcome.size()));
  for (std::int64_t i = 0, time = 0; i < 8; ++i) {
    hung.send(&time, sizeof time);
    ASSERT_TRUE(hung.receive(&time, sizeof time));
  }
  pass_as_neighbour(hung);
  ASSERT_EQ(first.wait_for(20s), std::future_status::ready);
  EXPECT_NE(first.get().find("failed"), std::string::npos);
}

}  // namespace
}  // namespace foreshard::process_mesh_test
