// Once: work that several threads need done and that one of them does, as with std::call_once. An exception of the work leaves it undone, and the
// next call tries again. The standard library's passes an exception through the C library, which then needs memory of its own and ends
// the program where there is none.
#pragma once

#include <atomic>
#include <mutex>

namespace foreshard {

class Once {
 public:
  // Does `work` unless a call has done it; returns when it is done. `work` must not call it again.
  template <class Work>
  void call(const Work& work) {
    if (done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    work();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_ = {};
  std::atomic<bool> done_ = false;
};

}  // namespace foreshard
