#include "strategy/search/search_threads.h"

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <vector>

namespace foreshard {

struct SearchThreads::Pool {
  explicit Pool(int threads)
      : limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads)), arena(threads) {}
  tbb::global_control limit;
  tbb::task_arena arena;
};

// At most one thread per core that this process may use: with more, TBB's threads do not end (SearchThreadsEnd).
SearchThreads::SearchThreads(int threads)
    : count_(std::min(threads > 0 ? threads : std::numeric_limits<int>::max(), tbb::info::default_concurrency())),
      pool_(std::make_unique<Pool>(count_)) {}
SearchThreads::~SearchThreads() = default;

void SearchThreads::run(std::size_t count, const std::function<bool()>& goes_on, const Work& work,
                        const std::function<void(std::size_t next)>& done) {
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count_));
  const auto loop = [&](std::size_t thread) {
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
  pool_->arena.execute([&] {
    tbb::task_group others;
    for (int thread = 1; thread < count_; ++thread) others.run([&loop, thread] { loop(static_cast<std::size_t>(thread)); });
    loop(0);
    others.wait();
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

struct SearchThreadsEnd::Handle {
  tbb::task_scheduler_handle threads{tbb::attach{}};
};
SearchThreadsEnd::SearchThreadsEnd() : handle_(std::make_unique<Handle>()) {}
SearchThreadsEnd::~SearchThreadsEnd() { tbb::finalize(handle_->threads, std::nothrow); }

}  // namespace foreshard
