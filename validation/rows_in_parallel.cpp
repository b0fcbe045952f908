#include "validation/rows_in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace foreshard {

static constexpr unsigned kThreads = 8;

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex door;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) try {
        work(i);
      } catch (...) {
        const std::lock_guard guard(door);
        if (!failure) failure = std::current_exception();
        return;
      }
  };
  {
    std::vector<std::jthread> threads(std::clamp(std::thread::hardware_concurrency(), 1U, kThreads));
    for (std::jthread& thread : threads) thread = std::jthread(run);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace foreshard
