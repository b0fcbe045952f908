// What the twin of NCCL knows: communicators, their calls and messages. Included by nccl_twin.cpp only.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "exec/nccl/nccl.h"
#include "tests/cuda/nccl_twin.h"
#include "tests/cuda/nccl_twin_order.h"

namespace foreshard {
inline namespace twin_parts {

using nccl::Comm;
using nccl::DataType;
using nccl::RedOp;
using nccl::Result;

enum class Kind { AllReduce, ReduceScatter, Reduce, AllGather, Broadcast };
const char* const kNames[] = {"ncclAllReduce", "ncclReduceScatter", "ncclReduce", "ncclAllGather", "ncclBroadcast"};
constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

struct Call {
  Kind kind = {};
  std::size_t count = 0;
  DataType type = {};
  RedOp op = {};
  int root = 0;
  bool operator==(const Call&) const = default;
};

struct Operation {  // the n-th call of all ranks
  Call call = {};
  int first = 0;  // who called first
  std::map<int, std::pair<const std::byte*, std::byte*>> operands = {};
  std::set<int> arrived = {};
  bool done = false;
};

struct Message {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t sent = 0, wanted = 0;
  bool has_sent = false, has_wanted = false, done = false;
  bool sender_there = false, receiver_there = false;  // their streams are
};

struct Clique {  // the ranks of one communicator
  int number = 0, size = 0;
  std::set<int> present = {};
  std::map<std::size_t, Operation> operations = {};
  std::map<std::pair<int, int>, std::vector<Message>> messages = {};      // (from, to) -> in order
  std::map<std::size_t, std::map<int, std::pair<int, int>>> splits = {};  // n-th split: rank -> (color, key)
  std::map<std::pair<std::size_t, int>, std::shared_ptr<Clique>> parts = {};
  std::string failure = {};
};

struct Pending {  // of a group
  bool sends = false;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  Comm* comm = nullptr;
  void* stream = nullptr;
};

}  // namespace twin_parts
}  // namespace foreshard

namespace foreshard::nccl {
struct Comm {
  std::shared_ptr<Clique> clique = {};
  int rank = 0, number = 0, world = 0;  // world: the rank in the communicator that all were split off
  std::size_t calls = 0, splits = 0;
  std::map<int, std::size_t> sent = {}, received = {};
  std::chrono::steady_clock::time_point connected = {};
  bool connects = false;  // has begun to
  int inside = 0;         // calls that have not returned
  bool aborted = false, finalized = false, destroyed = false, no_color = false;
  int slow = 0;
};
}  // namespace foreshard::nccl

namespace foreshard {
inline namespace twin_parts {

thread_local int group_depth = 0;
thread_local std::vector<Pending> group;
thread_local std::vector<Comm*> group_aborts;
constexpr std::chrono::milliseconds kStall{200};

class Twin : public TwinControl {
 public:
  void begin(TwinSettings settings) override {
    const std::lock_guard lock(mutex);
    now = std::move(settings), report = {}, cliques.clear(), comms.clear(), orders.clear(), gpus.clear(), cliques_made = 0;
    memories.clear(), registered.clear(), registrations = 0;
  }
  TwinReport end() override {
    const std::lock_guard lock(mutex);
    for (const auto& comm : comms)
      if (!comm->aborted && !comm->destroyed) complain("a communicator is neither destroyed nor aborted");
    if (report.aborted == 0) {
      look_for_one_order();
      for (const auto& comm : comms)
        for (const auto& [n, operation] : comm->clique->operations)
          if (!operation.done && operation.first == comm->rank)
            complain(std::string(kNames[static_cast<int>(operation.call.kind)]) + " " + std::to_string(n) +
                     " of communicator " + std::to_string(comm->clique->number) + " was called by " +
                     std::to_string(operation.operands.size()) + " of " + std::to_string(comm->clique->size) + " ranks");
    }
    report.kept_memories = static_cast<int>(memories.size());
    return report;
  }

  void* allocate(std::size_t bytes);
  void free(void* memory);
  void* add_registration(void* data, std::size_t bytes);
  void drop_registration(void* handle);
  void complain(const std::string& what) {
    if (report.complaints.size() < 50) report.complaints.push_back(what);
  }
  void expect_no_capture(const char* what) {
    if (now.captures && now.captures()) complain(std::string(what) + " by a thread that captures a graph");
  }
  Comm* make(std::shared_ptr<Clique> clique, int rank, int world) {
    auto made = std::make_unique<Comm>();
    made->clique = std::move(clique), made->rank = rank, made->world = world, made->number = report.comms++;
    made->clique->present.insert(rank);
    return comms.emplace_back(std::move(made)).get();
  }
  std::shared_ptr<Clique> new_clique(int size) {
    auto made = std::make_shared<Clique>();
    made->number = cliques_made++, made->size = size;
    return made;
  }
  bool ready(const Comm& comm) const {
    return comm.number != now.never_ready && static_cast<int>(comm.clique->present.size()) == comm.clique->size;
  }
  // Whether a call on a stream may be made; counts it. `dropped`: it is to do nothing.
  Result accept(Comm* comm, const char* what, bool& dropped) {
    expect_no_capture(what);
    if (!comm || comm->aborted || comm->destroyed || !ready(*comm)) {
      complain(std::string(what) + " on a communicator that is " + (comm && comm->aborted ? "aborted" : "not ready"));
      return Result::InvalidArgument;
    }
    if (!comm->clique->failure.empty()) return Result::RemoteError;
    const int number = report.calls++;
    dropped = number == now.dropped_call;
    if (number == now.failing_call) comm->clique->failure = "the network is broken";
    comm->slow = now.slow_calls > 0 ? 3 : 0;
    if (!std::exchange(comm->connects, true)) {
      comm->connected = std::chrono::steady_clock::now() + now.connecting;
      if (now.connects) now.connects();
    }
    stalls = number == now.stalled_call;
    return Result::Success;
  }
  // Reads the variable when the first communicator is made, as NCCL does.
  void read_environment() {
    const char* order = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    report.launches_in_order = now.version >= 22600 && order && std::string(order) == "1";
  }
  static bool connected(const Comm& comm) { return std::chrono::steady_clock::now() >= comm.connected; }
  void launch(Comm* comm, void* stream, const std::string& what, const std::vector<TwinRange>& ranges,
              std::function<bool()> meets);
  void abort(const std::vector<Comm*>& all, bool in_group);
  void look_for_one_order();

  std::mutex mutex;
  TwinSettings now;
  TwinReport report;
  std::map<std::byte*, std::size_t> memories;       // of ncclMemAlloc
  std::map<std::uintptr_t, std::byte*> registered;  // by handle
  std::uintptr_t registrations = 0;
  std::map<std::string, std::shared_ptr<Clique>> cliques;  // by id
  std::vector<std::unique_ptr<Comm>> comms;
  std::map<int, std::vector<std::pair<int, std::size_t>>> orders;  // rank of the world -> (communicator, number of its call)
  GpuOrder gpus;
  int cliques_made = 0, ids = 0;
  bool stalls = false;  // the call that was accepted last
};

}  // namespace twin_parts
}  // namespace foreshard
