// The threads of a search: they share the work of a loop over indices. The calling thread is one of them. Internal to strategy/.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace foreshard {

class SearchThreads {
 public:
  // At most `threads`, and at most one per core that this process may use; 0: one per core.
  explicit SearchThreads(int threads);
  ~SearchThreads();
  SearchThreads(const SearchThreads&) = delete;
  SearchThreads& operator=(const SearchThreads&) = delete;

  int count() const { return count_; }

  using Work = std::function<void(std::size_t index, std::size_t thread)>;
  // Calls work(index, thread) for all indices below `count`. Threads take them in ascending order while `goes_on` returns true. Only the
  // calling thread, which is number 0, calls done(index + 1), after each index of its own. An exception from `work` ends the loop and is
  // rethrown here.
  void run(std::size_t count, const std::function<bool()>& goes_on, const Work& work,
           const std::function<void(std::size_t next)>& done);

 private:
  struct Pool;
  int count_ = 1;
  std::unique_ptr<Pool> pool_;
};

// Ends all worker threads of TBB when it is destroyed. Worker processes are forked after a search, and a forked process has only the thread
// that called fork().
class SearchThreadsEnd {
 public:
  SearchThreadsEnd();
  ~SearchThreadsEnd();
  SearchThreadsEnd(const SearchThreadsEnd&) = delete;
  SearchThreadsEnd& operator=(const SearchThreadsEnd&) = delete;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace foreshard
