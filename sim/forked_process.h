// ForkedProcess: runs a function in a forked child process, which writes its results into memory that parent and child share. SimGrid keeps
// its clock and the callbacks of every engine for the life of a process, so each simulation gets a process of its own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>

namespace foreshard::sim {

// Memory that this process shares with the processes that it forks later (an anonymous shared mmap). Filled with zeros.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);  // throws std::bad_alloc
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  void* at() const { return at_; }

 private:
  std::size_t bytes_;
  void* at_;
};

// `size` elements of T in shared memory, their bytes zero. Throws std::bad_alloc.
template <class T>
class SharedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit SharedArray(std::size_t size) : memory_(size * sizeof(T)), size_(size) {}
  std::span<T> items() const { return {static_cast<T*>(memory_.at()), size_}; }

 private:
  SharedMemory memory_;
  std::size_t size_;
};

class ForkedProcess {
 public:
  using Progress = std::function<void(double fraction)>;  // `fraction`: share of the work that is done, 0 to 1
  // Forks and runs `body` in the child, which passes its progress to the parent. Throws DeviceError if no process can be started.
  explicit ForkedProcess(const std::function<void(const Progress&)>& body);
  ~ForkedProcess();  // kills and reaps the child, unless `body` has returned: then a later ForkedProcess reaps it
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;

  // Blocks until `body` returns, and calls `progress` in this process whenever `body` reports progress. Rethrows an Error, DeviceError, Bug or
  // std::bad_alloc of `body`. Throws DeviceError if the child died (SimGrid aborts on its errors), and Error "cancelled" if `cancel` is set first.
  void wait(const std::atomic<bool>* cancel = nullptr, const Progress& progress = {});

 private:
  bool read(void* into, std::size_t bytes,
            const std::atomic<bool>* cancel) const;  // from the child; false at the end of the pipe
  int reap();                                        // waits for the child; its exit status

  pid_t pid_ = -1;
  int pipe_ = -1;
  bool done_ = false;  // `body` has returned
};

}  // namespace foreshard::sim
