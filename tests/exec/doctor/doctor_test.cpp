// Machines made of a folder and a few words: what the doctor finds there, and what it says is to be done.
#include "exec/doctor/doctor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "exec/mesh/socket.h"
#include "exec/nccl/nccl.h"

namespace foreshard::doctor_test {
namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

class Doctor : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // A sound node: two links up, one down, 64 GiB, of which a group may take 32.
  void furnish() const {
    write("sys/class/net/lo/operstate", "unknown\n");
    write("sys/class/net/eth0/operstate", "up\n"), write("sys/class/net/eth0/speed", "25000\n");
    write("sys/class/net/eth1/operstate", "down\n"), write("sys/class/net/eth1/speed", "-1\n");
    write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    write("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
    write("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 62914560 kB\n");
    write("sys/fs/cgroup/memory.max", "34359738368\n"), write("sys/fs/cgroup/memory.current", "1073741824\n");
  }
  ExaminedMachine around(const Variables& variables) {
    variables_ = variables;
    return {.variable =
                [this](const char* name) {
                  const auto found = variables_.find(name);
                  return found == variables_.end() ? nullptr : found->second.c_str();
                },
            .root = root_.string(),
            .listen = [](const std::string&, int) { return ""; },
            .open_files = 1024,
            .locked_bytes = -1,
            .shared_memory = {std::int64_t{1} << 30U}};
  }
  static std::string text(const std::vector<Finding>& findings) {
    std::string all;
    for (const Finding& finding : findings) {
      all += (finding.health == Health::Good   ? "ok "
              : finding.health == Health::Note ? "note "
                                               : "wrong ") +
             finding.topic + ": " + finding.found + "\n";
      if (!finding.mend.empty()) all += "  -> " + finding.mend + "\n";
    }
    return all;
  }
  // Of one topic.
  std::string about(const std::string& topic, const ExaminedMachine& around) {
    std::vector<Finding> findings = examine(around);
    std::erase_if(findings, [&](const Finding& finding) { return finding.topic != topic; });
    return text(findings);
  }

  fs::path root_ = fs::temp_directory_path() / ("foreshard-doctor-" + std::to_string(::getpid()));
  Variables variables_;
};

TEST_F(Doctor, ASoundNodeOfASlurmJob) {
  furnish();
  ExaminedMachine sound = around({{"SLURM_PROCID", "0"},
                                  {"SLURM_NTASKS", "16"},
                                  {"SLURM_NNODES", "2"},
                                  {"SLURM_JOB_ID", "7"},
                                  {"SLURM_STEP_ID", "0"},
                                  {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"}});
  sound.gpus = {"0 NVIDIA H100 80GB HBM3"}, sound.needs_gpu = true;
  sound.nccl = {{"/usr/lib/libnccl.so.2", "version 2.28.9"}}, sound.usable_nccl = "/usr/lib/libnccl.so.2";
  EXPECT_EQ(text(examine(sound)),
            "ok launcher: srun: process 0 of 16\n"
            "ok job: the launcher's number\n"
            "ok rendezvous: 10.0.0.1 port 29500, free\n"
            "ok links: eth0 25 Gbit/s, mlx5_0/1 200 Gbit/s\n"
            "ok memory: 60.0 GiB available, 31.0 GiB left of the 32.0 GiB of its group\n"
            "ok files: 1024 open files\n"
            "ok shared memory: 1.0 GiB free in /dev/shm\n"
            "ok GPUs: 0 NVIDIA H100 80GB HBM3\n"
            "ok NCCL: /usr/lib/libnccl.so.2: version 2.28.9\n");
}

TEST_F(Doctor, ALaptopNeedsNothing) {
  EXPECT_EQ(
      text(examine(around({}))),
      "ok launcher: none: all ranks are threads of one process\n"
      "ok links: only the loopback\n"
      "ok memory: unknown\n"
      "ok files: 1024 open files\n"
      "ok shared memory: 1.0 GiB free in /dev/shm\n"
      "note GPUs: none\n  -> a run with --device host needs no GPU\n"
      "note NCCL: none that can be used\n"
      "  -> pip install nvidia-nccl-cu12 (or -cu13), or FORESHARD_NCCL=FILE; a run with --device host does not need it\n");
}

// Kernels that test.sh compiled, for example, cannot be mistaken for others.
TEST_F(Doctor, KernelsThatWereNotOptimizedAreTold) {
  ExaminedMachine machine = around({});
  machine.kernels = "for sm 80 90 100 120, nvcc -O3";
  EXPECT_EQ(about("kernels", machine), "ok kernels: for sm 80 90 100 120, nvcc -O3\n");
  machine.kernels = "for sm 90, nvcc -O3 -Xcicc -O1", machine.slow_kernels = true;
  EXPECT_EQ(about("kernels", machine),
            "note kernels: for sm 90, nvcc -O3 -Xcicc -O1\n"
            "  -> not optimized: cmake --preset release && cmake --build build/release compiles them again\n");
}

TEST_F(Doctor, TheLauncherIsUnderstoodOrNot) {
  EXPECT_EQ(about("launcher", around({{"RANK", "1"}, {"WORLD_SIZE", "4"}})), "ok launcher: torchrun: process 1 of 4\n");
  EXPECT_EQ(about("job", around({{"RANK", "1"}, {"WORLD_SIZE", "4"}})),
            "note job: no word: a run of the same plan on the same port would mix with this one\n"
            "  -> set FORESHARD_JOB to any word, the same in all processes\n");
  EXPECT_EQ(about("job", around({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"FORESHARD_JOB", "x"}})), "ok job: FORESHARD_JOB\n");
  EXPECT_EQ(about("launcher", around({{"RANK", "7"}, {"WORLD_SIZE", "4"}})),
            "wrong launcher: environment: RANK: found \"7\", expected a whole number from 0 to 3\n"
            "  -> let the launcher set it, or set both variables of the pair\n");
  EXPECT_EQ(about("launcher", around({{"WORLD_SIZE", "4"}})),
            "note launcher: WORLD_SIZE is set, RANK is not: not looked at\n  -> set both, or neither\n"
            "ok launcher: none: all ranks are threads of one process\n");
}

TEST_F(Doctor, TheRendezvousIsTried) {
  furnish();
  ExaminedMachine taken = around({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}});
  taken.listen = [](const std::string&, int) { return "listening on 10.0.0.1 port 29500 failed: Address already in use"; };
  EXPECT_EQ(about("rendezvous", taken),
            "wrong rendezvous: listening on 10.0.0.1 port 29500 failed: Address already in use\n"
            "  -> choose another MASTER_PORT, in all processes\n");
  taken.listen = [](const std::string&, int) {
    return "listening on 10.0.0.1 port 29500 failed: Cannot assign requested address";
  };
  EXPECT_EQ(about("rendezvous", taken),
            "wrong rendezvous: listening on 10.0.0.1 port 29500 failed: Cannot assign requested address\n"
            "  -> set MASTER_ADDR to an address of the machine on which process 0 runs: that of eth0, mlx5_0/1\n");
  variables_["RANK"] = "1";
  EXPECT_EQ(about("rendezvous", taken), "ok rendezvous: 10.0.0.1 port 29500, where process 0 listens\n");
  EXPECT_EQ(about("rendezvous",
                  around({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}})),
            "wrong rendezvous: 127.0.0.1 port 29500, but the processes are on several machines\n"
            "  -> set MASTER_ADDR to the address of the machine of process 0, in all processes\n");
}

// Debian's /etc/hosts gives the machine's own name a loopback address: enough for processes of this machine only.
TEST_F(Doctor, ANameOfTheLoopbackIsNotReachedFromOtherMachines) {
  furnish();
  Variables variables = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node01"}, {"LOCAL_WORLD_SIZE", "1"}};
  ExaminedMachine debian = around(variables);
  debian.only_this_machine = [](const std::string& address) { return address == "node01"; };
  EXPECT_EQ(about("rendezvous", debian),
            "wrong rendezvous: node01 is a loopback address here: other machines cannot connect\n"
            "  -> set MASTER_ADDR to an address of the machine on which process 0 runs: that of eth0, mlx5_0/1\n");
  variables["LOCAL_WORLD_SIZE"] = "2";
  ExaminedMachine one = around(variables);
  one.only_this_machine = debian.only_this_machine;
  EXPECT_EQ(about("rendezvous", one), "ok rendezvous: node01 port 29500, free\n");
  const ExaminedMachine here = this_machine([](const char*) -> const char* { return nullptr; });
  EXPECT_TRUE(here.only_this_machine("127.1"));
  EXPECT_FALSE(here.only_this_machine("0.0.0.0"));
}

// A real port: taken by this test, an address that no machine has (RFC 5737), and a free one.
TEST_F(Doctor, ThisMachineCanListenOrNot) {
  const ExaminedMachine here = this_machine([](const char*) -> const char* { return nullptr; });
  const ListeningSocket door("127.0.0.1", 0);
  EXPECT_NE(here.listen("127.0.0.1", door.port()).find("Address already in use"), std::string::npos);
  EXPECT_NE(here.listen("192.0.2.1", 0).find("Cannot assign requested address"), std::string::npos);
  EXPECT_EQ(here.listen("127.0.0.1", 0), "");
}

TEST_F(Doctor, LimitsThatStopARun) {
  furnish();
  ExaminedMachine poor = around({{"RANK", "0"}, {"WORLD_SIZE", "64"}});
  poor.open_files = 256, poor.shared_memory = {64 << 20};
  EXPECT_EQ(about("files", poor), "wrong files: 256 open files; 64 processes need 384\n  -> ulimit -n 384\n");
  EXPECT_EQ(about("shared memory", poor),
            "note shared memory: 0.0 GiB free in /dev/shm\n"
            "  -> NCCL needs it between GPUs of one machine: docker run --shm-size=1g, or --ipc=host\n");
  poor.needs_gpu = true;
  EXPECT_EQ(about("shared memory", poor).substr(0, 5), "wrong");
  EXPECT_EQ(about("GPUs", poor).substr(0, 5), "wrong");
  EXPECT_EQ(about("NCCL", poor).substr(0, 5), "wrong");
  write("sys/fs/cgroup/memory.current", "34259738368\n");
  EXPECT_EQ(about("memory", poor),
            "wrong memory: 60.0 GiB available, 0.0 GiB left of the 32.0 GiB of its group\n"
            "  -> give the job more memory (srun --mem, docker run --memory), or run fewer ranks here\n");
  fs::remove_all(root_ / "sys/class");
  variables_ = {{"RANK", "0"}, {"WORLD_SIZE", "64"}, {"LOCAL_WORLD_SIZE", "8"}, {"MASTER_ADDR", "a"}};
  EXPECT_EQ(about("links", poor),
            "wrong links: none is up\n  -> bring a network link up, or run all processes on this machine\n");
}

// Toolkit, distribution, wheel of a virtual environment; a file named by hand is the only one; a link to a known file counts once.
TEST_F(Doctor, NcclIsLookedForEverywhere) {
  for (const char* path : {"usr/local/cuda/lib64/libnccl.so.2", "usr/lib/x86_64-linux-gnu/libnccl.so.2",
                           "opt/env/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2",
                           "usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2", "opt/nccl/lib/libnccl.so.2"})
    write(path, "no library");
  fs::create_symlink(root_ / "usr/lib/x86_64-linux-gnu/libnccl.so.2", root_ / "usr/lib/libnccl.so.2");
  const auto found = [&](const Variables& variables) {
    const ExaminedMachine here = around(variables);
    std::string all;
    for (const std::string& path : nccl::candidates(here.variable, here.root)) all += path.substr(root_.string().size()) + "\n";
    return all;
  };
  EXPECT_EQ(found({{"VIRTUAL_ENV", "/opt/env"}}),
            "/usr/local/cuda/lib64/libnccl.so.2\n/usr/lib/x86_64-linux-gnu/libnccl.so.2\n"
            "/opt/env/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2\n"
            "/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2\n");
  EXPECT_EQ(found({{"NCCL_ROOT", "/opt/nccl"}}).substr(0, 26), "/opt/nccl/lib/libnccl.so.2");
  // Relative to the working directory, where anybody's file may lie: nowhere.
  EXPECT_EQ(found({{"LD_LIBRARY_PATH", "opt/nccl/lib:."}, {"NCCL_ROOT", "opt/nccl"}, {"VIRTUAL_ENV", "opt/env"}}), found({}));
  const ExaminedMachine named = around({{"FORESHARD_NCCL", "/here/libnccl.so.2"}});
  EXPECT_EQ(nccl::candidates(named.variable, named.root), std::vector<std::string>{"/here/libnccl.so.2"});
  EXPECT_EQ(nccl::version_text(22809), "2.28.9");
}

}  // namespace
}  // namespace foreshard::doctor_test
