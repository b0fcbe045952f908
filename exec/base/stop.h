// Stop: a flag by which the first failure of any rank stops all ranks. Threads that block check it several times per second.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

namespace foreshard {

// Thrown in a rank that stops because another one has failed.
struct Stopped {};

class Stop {
 public:
  // If it is raised already, the first reason is kept. Called while a Bug is handled, it remembers that the reason is one.
  void raise(const std::string& why);
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  std::string why() const;
  // Throws Bug if the reason is a bug of ours, else DeviceError "`what` failed: why".
  [[noreturn]] void rethrow(const std::string& what) const;

  // Blocks until ready() is true; throws Stopped if the flag is raised. `lock` guards what `ready` reads; `changed` is notified when that
  // changes.
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, Ready ready) const {
    while (!ready()) {
      if (raised()) throw Stopped{};
      changed.wait_for(lock, std::chrono::milliseconds(100));
    }
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> raised_ = false;
  std::string why_;
  bool bug_ = false;
};

}  // namespace foreshard
