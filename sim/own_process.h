// in_own_process: runs a function in a forked process and hands back the blocks of bytes that it wrote. SimGrid keeps its clock and the
// callbacks of every engine for the life of a process, so each simulation gets a process of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace foreshard::sim {

// How the function speaks to the process that waits for it.
class Reply {
 public:
  explicit Reply(int pipe) : pipe_(pipe) {}
  void progress(double fraction) const;
  void write(const void* from, std::size_t bytes) const;  // the next block

 private:
  int pipe_;
};

// `place` says where the next block goes: it returns room for so many bytes. An Error or std::bad_alloc of `body` is thrown here.
// Throws DeviceError when the process cannot be started or dies (SimGrid aborts), Error "cancelled" when `cancel` is set before
// it has ended.
void in_own_process(const std::function<void(const Reply&)>& body, const std::function<void*(std::size_t bytes)>& place,
                    const std::atomic<bool>* cancel = nullptr, const std::function<void(double)>& progress = {});

}  // namespace foreshard::sim
