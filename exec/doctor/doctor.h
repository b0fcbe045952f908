// Checks whether a run of several processes would work on this machine: launcher, rendezvous address, network links, limits, libraries. It
// changes nothing on the machine. To check that the rendezvous port is free, it listens on it for a moment.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/units.h"

namespace foreshard {

// Note: worth knowing, but a run works. Wrong: a run would fail.
enum class Health : std::uint8_t { Good, Note, Wrong };

struct Finding {
  // "launcher", "job", "rendezvous", "links", "memory", "files", "shared memory", "GPUs", "kernels", "locked memory" or "NCCL"
  std::string topic = {};
  Health health = Health::Good;
  std::string found = {};  // the observed state, in words
  std::string mend = {};   // what the user can do about it; empty if the state is good
  bool operator==(const Finding&) const = default;
};

// The machine that is examined. Tests construct one of their own.
struct ExaminedMachine {
  std::function<const char*(const char*)> variable = {};  // value of an environment variable, null if it is not set
  std::string root = {};                                  // prefix of the paths /proc and /sys; "": those of this machine
  // Tries to listen there. Returns "" on success, else the reason of the failure.
  std::function<std::string(const std::string& address, int port)> listen = {};
  // Whether such a socket would be reached from this machine only: a loopback address, or a name of one.
  std::function<bool(const std::string& address)> only_this_machine = [](const std::string&) { return false; };
  // Limits on open files and on bytes of locked memory (ulimit -n, -l); -1: unlimited.
  std::int64_t open_files = 0, locked_bytes = 0;
  Bytes shared_memory = {-1};          // free in /dev/shm; negative: there is no /dev/shm
  bool needs_gpu = false;              // whether the run would use GPUs
  std::vector<std::string> gpus = {};  // one description per GPU
  std::string no_gpus = {};            // why `gpus` is empty
  std::string kernels = {};            // how those of the CUDA module were compiled; "": there is no module
  bool slow_kernels = false;           // they were hardly optimized
  std::vector<std::pair<std::string, std::string>> nccl = {};  // file of an NCCL library; its version, or why it cannot be used
  std::string usable_nccl = {};                                // the file among them that a run would use; "": none
};
// This machine. The caller fills in `needs_gpu` and what is said of GPUs and kernels, which need the CUDA library. `variable`: the environment.
ExaminedMachine this_machine(const std::function<const char*(const char*)>& variable);

// All findings, good ones included, in a fixed order of topics. Throws nothing for a bad machine: that is a finding.
std::vector<Finding> examine(const ExaminedMachine& around);

}  // namespace foreshard
