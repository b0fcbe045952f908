#include "exec/cuda/numa_cpus.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace foreshard::gpu {

// The file contains, for example, "0-15,64-79".
std::vector<int> numa_cpus(const std::string& bus, const std::string& root) {
  std::string address = bus;
  std::transform(address.begin(), address.end(), address.begin(), [](unsigned char c) { return std::tolower(c); });
  std::ifstream file(root + "/sys/bus/pci/devices/" + address + "/local_cpulist");
  std::vector<int> all;
  for (std::string part; std::getline(file, part, ',');) {
    std::istringstream in(part);
    int first = 0, last = 0;
    if (!(in >> first) || first < 0) continue;
    if (!(in.get() == '-' && in >> last)) last = first;
    for (int cpu = first; cpu <= std::min(last, CPU_SETSIZE - 1); ++cpu) all.push_back(cpu);
  }
  return all;
}

CpuAffinity::CpuAffinity(const std::vector<int>& cpus) {
  if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int cpu : cpus)
    if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &wanted);
  if (CPU_COUNT(&wanted) > 0) changed_ = sched_setaffinity(0, sizeof wanted, &wanted) == 0;
}
CpuAffinity::~CpuAffinity() {
  if (changed_) sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace foreshard::gpu
