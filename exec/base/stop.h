// The first failure of any rank stops all of them: whoever blocks looks here, several times a second.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

namespace foreshard {

// Thrown where a rank gives up because another one failed.
struct Stopped {};

class Stop {
 public:
  void raise(const std::string& why);  // the first reason stays
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  std::string why() const;

  // Waits until `ready` holds; throws Stopped once stopped.
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
};

}  // namespace foreshard
