// The threads of a search: pieces of work by number, one of the threads being the caller's. Internal to strategy/.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace foreshard {

class SearchThreads {
 public:
  explicit SearchThreads(int threads);  // at most; 0: one per core, and never more: of the cores that this process may use
  ~SearchThreads();
  SearchThreads(const SearchThreads&) = delete;
  SearchThreads& operator=(const SearchThreads&) = delete;

  int count() const { return count_; }

  using Work = std::function<void(std::size_t index, std::size_t thread)>;
  // work(index, thread) for all indices below `count`, in their order, while `goes_on` says so. The calling thread works, too: `done` is
  // called by it alone, with the next index, after each piece of its own. What a piece throws ends the work and is thrown here.
  void run(std::size_t count, const std::function<bool()>& goes_on, const Work& work,
           const std::function<void(std::size_t next)>& done);

 private:
  struct Pool;
  int count_ = 1;
  std::unique_ptr<Pool> pool_;
};

// While it lives threads may be made; they end with it: worker processes are forked later, and a fork takes only its own thread along.
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
