// The threads of a search: they share the work of a loop over indices. The calling thread is one of them. Internal to strategy/.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace foreshard {

class SearchThreads {
 public:
  // At most `threads`, and at most one per core that this process may use; 0: one per core. Where the system starts fewer (ulimit -u), it
  // goes on with those. They end with this object: worker processes are forked after a search, and a forked process has only the thread
  // that called fork().
  explicit SearchThreads(int threads);
  ~SearchThreads();
  SearchThreads(const SearchThreads&) = delete;
  SearchThreads& operator=(const SearchThreads&) = delete;

  int count() const { return 1 + static_cast<int>(others_.size()); }

  using Work = std::function<void(std::size_t index, std::size_t thread)>;
  // Calls work(index, thread) for all indices below `count`. Threads take them in ascending order while `goes_on` returns true. Only the
  // calling thread, which is number 0, calls done(index + 1), after each index of its own. An exception from `work` ends the loop and is
  // rethrown here.
  void run(std::size_t count, const std::function<bool()>& goes_on, const Work& work,
           const std::function<void(std::size_t next)>& done);

 private:
  void help(std::size_t thread);  // body of another thread: takes part in every loop

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(std::size_t thread)>* loop_ = nullptr;  // of the run in progress
  std::uint64_t runs_ = 0;                                         // begun
  std::size_t busy_ = 0;                                           // other threads that have not ended the run in progress
  bool closed_ = false;
  std::vector<std::thread> others_ = {};
};

}  // namespace foreshard
