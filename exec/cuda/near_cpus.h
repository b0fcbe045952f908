// CPUs that a GPU hangs on: threads that feed it, and the pinned memory that they touch first, belong there.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace foreshard::gpu {

// As Linux tells (sysfs-bus-pci, local_cpulist) of the GPU with this address, "0000:1B:00.0"; none where it does not. `root`: before the path, for tests.
std::vector<int> near_cpus(const std::string& bus, const std::string& root = "");

// This thread, and those that it starts, run on these CPUs until this ends: on those of them that it may use at all. None of them: nothing changes.
class NearCpus {
 public:
  explicit NearCpus(const std::vector<int>& cpus);
  ~NearCpus();
  NearCpus(const NearCpus&) = delete;
  NearCpus& operator=(const NearCpus&) = delete;
  void stay() { changed_ = false; }  // as long as the thread lives

 private:
  bool changed_ = false;
  cpu_set_t before_ = {};
};

}  // namespace foreshard::gpu
