#include "strategy/search/search_threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>

#include "core/base/start_thread.h"

namespace foreshard {

// Cores that this process may use.
static int usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

SearchThreads::SearchThreads(int threads) {
  const int count = std::min(threads > 0 ? threads : std::numeric_limits<int>::max(), usable_cores());
  others_.reserve(static_cast<std::size_t>(count - 1));
  for (int thread = 1; thread < count; ++thread) {
    std::thread other = try_thread([this, thread] { help(static_cast<std::size_t>(thread)); });
    if (!other.joinable()) break;
    others_.push_back(std::move(other));
  }
}

SearchThreads::~SearchThreads() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  for (std::thread& other : others_) other.join();
}

void SearchThreads::help(std::size_t thread) {
  std::unique_lock lock(mutex_);
  for (std::uint64_t seen = 0;;) {
    changed_.wait(lock, [&] { return closed_ || runs_ != seen; });
    if (closed_) return;
    seen = runs_;
    const auto* loop = loop_;
    lock.unlock();
    (*loop)(thread);
    lock.lock();
    if (--busy_ == 0) changed_.notify_all();
  }
}

void SearchThreads::run(std::size_t count, const std::function<bool()>& goes_on, const Work& work,
                        const std::function<void(std::size_t next)>& done) {
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(1 + others_.size());
  const std::function<void(std::size_t)> loop = [&](std::size_t thread) {
    try {
      for (std::size_t i = next++; i < count && goes_on(); i = next++) {
        work(i, thread);
        if (thread == 0) done(i + 1);
      }
    } catch (...) {  // the calling thread rethrows it
      failures[thread] = std::current_exception();
      next = count;
    }
  };
  {
    const std::lock_guard lock(mutex_);
    loop_ = &loop, busy_ = others_.size(), ++runs_;
  }
  changed_.notify_all();
  loop(0);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return busy_ == 0; });
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace foreshard
