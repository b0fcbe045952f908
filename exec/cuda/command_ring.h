// The queue of commands of one stream of the plan: the thread of the rank adds commands, the thread of the stream takes them out in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/base/stop.h"

namespace foreshard::gpu {

class GpuTask;
struct IssuedStep;

struct Command {
  enum class Kind : std::uint8_t { Wait, Record, Step, Graph };
  Kind kind = Kind::Step;
  int index = 0;            // of the event, the step, or the graph (GraphUnit)
  std::uint64_t count = 0;  // Wait, Record: number of the event's record, from 1
  int run = 0;              // Step, Graph: number of the run
  GpuTask* task = nullptr;
  IssuedStep* step = nullptr;
};

class CommandRing {
 public:
  void set_capacity(int commands) {
    ring_.resize(static_cast<std::size_t>(commands));
  }                                               // sets the capacity, before the first command
  bool add(const Command& command);               // does not block; false: the queue is full
  std::optional<Command> take(const Stop& stop);  // blocks for a command; nothing: closed and empty. Throws Stopped
  void close();                                   // called when no more commands will be added

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> ring_;
  std::size_t head_ = 0, count_ = 0;
  bool closed_ = false;
};

}  // namespace foreshard::gpu
