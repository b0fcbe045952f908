// Runs work in worker processes. The simulator's engine can be used once per process only, and a worker that crashes does not end
// the program.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/error.h"

namespace foreshard {

int one_per_core();  // number of cores

struct WorkerOptions {
  int processes = 0;                // that run at the same time; 0: one per core
  std::function<bool()> stop = {};  // asked again and again; true: ends the work, unfinished results stay empty
  std::function<void(std::size_t index)> finished = {};  // called for each result, by the calling thread
  // Called for each call that throws Bug; its result stays empty, and the other calls go on. Not set: it is rethrown.
  std::function<void(std::size_t index, const Bug& bug)> failed = {};
};

// Calls work(0) .. work(count - 1), each in a process of its own; returns their results, empty where `stop` ended the work. Throws
// what a call throws (Error, DeviceError, std::bad_alloc, Bug), and DeviceError when a worker ends without a result. It forks, so no other
// thread may be running.
std::vector<std::optional<double>> in_workers(std::size_t count, const std::function<double(std::size_t)>& work,
                                              const WorkerOptions& options = {});

}  // namespace foreshard
