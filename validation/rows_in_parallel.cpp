#include "validation/rows_in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/start_thread.h"

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
    const unsigned others = std::clamp(std::thread::hardware_concurrency(), 1U, kThreads) - 1;
    std::vector<std::thread> threads;
    threads.reserve(others);
    while (threads.size() < others) {  // where the system starts fewer, those that there are do the work
      std::thread thread = try_thread(run);
      if (!thread.joinable()) break;
      threads.push_back(std::move(thread));
    }
    run();
    for (std::thread& thread : threads) thread.join();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace foreshard
