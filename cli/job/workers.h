// Work in worker processes: the simulator's engine is one per process, and what ends a worker does not end the program.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace foreshard {

int one_per_core();

struct WorkerOptions {
  int processes = 0;                                     // at the same time; 0: one per core
  std::function<bool()> stop = {};                       // true: what is not done yet stays empty
  std::function<void(std::size_t index)> finished = {};  // called by the calling thread
};

// work(0) .. work(count - 1), each in a process of its own. Empty: stopped. Throws Error with the message of a work that throws
// one, DeviceError when a worker ends otherwise. No other thread may run.
std::vector<std::optional<double>> in_workers(std::size_t count, const std::function<double(std::size_t)>& work,
                                              const WorkerOptions& options = {});

}  // namespace foreshard
