// What a cluster does to a run: many processes, real launchers, slow and broken networks, processes that die, hang or have no room. 16 ranks.
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "tests/cli/processes.h"
#include "tests/cli/slow_link.h"

namespace foreshard {

class Many : public Processes {
 protected:
  std::string split() const override { return "--gpus 16 --dp 4 --global-batch 16"; }
  // How long process 0 says that all took to meet; told, not judged.
  void tell_bootstrap(const std::string& what, const std::string& log) {
    const std::string words = " processes are connected after ";
    const std::size_t at = log.find(words);
    ASSERT_NE(at, std::string::npos) << log;
    const std::string time = log.substr(at + words.size(), log.find('\n', at) - at - words.size());
    RecordProperty(what, time);
    std::cout << what << ": connected after " << time << "\n";
  }
  static std::string wait_for_all(int processes) {
    std::string lines;
    for (int p = 0; p < processes; ++p) lines += "wait $pid" + std::to_string(p) + "; echo " + std::to_string(p) + " $?\n";
    return lines;
  }
  static std::string all_end_with(int code, int processes) {
    std::string lines;
    for (int p = 0; p < processes; ++p) lines += std::to_string(p) + " " + std::to_string(code) + "\n";
    return lines;
  }
};

TEST_F(Many, TwoToSixteenProcessesOfEveryLauncherTrainAsThreads) {
  const std::vector<double> expected = alone();
  ASSERT_EQ(expected.size(), 3U);
  const std::pair<const char*, const char*> launchers[] = {
      {"RANK", "WORLD_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}, {"PMI_RANK", "PMI_SIZE"}};
  int turn = 0;
  for (const int processes : {2, 3, 5, 8, 13, 16}) {
    const auto& [number, count] = launchers[turn++ % 3];
    shell(start(number, count, processes, port(), "--steps 3 --json --log") + "wait");
    EXPECT_EQ(losses(file("out.0")), expected) << processes << " by " << number << ": " << file("err.0");
    tell_bootstrap(std::to_string(processes) + " processes", file("err.0"));
    for (int p = 1; p < processes; ++p) EXPECT_EQ(file("out." + std::to_string(p)), "");
  }
}

TEST_F(Many, UnderOpenMpi) {
  if (shell("command -v mpirun").find("mpirun") == std::string::npos) GTEST_SKIP() << "no mpirun here (openmpi-bin)";
  const std::vector<double> expected = alone();
  for (const int processes : {2, 4, 16}) {
    shell("MASTER_PORT=" + port() + " mpirun --allow-run-as-root --oversubscribe -np " + std::to_string(processes) +
          " foreshard run p.plan.json --steps 3 --json --log --patience 60 --rendezvous 60 >out 2>err; echo $? >code");
    ASSERT_EQ(file("code"), "0\n") << file("err");
    EXPECT_EQ(losses(file("out")), expected) << processes;
    tell_bootstrap("mpirun, " + std::to_string(processes) + " processes", file("err"));
  }
  // What one cannot do stops all, and mpirun hears the code.
  shell("MASTER_PORT=" + port() +
        " mpirun --allow-run-as-root --oversubscribe -np 2 sh -c "
        "'exec foreshard run p.plan.json --seed $OMPI_COMM_WORLD_RANK' >out 2>err; echo $? >code");
  EXPECT_EQ(file("code"), "3\n");
  EXPECT_NE(file("err").find("process 1: found --seed=1, expected --seed=0, which process 0 runs"), std::string::npos)
      << file("err");
}

// Four processes, of which one is killed, hangs, or runs another plan; each time all others end with code 3, the first message names the cause,
// and the checkpoint of before is whole: two processes go on from it.
TEST_F(Many, WhateverHappensToOneAllStop) {
  const std::string name = "process 2 (rank 8 to 11)";
  const auto broken = [&](const std::string& how) {
    std::string begin = start("RANK", "WORLD_SIZE", 4, port(), "--steps 100000 --save kept --save-every 1 --progress json");
    begin.replace(begin.find("--patience 60"), 13, "--patience 2 ");
    return shell("rm -f kept; trap 'kill -9 $pid0 $pid1 $pid2 $pid3 2>/dev/null' EXIT\n" + begin +
                 "for i in $(seq 1000); do [ -e kept ] && break; sleep 0.02; done; sleep 0.3; " + how +
                 " $pid2; date +%s.%N >began\n" +
                 "for p in 0 1 3; do eval wait \\$pid$p; echo $p $?; done; date +%s.%N >ended");
  };
  for (const char* how : {"kill -9", "kill -STOP"}) {
    EXPECT_EQ(broken(how), "0 3\n1 3\n3 3\n") << how;
    for (const char* err : {"err.0", "err.1", "err.3"}) {
      const std::string said = file(err);
      const std::string first = said.substr(said.find("foreshard: "));
      EXPECT_NE(first.substr(0, first.find('\n')).find(name), std::string::npos) << how << ": " << first;
    }
    const double took = std::stod(file("ended")) - std::stod(file("began"));
    std::cout << how << ": all ended after " << took << " s\n";
    RecordProperty(how, std::to_string(took));
    shell(start("RANK", "WORLD_SIZE", 2, port(), "--steps 1 --resume kept --json") + "wait");
    EXPECT_EQ(losses(file("out.0")).size(), 1U) << file("err.0");
  }
}

TEST_F(Many, AnotherPlanOnOneRankIsNamed) {
  const RanLine other = run_line(
      "lower --model gpt2-124m --cluster dgx-a100 --set model.n_layer=2 --set model.n_embd=32 --set model.n_head=4 --set "
      "model.vocab_size=64 "
      "--set model.n_positions=16 --tp 4 --pp 2 --precision fp64 --gpus 16 --dp 2 --global-batch 16 --save-plan " +
      (folder_ / "q.plan.json").string());
  ASSERT_EQ(other.code, ExitCode::Ok) << other.err;
  std::string begin = start("RANK", "WORLD_SIZE", 4, port(), "");
  begin.replace(begin.find("p.plan.json"), 11, "$(test $r = 3 && echo q || echo p).plan.json");
  EXPECT_EQ(shell(begin + wait_for_all(4)), all_end_with(3, 4));
  for (int p = 0; p < 4; ++p) {
    const std::string said = file("err." + std::to_string(p));
    EXPECT_TRUE(said.starts_with("foreshard: rendezvous failed: process 3: found plan=")) << said;
  }
}

// Each process writes its part of a checkpoint. A disk that is full for any of them stops all, and what was there is whole.
TEST_F(Many, AFullDiskStopsAllOrNobody) {
  const auto limited = [&](int process, const std::string& options) {  // -1: none
    std::string begin = start("RANK", "WORLD_SIZE", 4, port(), options);
    begin.replace(begin.find("foreshard run"), 0,
                  "sh -c 'trap \"\" XFSZ; [ $RANK = " + std::to_string(process) + " ] && ulimit -f 1; exec \"$@\"' sh ");
    return shell(begin + wait_for_all(4));
  };
  EXPECT_EQ(limited(-1, "--steps 1 --save kept --json"), all_end_with(0, 4)) << file("err.3");
  const std::string before = file("kept");
  for (const int full : {0, 3}) {
    EXPECT_EQ(limited(full, "--steps 2 --save kept"), all_end_with(3, 4)) << full;
    for (int p = 0; p < 4; ++p) {
      const std::string said = file("err." + std::to_string(p));
      EXPECT_NE(said.find("kept"), std::string::npos) << said;
      EXPECT_NE(said.find("File too large"), std::string::npos) << said;
    }
    EXPECT_EQ(file("kept"), before);
  }
  shell(start("RANK", "WORLD_SIZE", 3, port(), "--steps 1 --resume kept --json") + "wait");
  EXPECT_EQ(losses(file("out.0")), std::vector<double>{alone()[1]});
}

// Two hosts, as far as the kernel and the processes are concerned: network namespaces joined by a cable, and processes that do not see those of
// the other namespace. Needs root and /dev/net/tun.
class Hosts : public Many {
 protected:
  void SetUp() override {
    Many::SetUp();
    try {
      const std::string made = shell("ip netns add " + a_ + " && ip netns add " + b_ + " && ip netns exec " + a_ +
                                     " true");  // in a chroot they can be made but not entered
      if (!made.empty()) throw std::runtime_error(made);
      link_ = std::make_unique<SlowLink>(a_, b_, "cable");
    } catch (const std::runtime_error& error) {
      GTEST_SKIP() << "no network namespaces or no TAP devices here: " << error.what();
    }
    int host = 0;
    for (const std::string& name : {a_, b_})
      ASSERT_EQ(shell("ip -n " + name + " addr add 10.78.0." + std::to_string(++host) + "/24 dev cable && ip -n " + name +
                      " link set cable up && ip -n " + name + " link set lo up"),
                "");
  }
  void TearDown() override {
    link_.reset();
    shell("ip netns del " + a_ + "; ip netns del " + b_);
    Many::TearDown();
  }
  // Processes 0 and 1 in the first, 2 and 3 in the second, until they end. Once they train, `meanwhile`.
  std::string run(const std::string& options, const std::function<void()>& meanwhile = {}) {
    const std::string script =
        "trap 'kill -9 $pid0 $pid1 $pid2 $pid3 2>/dev/null' EXIT\n"
        "export WORLD_SIZE=4 MASTER_ADDR=10.78.0.1 MASTER_PORT=29512\nfor r in 0 1 2 3; do ip netns exec $([ $r -lt 2 ] && "
        "echo " +
        a_ + " || echo " + b_ +
        " unshare --pid --fork --kill-child) env RANK=$r foreshard run p.plan.json --rendezvous 60 --log " + options +
        " >out.$r 2>err.$r & eval pid$r=$!; done\n" + wait_for_all(4);
    fs::remove(folder_ / "err.0");  // of the run before
    if (!meanwhile) return shell(script);
    std::future<std::string> said = std::async(std::launch::async, [&] { return shell(script); });
    using namespace std::chrono_literals;
    while (said.wait_for(20ms) == std::future_status::timeout)
      if (shell("grep -qs progress err.0").empty()) {
        meanwhile();
        break;
      }
    return said.get();
  }
  // What a process says of the time between its question to process 0 and the answer.
  std::chrono::nanoseconds round_trip(int process) const {
    const std::string log = file("err." + std::to_string(process)), words = "asked and answered in ";
    const std::size_t at = log.find(words);
    if (at == std::string::npos) throw std::runtime_error(log);
    return std::chrono::nanoseconds(std::stoll(log.substr(at + words.size())));
  }
  // Segments that TCP sent again.
  std::int64_t sent_again() const {
    std::int64_t all = 0;
    for (const std::string& name : {a_, b_})
      all += std::stoll(shell("ip netns exec " + name + " nstat -asz TcpRetransSegs | awk '/Retrans/{print $2}'"));
    return all;
  }
  std::string a_ = "fh" + std::to_string(::getpid()) + "a", b_ = "fh" + std::to_string(::getpid()) + "b";
  std::unique_ptr<SlowLink> link_;
};

// The one knows that its link is down; the other, and both where everything is lost, hear nothing any more.
TEST_F(Hosts, ACutLinkStopsBothSides) {
  const std::function<void()> ways[] = {[&] { shell("ip -n " + a_ + " link set cable down"); },
                                        [&] { link_->become({.loss = 1}); }};
  for (const auto& cut : ways) {
    std::chrono::steady_clock::time_point began;
    const std::string said = run("--steps 100000 --patience 2 --progress json", [&] {
      began = std::chrono::steady_clock::now();
      cut();
    });
    EXPECT_EQ(said, all_end_with(3, 4));
    for (int p = 0; p < 4; ++p) {  // each side names one of the other
      const std::string err = file("err." + std::to_string(p));
      const std::size_t at = err.find("failure: process ");
      ASSERT_NE(at, std::string::npos) << err;
      EXPECT_EQ(err.substr(at + 17, 1) < "2", p >= 2) << p << ": " << err;
      EXPECT_NE(err.find("not heard of for 2000 ms"), std::string::npos) << err;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::cout << "cut link: all ended after " << took.count() << " s\n";
    shell("ip -n " + a_ + " link set cable up");
  }
}

// The same segment lost four times in a row, 6 times in a million of those that are sent at 5 %, is silence for 3 s (0.2 + 0.4 + 0.8 + 1.6, as
// TCP doubles its waits); six times, for 12.6 s, does not happen here: what ends the run within a patience of 10 s is a false alarm.
TEST_F(Hosts, DelayAndLossChangeNothingButTheTime) {
  using namespace std::chrono_literals;
  const std::vector<double> expected = alone();
  const SlowLink::Way ways[] = {{.delay = 10ms, .jitter = 2ms, .loss = 0.01}, {.delay = 10ms, .loss = 0.05}};
  for (const SlowLink::Way& way : ways) {
    link_->become(way);
    const std::int64_t lost = link_->lost(), again = sent_again();
    EXPECT_EQ(run("--steps 3 --json --patience 10"), all_end_with(0, 4)) << file("err.0");
    EXPECT_EQ(losses(file("out.0")), expected);
    // The program itself has seen the delay, twice per question, and TCP the loss.
    for (const int p : {2, 3}) EXPECT_GE(round_trip(p), 2 * (way.delay - way.jitter));
    EXPECT_GT(link_->lost(), lost);
    EXPECT_GT(sent_again(), again);
    EXPECT_NE(file("err.0").find("1 of the others are on this machine"), std::string::npos) << file("err.0");
    std::cout << way.delay.count() << " us: " << link_->lost() - lost << " frames lost, " << sent_again() - again
              << " sent again\n";
  }
}

// An outage that is shorter than the patience is no failure.
TEST_F(Hosts, AnOutageIsSatOut) {
  using namespace std::chrono_literals;
  link_->become({.delay = 5ms});
  const std::vector<double> expected =
      losses(shell("foreshard run p.plan.json --steps 30 --json --launcher none --patience 60"));
  std::int64_t lost = 0;
  const std::string said = run("--steps 30 --json --progress json --patience 30", [&] {
    link_->become({.loss = 1});
    std::this_thread::sleep_for(1s);
    lost = link_->lost();
    link_->become({.delay = 5ms});
  });
  EXPECT_EQ(said, all_end_with(0, 4)) << file("err.0");
  EXPECT_EQ(losses(file("out.0")), expected);
  EXPECT_GT(lost, 0);
}

}  // namespace foreshard
