// OwnProcess: runs a function in a forked process, which writes its results into memory that both see. SimGrid keeps its clock and the
// callbacks of every engine for the life of a process, so each simulation gets a process of its own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>

namespace foreshard::sim {

// Memory that this process and those that it forks later see alike; zeros at first.
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

class OwnProcess {
 public:
  using Progress = std::function<void(double fraction)>;
  explicit OwnProcess(const std::function<void(const Progress&)>& body);  // throws DeviceError when no process can be started
  ~OwnProcess();                                                          // ends it
  OwnProcess(const OwnProcess&) = delete;
  OwnProcess& operator=(const OwnProcess&) = delete;

  // Until `body` has ended; hands on its progress. An Error or std::bad_alloc of `body` is thrown here. Throws DeviceError when the
  // process has died (SimGrid aborts), Error "cancelled" when `cancel` is set before it has ended.
  void wait(const std::atomic<bool>* cancel = nullptr, const Progress& progress = {});

 private:
  bool read(void* into, std::size_t bytes, const std::atomic<bool>* cancel) const;
  int reap();

  pid_t pid_ = -1;
  int pipe_ = -1;
};

}  // namespace foreshard::sim
