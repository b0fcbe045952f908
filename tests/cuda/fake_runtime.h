// GPUs that are not there: streams are queues, of which one entry at a time runs, drawn by a seed, whenever somebody asks for
// progress; kernels run in the emulator. Beside that a check that holds in every order: each entry declares the bytes it reads and writes,
// clocks per stream say what is ordered by events, and two entries that touch the same bytes without an order are a conflict.
//
// What CUDA's documents demand, or leave open, the fake does in the way that is worst for the caller:
//
//   current device      every host thread begins on GPU 0 and stays there until it selects another (programming guide, "Device selection");
//                       whatever it asks of the runtime makes a context on the current GPU
//   whose it is         streams and events belong to the GPU on which they were made: recording an event on a stream of another GPU, launching on a
//                       stream of a GPU that is not the current one and taking the time between events of two GPUs fail; waiting, asking and copying
//                       across GPUs do not ("Stream and event behavior")
//   peer memory         a kernel reaches another GPU's memory only after access was enabled, which the machine may not offer ("Peer-to-peer
//                       memory access"); a copy goes through the host then
//   legacy stream       setting device memory is asynchronous to the host, and on the legacy stream, with which streams made non-blocking do not
//                       order themselves (runtime API, "Stream synchronization behavior", "API synchronization behavior")
//   connections         a GPU takes work from a few queues; streams share them, and what waits at the head of one holds up the rest of it
//                       (CUDA_DEVICE_MAX_CONNECTIONS in the programming guide's list of variables)
//   alignment           an algorithm for a product is chosen once per form, for what its operands are aligned to then (CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_*)
//   first use           kernels are loaded when they are first launched (CUDA_MODULE_LOADING=LAZY), which the calling thread waits for
//   events in graphs    an event that a graph records shows its former state until the graph's node runs
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "exec/cuda/emulator/emulator.h"
#include "exec/cuda/product_form.h"
#include "exec/cuda/runtime.h"
#include "tests/cuda/meeting.h"

namespace foreshard::gpu {

struct FakeSettings {
  std::uint64_t seed = 1;
  int devices = 1;
  int nvlinked = 1;                         // so many in a row have NVLinks between them
  int peers = 1024;                         // so many in a row reach each other's memory
  int connections = 32;                     // of a GPU to the host
  std::vector<int> numa_cpus = {};          // of every GPU
  bool blocking_streams = false;            // streams are made such that they order themselves with the legacy one
  Bytes memory = {std::int64_t{1} << 30U};  // of one GPU; more is not given
  int capability = 80;
  emulator::Settings kernels = {.checks_sharing = false};
  bool late_zeroing = false;                                 // what is on a legacy stream goes when nothing else can
  std::chrono::milliseconds first_use{0}, first_product{0};  // what loading a kernel takes, and the library of products
  std::chrono::seconds slowly{0};                            // ... the latter, and a connection, by the clock of `now`
  int dropped_wait = -1;                                     // the n-th wait that matters is forgotten
  int dropped_work = -1;                                     // the n-th kernel of this name is not launched
  KernelId dropped_kernel = {};
  std::int64_t timed_event = 0;  // nanoseconds that a timed event takes of its stream; a kernel takes 1000
  bool eight_bits = true;        // the GPU has products of 8 bits
  bool epilogues = true;         // the library of products has them
  std::vector<std::int64_t> product_times =
      {};                          // nanoseconds that a product takes more by each of its algorithms; empty: there is one
  bool library_attention = false;  // there is a library of attention, see attention_call.h
  int shifted_view = -1;           // the n-th array of all launches begins one element late
  int failing_work = -1;           // the n-th copy, kernel or product fails with this code when it runs
  std::string failure = "cudaErrorLaunchFailure";
  int hanging_work = -1;  // the n-th never ends
  // By the clock of `now`, once the work that hangs holds up its stream: the time that passes whenever a thread that does not enqueue work
  // itself asks whether an event is done, and it is not. So time passes only while a rank watches the GPU, however busy the machine is.
  std::chrono::milliseconds hanging_question{0};
};

class FakeRuntime : public Runtime {
 public:
  static constexpr std::int64_t kContext = 5 << 20;  // bytes that are not free on a GPU that holds nothing

  explicit FakeRuntime(FakeSettings settings = {});
  ~FakeRuntime() override;

  int devices() override { return settings_.devices; }
  Properties properties(int device) override;
  Bytes free_memory(int device) override;
  void select(int device) override;
  bool reach(int device, int peer) override;
  std::byte* allocate(Space space, Bytes bytes) override;
  void release(Space space, std::byte* memory) override;
  Stream* open_stream(bool urgent) override;
  void close_stream(Stream* stream) override;
  Stream* legacy_stream() override;
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
  void begin_range(const char* name) override;
  void end_range() override;
  void fill(std::byte* to, std::byte with, Bytes bytes, Stream* stream) override;
  void copy(std::byte* to, const std::byte* from, Bytes bytes, Stream* stream) override;
  void launch(const Launch& launch, Stream* stream) override;
  void multiply(const Multiply& multiply, std::byte* workspace, Bytes bytes, Stream* stream) override;
  std::vector<Algorithm> algorithms(const Multiply& multiply, Bytes workspace, int most) override;
  bool takes(const Multiply& multiply, const Algorithm& algorithm, Bytes workspace) override;
  // Reads the values of the call and nothing else; wants a workspace and writes to all of it.
  std::optional<Bytes> attention_workspace(const AttentionCall& call) override;
  std::string attention_refusal(const AttentionCall& call) override;
  void attention(const AttentionCall& call, std::byte* workspace, Stream* stream) override;

  const std::vector<std::string>& conflicts() const { return conflicts_; }
  int waits_that_matter() const { return waits_; }
  int works() const { return works_; }
  int views() const { return views_; }
  std::int64_t allocated() const { return static_cast<std::int64_t>(memory_.size()); }
  int graph_launches() const { return graph_launches_; }
  int library_attentions() const { return library_attentions_; }
  int attentions_in_any_order() const { return attentions_in_any_order_; }
  struct DrawnMask {  // by an attention with dropout
    bool backward = false;
    std::int64_t seed = 0, offset = 0;
  };
  std::vector<DrawnMask> drawn_masks() const;  // in the order in which they were drawn
  int products_with(Epilogue epilogue, Sums sums) const {
    const auto found = epilogues_.find({epilogue, sums});
    return found == epilogues_.end() ? 0 : found->second;
  }
  const std::map<int, int>& products_by() const {
    return products_by_;
  }  // by number of the algorithm; -1: of the library's choice
  int eight_bit_products() const { return eight_bit_products_; }
  int timed_records() const { return timed_records_; }  // events with times that have been recorded
  int graphs() const { return graphs_; }                // that have not been dropped
  static bool captures();                               // this thread does: it may only put work on that one stream
  const std::map<KernelId, int>& launches() const { return launches_; }
  const std::set<int>& contexts() const { return contexts_; }                // GPUs on which there is one
  const std::set<std::pair<int, int>>& reached() const { return reached_; }  // (GPU, whose memory it may use)
  // A clock that stands still except where something loads or connects, and as FakeSettings::hanging_question says.
  std::chrono::steady_clock::time_point now() const {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(passed_));
  }
  void pass() { passed_ += std::chrono::nanoseconds(settings_.slowly).count(); }
  const std::map<std::string, int>& ranges() const { return ranges_; }  // that have ended, by name
  int urgent_streams() const { return urgent_; }
  int connections() const { return settings_.connections; }
  int far_calls() const { return far_calls_; }           // kernels put on a stream by a thread that may run elsewhere
  std::int64_t questions() const { return questions_; }  // how often somebody asked whether an event is done

  // For a library that puts its own work on streams: an entry that is asked how far it has come whenever it is first in its queue. Tells which
  // one of the stream's it is.
  std::uint64_t put_meeting(Stream* stream, const std::string& what,
                            const std::vector<std::pair<const std::byte*, const std::byte*>>& reads,
                            const std::vector<std::pair<const std::byte*, const std::byte*>>& writes,
                            std::function<Meeting()> state);
  // Whether what is put on `later` now begins after that entry of `earlier` has ended, in every order of the streams.
  bool ordered(const Stream* earlier, std::uint64_t entry, const Stream* later);
  static FakeRuntime& of(const Stream* stream);
  static std::int64_t gpu_of(const Stream* stream);  // among those of all runtimes

 private:
  using Clock = std::map<const Stream*, std::uint64_t>;
  struct Block {
    Space space = Space::Device;
    Bytes bytes = {};
    int device = 0;
  };
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
  int& current();  // device of this thread
  void touch() { contexts_.insert(current()); }
  Stream* legacy_of(int device);
  Stream* add_stream(int device);
  void order_with_legacy(Stream* stream);
  std::uint64_t put_work(Stream* stream, const std::string& what, std::vector<Range> ranges, std::function<void()> work,
                         std::function<Meeting()> state = {});
  void put_record(Event* event, Stream* stream, bool in_graph);
  void expect_current(const Stream* stream, const std::string& call);
  std::string out_of_reach(int device, const std::vector<Range>& ranges) const;
  void load(const std::string& what, Stream* stream, std::chrono::milliseconds takes);
  void note_place();
  void note(const Range& range, Stream* stream, const std::string& what);
  bool may_go(Stream& stream);
  bool step();  // false: nothing can run
  void run_legacy(int device);
  void expect_alive(const std::string& call) const;
  void expect_no_capture(const std::string& call);
  Clock& host() { return host_[std::this_thread::get_id()]; }
  std::uint64_t random() { return philox_++; }

  FakeSettings settings_;
  const std::uint64_t number_;  // among all runtimes of the process
  mutable std::mutex mutex_;
  std::deque<Stream*> streams_;
  std::map<int, Stream*> legacy_;  // by device
  std::map<int, int> opened_;      // streams, by device
  std::map<std::byte*, Block> memory_;
  std::map<int, std::int64_t> used_;       // bytes, by device
  std::map<std::thread::id, Clock> host_;  // what a thread has seen to be done
  Clock everybody_;                        // what a thread has waited for
  std::vector<Access> accesses_;
  std::vector<std::string> conflicts_;
  std::map<KernelId, int> launches_;
  std::map<std::thread::id, std::vector<std::string>> open_ranges_;
  std::map<std::string, int> ranges_;
  std::set<int> contexts_;
  std::set<std::thread::id> enqueuers_;  // threads that have enqueued work
  bool hangs_ = false;                   // the work that hangs holds up its stream
  std::set<std::pair<int, int>> reached_;
  std::map<std::pair<Epilogue, Sums>, int> epilogues_;
  std::map<int, int> products_by_;
  std::map<ProductForm, std::uint32_t> chosen_;   // what the algorithm of a form takes the epilogue's operands to be aligned to
  std::set<std::pair<int, std::string>> loaded_;  // (device, kernel)
  std::string failure_;
  std::uint64_t philox_ = 0, serial_ = 0;
  std::int64_t now_ = 0;
  std::atomic<std::int64_t> questions_ = 0;
  std::atomic<std::int64_t> passed_ = 0;  // nanoseconds
  std::atomic<int> graph_launches_ = 0, far_calls_ = 0;
  int waits_ = 0, works_ = 0, views_ = 0, graphs_ = 0, urgent_ = 0, timed_records_ = 0, eight_bit_products_ = 0,
      library_attentions_ = 0, attentions_in_any_order_ = 0;
  std::vector<DrawnMask> drawn_masks_ = {};
};

}  // namespace foreshard::gpu
