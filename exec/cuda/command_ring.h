// What a stream of the plan has been told to do and has not begun: the rank's thread adds commands, the stream's own thread takes them, in order.
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
  int index = 0;            // event, step or unit of steps
  std::uint64_t count = 0;  // of an event: which of its records, from 1 on
  int run = 0;              // of a step or a unit
  GpuTask* task = nullptr;
  IssuedStep* step = nullptr;
};

class CommandRing {
 public:
  void hold(int commands) { ring_.resize(static_cast<std::size_t>(commands)); }  // at most; before the first
  bool add(const Command& command);                                              // false: there is no room now
  std::optional<Command> take(const Stop& stop);                                 // waits for one; none: closed. Throws Stopped
  void close();                                                                  // no more will be added

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> ring_;
  std::size_t head_ = 0, count_ = 0;
  bool closed_ = false;
};

}  // namespace foreshard::gpu
