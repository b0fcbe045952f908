// The CPUs of a GPU's NUMA node. Threads that launch work on the GPU should run there, and pinned memory should be touched first there.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace foreshard::gpu {

// The CPUs near the GPU with this PCI address ("0000:1B:00.0"), from local_cpulist in sysfs of Linux; empty if that is not available.
// `root`: prefix of the path, for tests.
std::vector<int> numa_cpus(const std::string& bus, const std::string& root = "");

// While this object exists, this thread and the threads that it starts run only on these CPUs, as far as the thread's affinity allows them.
// If it allows none of them, nothing changes.
class CpuAffinity {
 public:
  explicit CpuAffinity(const std::vector<int>& cpus);
  ~CpuAffinity();
  CpuAffinity(const CpuAffinity&) = delete;
  CpuAffinity& operator=(const CpuAffinity&) = delete;
  void stay() { changed_ = false; }  // keeps the affinity when this object ends

 private:
  bool changed_ = false;
  cpu_set_t before_ = {};
};

}  // namespace foreshard::gpu
