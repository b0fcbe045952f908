// A GPU that is not there: streams are queues, of which one entry at a time runs, drawn by a seed, whenever somebody asks for
// progress; kernels run in the emulator. Beside that a check that holds in every order: each entry declares the bytes it reads and writes,
// clocks per stream say what is ordered by events, and two entries that touch the same bytes without an order are a conflict.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "exec/cuda/emulator/emulator.h"
#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

struct FakeSettings {
  std::uint64_t seed = 1;
  int devices = 1;
  int nvlinked = 1;                         // so many in a row have NVLinks between them
  Bytes memory = {std::int64_t{1} << 30U};  // of one GPU; more is not given
  emulator::Settings kernels = {.checks_sharing = false};
  int dropped_wait = -1;  // the n-th wait that matters is forgotten
  int dropped_work = -1;  // the n-th kernel of this name is not launched
  KernelId dropped_kernel = {};
  int shifted_view = -1;  // the n-th array of all launches begins one element late
  int failing_work = -1;  // the n-th copy, kernel or product fails with this code when it runs
  std::string failure = "cudaErrorLaunchFailure";
};

class FakeRuntime : public Runtime {
 public:
  static constexpr std::int64_t kContext = 5 << 20;  // bytes that are not free on a GPU that holds nothing

  explicit FakeRuntime(FakeSettings settings = {}) : settings_(std::move(settings)) {}
  ~FakeRuntime() override;

  int devices() override { return settings_.devices; }
  Properties properties(int device) override;
  void select(int device) override;
  std::byte* allocate(Space space, Bytes bytes) override;
  void release(Space space, std::byte* memory) override;
  Stream* open_stream() override;
  void close_stream(Stream* stream) override;
  Event* make_event(bool timed) override;
  void drop_event(Event* event) override;
  void record(Event* event, Stream* stream) override;
  void wait(Stream* stream, Event* event) override;
  bool done(Event* event) override;
  bool idle(Stream* stream) override;
  void synchronize(Stream* stream) override;
  std::int64_t nanoseconds(Event* from, Event* to) override;
  void begin_capture(Stream* stream) override;
  Graph* end_capture(Stream* stream) override;
  void launch(Graph* graph, Stream* stream) override;
  void drop_graph(Graph* graph) override;
  void fill(std::byte* to, std::byte with, Bytes bytes, Stream* stream) override;
  void copy(std::byte* to, const std::byte* from, Bytes bytes, Stream* stream) override;
  void launch(const Launch& launch, Stream* stream) override;
  void multiply(const Multiply& multiply, std::byte* workspace, Bytes bytes, Stream* stream) override;

  const std::vector<std::string>& conflicts() const { return conflicts_; }
  int waits_that_matter() const { return waits_; }
  int works() const { return works_; }
  int views() const { return views_; }
  std::int64_t allocated() const { return static_cast<std::int64_t>(memory_.size()); }
  int graph_launches() const { return graph_launches_; }
  int graphs() const { return graphs_; }  // that have not been dropped
  bool captures();                        // this thread does: it may only put work on that one stream
  const std::map<KernelId, int>& launches() const { return launches_; }

  // For a library that puts its own work on streams: an entry that goes when `ready` says so, asked whenever it is first in its queue.
  void put_meeting(Stream* stream, const std::string& what,
                   const std::vector<std::pair<const std::byte*, const std::byte*>>& reads,
                   const std::vector<std::pair<const std::byte*, const std::byte*>>& writes, std::function<bool()> ready);

 private:
  using Clock = std::map<const Stream*, std::uint64_t>;
  struct Range {
    const std::byte *begin = nullptr, *end = nullptr;
    bool write = false;
  };
  struct Access {
    Range range = {};
    const Stream* stream = nullptr;
    std::uint64_t tick = 0;
    std::string what = {};
  };
  void put_work(Stream* stream, const std::string& what, std::vector<Range> ranges, std::function<void()> work,
                std::function<bool()> ready = {});
  void note(const Range& range, Stream* stream, const std::string& what);
  bool step();  // false: nothing can run
  void expect_alive(const char* call) const;
  void expect_no_capture(const char* call);
  Clock& host() { return host_[std::this_thread::get_id()]; }
  std::uint64_t random() { return philox_++; }

  FakeSettings settings_;
  mutable std::mutex mutex_;
  std::deque<Stream*> streams_;
  std::map<std::byte*, std::pair<Space, Bytes>> memory_;
  std::map<std::thread::id, Clock> host_;  // what a thread has seen to be done
  Clock everybody_;                        // what a thread has waited for
  std::vector<Access> accesses_;
  std::vector<std::string> conflicts_;
  std::map<KernelId, int> launches_;
  std::mutex capturing_mutex_;  // its own: libraries ask while they hold theirs, which the runtime takes while it holds its own
  std::set<std::thread::id> capturing_;
  std::string failure_;
  std::uint64_t philox_ = 0;
  std::int64_t now_ = 0, used_ = 0;
  std::atomic<int> graph_launches_ = 0;
  int waits_ = 0, works_ = 0, views_ = 0, graphs_ = 0;
};

}  // namespace foreshard::gpu
