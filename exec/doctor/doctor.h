// What a run of several processes would find on this machine, and what is wrong with it: launcher, rendezvous, links, limits, libraries. Reads
// only; opens a port for a moment.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/units.h"

namespace foreshard {

// Note: worth knowing. Wrong: a run would fail.
enum class Health : std::uint8_t { Good, Note, Wrong };

struct Finding {
  std::string topic = {};  // "launcher", "rendezvous", "job", "links", "memory", "shared memory", "files", "GPUs", "NCCL"
  Health health = Health::Good;
  std::string found = {};
  std::string mend = {};  // what to do; empty when good
  bool operator==(const Finding&) const = default;
};

// Where it looks; a test gives another machine.
struct Surroundings {
  std::function<const char*(const char*)> variable = {};  // the environment
  std::string root = {};                                  // before /proc, /sys and so on; "" the machine itself
  // "" when one can listen there, else why not.
  std::function<std::string(const std::string& address, int port)> listen = {};
  std::int64_t open_files = 0, locked_bytes = 0;  // limits (ulimit -n, -l); -1: none
  Bytes shared_memory = {-1};                     // free in /dev/shm; below 0: there is none
  bool needs_gpu = false;
  std::vector<std::string> gpus = {};                          // in words; empty: none
  std::string no_gpus = {};                                    // why
  std::vector<std::pair<std::string, std::string>> nccl = {};  // file, version or why it cannot be used
  std::string usable_nccl = {};                                // the file that a run would take
};
Surroundings this_machine(const std::function<const char*(const char*)>& variable);

std::vector<Finding> examine(const Surroundings& around);

}  // namespace foreshard
