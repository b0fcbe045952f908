// foreshard run in several real processes, started as launchers start them.
#include "tests/cli/processes.h"
#include "core/profile/machine_profile.h"

#include "core/result/result.h"

namespace foreshard {

// 8 ranks as 4 processes (torchrun), as 3 unequal ones (Open MPI), as 8 (Slurm): the losses are the same doubles.
TEST_F(Processes, TrainAsThreadsDo) {
  const std::vector<double> expected = alone();
  ASSERT_EQ(expected.size(), 3U);
  struct Launch {
    const char *number, *count;
    int processes;
  };
  for (const Launch& launch : {Launch{"RANK", "WORLD_SIZE", 4},
                               {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", 3},
                               {"SLURM_PROCID", "SLURM_NTASKS", 8}}) {
    shell(start(launch.number, launch.count, launch.processes, port(), "--steps 3 --json") + "wait");
    EXPECT_EQ(losses(file("out.0")), expected) << launch.number << ": " << file("err.0");
    EXPECT_EQ(file("out.1"), "") << "only process 0 speaks";
  }
}

// The trace of all ranks is whole: it has a twin for every span of the threads' run, and memory is equal to the byte.
TEST_F(Processes, ProcessZeroWritesTheWholeResult) {
  shell("foreshard run p.plan.json --steps 2 --patience 60 --launcher none --save-result threads.result");
  shell(start("RANK", "WORLD_SIZE", 2, port(), "--steps 2 --time emulated --save-result processes.result") + "wait");
  const RanLine compared =
      run_line("compare " + (folder_ / "threads.result").string() + " " + (folder_ / "processes.result").string() + " --json");
  ASSERT_EQ(compared.code, ExitCode::Ok) << compared.err << file("err.0");
  const JsonReader json = JsonReader::parse(compared.out, "out");
  EXPECT_EQ(json.at("ranks").as_int(), 8);
  EXPECT_EQ(json.at("without_twin").as_int(), 0);
  EXPECT_GT(json.at("joined").as_int(), 100);
}

// The second process has a clock that is 1000 s ahead (a time namespace). In the trace, on the clock of process 0, the ranks' instructions lie
// beside each other all the same: a step takes seconds.
TEST_F(Processes, ClocksThatDifferMakeOneTrace) {
  const std::string tried = shell("unshare --time --monotonic 1000 --fork cat /proc/uptime");
  if (tried.find("[exit") != std::string::npos) GTEST_SKIP() << "no time namespaces here: " << tried;
  std::string begin = start("RANK", "WORLD_SIZE", 2, port(), "--steps 2 --log --save-result kept.result");
  begin.replace(begin.find(" foreshard run"), 1, " $(test $r = 1 && echo unshare --time --monotonic 1000 --fork) ");
  shell(begin + "wait");
  const std::string told = file("err.1"), words = "clock of process 0: ";
  ASSERT_NE(told.find(words), std::string::npos) << told;
  EXPECT_NEAR(std::stod(told.substr(told.find(words) + words.size())), -1e12, 1e10) << told;
  EXPECT_LT(load_result((folder_ / "kept.result").string()).trace.makespan.value, 60'000'000'000);
}

TEST_F(Processes, OneThatIsKilledStopsTheOthers) {
  const std::string said =
      shell("trap 'kill -9 $pid0 $pid1 $pid2 2>/dev/null' EXIT\n" +
            start("RANK", "WORLD_SIZE", 3, port(), "--steps 100000 --progress json") +
            "for i in $(seq 1000); do grep -qs progress err.0 && break; sleep 0.05; done; sleep 1.5; kill -9 $pid1\n"
            "wait $pid0; echo first $?; wait $pid2; echo third $?");
  EXPECT_EQ(said, "first 3\nthird 3\n");
  for (const char* name : {"err.0", "err.2"}) {
    EXPECT_NE(file(name).find("process 1 (rank 2 to 4)"), std::string::npos) << file(name);
    EXPECT_NE(file(name).find("last heard of in rank "), std::string::npos) << file(name);
    EXPECT_NE(file(name).find("instruction "), std::string::npos) << file(name);
  }
}

// One that is stopped (by a debugger, a dead network, a machine that swaps) is not heard of any more.
TEST_F(Processes, OneThatIsSilentStopsTheOthers) {
  std::string begin = start("RANK", "WORLD_SIZE", 3, port(), "--steps 100000 --progress json");
  begin.replace(begin.find("--patience 60"), 13, "--patience 2 ");
  const std::string said =
      shell("trap 'kill -9 $pid0 $pid1 $pid2 2>/dev/null' EXIT\n" + begin +
            "for i in $(seq 1000); do grep -qs progress err.0 && break; sleep 0.05; done; sleep 1.5; kill -STOP $pid1\n"
            "wait $pid0; echo first $?; wait $pid2; echo third $?");
  EXPECT_EQ(said, "first 3\nthird 3\n");
  for (const char* name : {"err.0", "err.2"}) {
    EXPECT_NE(file(name).find("process 1 (rank 2 to 4): not heard of for 2000 ms; last heard of in rank "), std::string::npos)
        << file(name);
    EXPECT_NE(file(name).find("instruction "), std::string::npos) << file(name);
  }
}

// Killed at many moments while they save after every step, by one process at a time: the file is always whole, and another number
// of processes goes on from it to the losses of a run that nobody killed.
TEST_F(Processes, CheckpointsSurviveAKillAtAnyMoment) {
  const std::vector<double> whole = losses(shell("foreshard run p.plan.json --steps 60 --json --launcher none --patience 60"));
  ASSERT_EQ(whole.size(), 60U);
  int resumed = 0;
  for (int moment = 0; moment < 8; ++moment) {
    shell("rm -f kept; trap 'kill -9 $pid0 $pid1 $pid2 2>/dev/null' EXIT\n" +
          start("RANK", "WORLD_SIZE", 3, port(), "--steps 100000 --save kept --save-every 1 --progress json") +
          "for i in $(seq 1000); do [ -e kept ] && break; sleep 0.02; done; sleep 0.0" + std::to_string(moment) +
          "; kill -9 $pid" + std::to_string(moment % 3) + "; wait");
    if (!fs::exists(folder_ / "kept")) continue;
    const std::string told =
        shell(start("RANK", "WORLD_SIZE", 2, port(), "--steps 1 --resume kept --json") + "wait; cat out.0");
    const std::string step = shell("head -c 4000 kept | grep -ao '\"step\": *\"[0-9]*' | grep -o '[0-9]*$'");
    const auto done = static_cast<std::size_t>(std::stoi(step));
    ASSERT_EQ(losses(told).size(), 1U) << file("err.0");
    if (done < whole.size()) {
      EXPECT_EQ(losses(told)[0], whole[done]) << "after " << done << " steps";
      ++resumed;
    }
  }
  EXPECT_GE(resumed, 3);
}

TEST_F(Processes, WhoIsMissingOrRunsSomethingElseIsTold) {
  EXPECT_NE(shell("RANK=0 WORLD_SIZE=2 MASTER_PORT=" + port() + " foreshard run p.plan.json --rendezvous 0.2")
                .find("of 2 processes these did not come within 200 ms: 1\n[exit 3]"),
            std::string::npos);
  shell("export MASTER_PORT=" + port() +
        " WORLD_SIZE=2; RANK=0 foreshard run p.plan.json --seed 1 2>err.0 & RANK=1 foreshard run p.plan.json --seed 2 2>err.1; "
        "wait");
  for (const char* name : {"err.0", "err.1"})
    EXPECT_EQ(file(name), "foreshard: rendezvous failed: process 1: found --seed=2, expected --seed=1, which process 0 runs\n");
  EXPECT_EQ(shell("RANK=0 WORLD_SIZE=9 foreshard run p.plan.json"),
            "foreshard: environment: number of processes: found 9, expected at most 8, the ranks of the plan\n[exit 1]\n");
}

// A file of the same name with other bytes on another machine would be another training, without a word.
TEST_F(Processes, ReadTheSameDataOrNone) {
  shell("mkdir d0 d1; for i in $(seq 50); do echo $i; done | tee d0/book.txt >d1/book.txt");
  std::string begin = start("RANK", "WORLD_SIZE", 2, port(), "--steps 2 --data book.txt");
  begin.replace(begin.find("env RANK"), 3, "env -C d$r").replace(begin.find("p.plan.json"), 0, "../");
  EXPECT_EQ(shell(begin + "wait $pid0 && wait $pid1 && echo well"), "well\n") << file("err.0") << file("err.1");
  shell("echo 51 >>d1/book.txt");
  begin.replace(begin.find("MASTER_PORT="), begin.find(" foreshard") - begin.find("MASTER_PORT="), "MASTER_PORT=" + port());
  EXPECT_NE(shell(begin + "wait $pid0; wait $pid1").find("[exit 1]"), std::string::npos);
  EXPECT_NE(file("err.1").find("book.txt: data: found book.txt (144 bytes, "), std::string::npos) << file("err.1");
  EXPECT_NE(file("err.1").find("expected the bytes that process 0 reads: book.txt (141 bytes, "), std::string::npos)
      << file("err.1");
}

// Two jobs on one port. The second finds the door taken, its other process is sent away and told why, both with code 3; the first does not even
// notice. The job's word itself is told to nobody.
TEST_F(Processes, TwoJobsOnOnePortDoNotMix) {
  const std::string place = port();
  const auto process = [&](const std::string& job, int rank, const std::string& name) {
    return "FORESHARD_JOB=word-" + job + " RANK=" + std::to_string(rank) + " WORLD_SIZE=2 MASTER_PORT=" + place +
           " foreshard run p.plan.json --steps 3 --patience 60 --rendezvous 60 --log --json >out." + name + " 2>err." + name;
  };
  const std::string said = shell(process("a", 0, "a0") + " & first=$!\n" +
                                 "for i in $(seq 1000); do grep -qs listens err.a0 && break; sleep 0.02; done\n" +
                                 process("b", 0, "b0") + "; echo b0 $?\n" + process("b", 1, "b1") + "; echo b1 $?\n" +
                                 process("a", 1, "a1") + "; echo a1 $?; wait $first; echo a0 $?");
  EXPECT_EQ(said, "b0 3\nb1 3\na1 0\na0 0\n");
  EXPECT_NE(file("err.b0").find("listening on 127.0.0.1 port " + place + " failed: Address already in use"), std::string::npos)
      << file("err.b0");
  EXPECT_NE(file("err.b1").find("rendezvous failed: another job (FORESHARD_JOB) meets at port " + place), std::string::npos)
      << file("err.b1");
  EXPECT_EQ(losses(file("out.a0")), alone());
  for (const char* name : {"err.a0", "err.a1", "err.b0", "err.b1"}) EXPECT_EQ(file(name).find("word-"), std::string::npos);
}

// What is wrong is told with the code of a run that fails; what is right with 0.
TEST_F(Processes, TheDoctorEndsAsARunWould) {
  const ListeningSocket taken("127.0.0.1", 0);
  const std::string sick = shell("RANK=0 WORLD_SIZE=2 MASTER_PORT=" + std::to_string(taken.port()) + " foreshard doctor");
  EXPECT_NE(sick.find("Address already in use\n"), std::string::npos) << sick;
  EXPECT_NE(sick.find("-> choose another MASTER_PORT, in all processes\n"), std::string::npos) << sick;
  EXPECT_TRUE(sick.ends_with("A run would fail here.\n[exit 3]\n")) << sick;
  const std::string well = shell("RANK=0 WORLD_SIZE=2 MASTER_PORT=" + port() + " foreshard doctor --json");
  const JsonReader json = JsonReader::parse(well, "out");
  EXPECT_TRUE(json.at("runs").as_bool());
  EXPECT_EQ(json.at("findings").elements().at(0).at("topic").as_string(), "launcher");
  EXPECT_EQ(json.at("findings").elements().at(0).at("health").as_string(), "ok");
}

// What the links between the processes do goes into the profile, class by class; what else stood there stays.
TEST_F(Processes, CalibrateMeasuresCollectivesBetweenProcesses) {
  std::string begin = start("RANK", "WORLD_SIZE", 2, port(), "--quick --json --collectives");
  const std::string run = "foreshard run p.plan.json --patience 60 --rendezvous 60";
  begin.replace(begin.find(run), run.size(), "foreshard calibrate");
  shell(begin + "wait");
  const JsonReader told = JsonReader::parse(file("out.0"), "out");
  EXPECT_EQ(told.at("collectives").elements().size(), 20U) << file("err.0");  // five kinds of 4, 16, 64, 256 KiB
  EXPECT_EQ(told.at("collectives").at(0).at("link").as_string(), "node");
  EXPECT_EQ(file("out.1"), "");
  EXPECT_EQ(load_machine_profile((folder_ / "host.profile.json").string()).link_latency.value,
            told.at("link_latency").as_double());
  // The same two as if they were on two nodes: beside those of one node.
  begin = begin.replace(begin.find("env RANK"), 8, "env FORESHARD_NODE=n$r RANK");
  begin.replace(begin.find("MASTER_PORT="), begin.find(" foreshard") - begin.find("MASTER_PORT="), "MASTER_PORT=" + port());
  shell(begin + "wait");
  const MachineProfile profile = load_machine_profile((folder_ / "host.profile.json").string());
  ASSERT_EQ(profile.collectives.size(), 40U) << file("err.0");
  EXPECT_EQ(profile.collectives.front().link, MeasuredLink::Node);
  EXPECT_EQ(profile.collectives.back().link, MeasuredLink::Network);
  EXPECT_EQ(profile.collectives.back().nodes, 2);
  EXPECT_EQ(profile.link_latency.value, told.at("link_latency").as_double());
  EXPECT_EQ(shell("foreshard run p.plan.json --launcher none --steps 2 --time emulated --profile host.profile.json >out")
                .find("exit"),
            std::string::npos);
}

// One process measures its threads, and tells what a person asked wrongly before it measures anything.
TEST_F(Processes, CalibrateMeasuresCollectivesInsideOneProcess) {
  const std::string text = shell("foreshard calibrate --collectives --quick --ranks 3 --save-profile threads.json");
  EXPECT_NE(text.find("all_reduce      direct     process      1      3  262,140"), std::string::npos) << text;
  EXPECT_NE(text.find("\nlink process: "), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("fitted to the all-reduces\nwritten: threads.json\n")) << text;
  EXPECT_EQ(shell("foreshard calibrate --collectives --link-class network"),
            "foreshard: command line: --link-class: found \"network\", expected one of process, node, nvlink, pcie\n"
            "[exit 1]\n");
  EXPECT_NE(shell("foreshard calibrate --collectives --ranks 1").find("--ranks: found "), std::string::npos);
  shell("sed 's/\"host\"/\"h100-80\"/' threads.json >gpu.json");
  EXPECT_EQ(
      shell("foreshard calibrate --collectives --quick --save-profile gpu.json"),
      "foreshard: gpu.json: device: found \"h100-80\", expected \"host\", which is measured (--save-profile names another "
      "file)\n[exit 1]\n");
}

// Two hosts, as far as the kernel is concerned: network namespaces joined by a virtual cable. Needs root.
TEST_F(Processes, MeetAcrossNetworkNamespaces) {
  const std::string a = "fs" + std::to_string(::getpid()) + "a", b = "fs" + std::to_string(::getpid()) + "b";
  const std::string made =
      shell("ip netns add " + a + " && ip netns add " + b + " && ip link add v" + a + " netns " + a + " type veth peer name v" +
            b + " netns " + b + " && ip -n " + a + " addr add 10.77.0.1/24 dev v" + a + " && ip -n " + b +
            " addr add 10.77.0.2/24 dev v" + b + " && ip -n " + a + " link set v" + a + " up && ip -n " + b + " link set v" +
            b + " up && echo ready");
  const auto clean = [&] { shell("ip netns del " + a + "; ip netns del " + b); };
  if (made.find("ready") == std::string::npos) {
    clean();
    GTEST_SKIP() << "no network namespaces here: " << made;
  }
  const std::vector<double> expected = alone();
  const std::string common =
      " WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29511 foreshard run p.plan.json --steps 3 --json "
      "--patience 60 --rendezvous 60 ";
  shell("ip netns exec " + a + " env RANK=0" + common + ">out.0 2>err.0 & ip netns exec " + b + " env RANK=1" + common +
        ">out.1 2>err.1; wait");
  clean();
  EXPECT_EQ(file("err.0") + file("err.1"), "");
  EXPECT_EQ(losses(file("out.0")), expected);
}

}  // namespace foreshard
