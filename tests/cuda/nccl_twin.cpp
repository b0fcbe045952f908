#include "tests/cuda/nccl_twin.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "exec/arithmetic/host_reduce.h"
#include "tests/cuda/nccl_twin_state.h"

namespace foreshard {
inline namespace twin_parts {

// Calls of one rank follow each other; if that goes round in a circle over several ranks, no order of all calls would do.
void Twin::look_for_one_order() {
  using Node = std::pair<int, std::size_t>;
  std::map<Node, std::set<Node>> after;
  std::map<Node, int> before;
  for (const auto& [rank, calls] : orders)
    for (std::size_t i = 0; i < calls.size(); ++i) {
      before[calls[i]] += 0;
      if (i > 0 && after[calls[i - 1]].insert(calls[i]).second) ++before[calls[i]];
    }
  std::vector<Node> free;
  for (const auto& [node, count] : before)
    if (count == 0) free.push_back(node);
  std::size_t seen = 0;
  while (!free.empty()) {
    const Node node = free.back();
    free.pop_back(), ++seen;
    for (const Node& next : after[node])
      if (--before[next] == 0) free.push_back(next);
  }
  if (seen < before.size()) complain("no total order over all communicators: ranks call them in different orders");
}

// Bytes that are no number in any format: whoever needs zeros has to write them.
void* Twin::allocate(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage));
  std::memset(memory, 0xFF, bytes);
  const std::lock_guard lock(mutex);
  ++report.memories;
  memories[memory] = bytes;
  return memory;
}
void Twin::free(void* memory) {
  const std::lock_guard lock(mutex);
  auto* known = static_cast<std::byte*>(memory);
  for (const auto& [handle, data] : registered)
    if (report.aborted == 0 && data == known) complain("ncclMemFree of memory that is registered");
  if (memories.erase(known) == 0) return complain("ncclMemFree of what ncclMemAlloc did not give");
  std::free(memory);
}
void* Twin::add_registration(void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  ++report.registrations, ++report.registered;
  auto* first = static_cast<std::byte*>(data);
  auto found = memories.upper_bound(first);
  const bool inside = found != memories.begin() && first + bytes <= std::prev(found)->first + std::prev(found)->second;
  if (now.gives_memory && !inside) complain("ncclCommRegister of memory that is not of ncclMemAlloc");
  registered[++registrations] = first;
  return reinterpret_cast<void*>(registrations);
}
void Twin::drop_registration(void* handle) {
  const std::lock_guard lock(mutex);
  --report.registered;
  if (registered.erase(reinterpret_cast<std::uintptr_t>(handle)) == 0) complain("ncclCommDeregister of what is not registered");
}

// Puts a call on its stream, where it goes when `meets` says that all partners are there. Called without the lock: whoever asks for progress
// holds the runtime and comes here.
void Twin::launch(Comm* comm, void* on, const std::string& what, const std::vector<TwinRange>& ranges,
                  std::function<bool()> meets) {
  auto* stream = static_cast<gpu::Stream*>(on);
  const std::int64_t gpu = now.gpu(stream);
  std::unique_lock lock(mutex);
  const GpuOrder::Place place = gpus.add(gpu, comm, comm->world, stream);
  const std::vector<Launched> others = gpus.others(gpu, place);
  const bool stays = std::exchange(stalls, false);
  ++comm->inside;
  lock.unlock();
  const std::uint64_t entry = now.put(stream, what, ranges, [this, comm, gpu, place, meets = std::move(meets)] {
    const std::lock_guard inner(mutex);
    if (comm->aborted || place->over) return Meeting::Over;
    if (!connected(*comm) || !gpus.may_begin(gpu, place, report.launches_in_order)) return Meeting::Held;
    place->begun = true;
    if (!meets()) return Meeting::Runs;
    place->over = true;
    return Meeting::Over;
  });
  bool apart = false;
  for (const Launched& other : others) apart = apart || !now.ordered(other.stream, other.entry, stream);
  const auto until = std::chrono::steady_clock::now() + kStall;
  while (stays && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  lock.lock();
  place->entry = entry;
  --comm->inside;
  if (apart && !report.launches_in_order)
    complain(what + " of communicator " + std::to_string(comm->clique->number) + " by rank " + std::to_string(comm->world) +
             " follows one of another communicator on another stream: nothing orders them on the GPU");
}

void Twin::abort(const std::vector<Comm*>& all, bool in_group) {
  const std::lock_guard lock(mutex);
  for (Comm* comm : all) {
    const std::string name = "communicator " + std::to_string(comm->clique->number) + " of rank " + std::to_string(comm->world);
    if (comm->aborted || comm->destroyed) complain("a communicator is aborted that is gone");
    if (comm->inside > 0) complain("ncclCommAbort of " + name + " while a thread is inside a call on it");
    if (const Comm* other = gpus.in_front_of(comm); !in_group && other)
      complain("ncclCommAbort of " + name + " waits for a kernel of communicator " + std::to_string(other->clique->number) +
               ", which is not aborted with it");
    ++report.aborted;
    comm->aborted = true;
    gpus.over(comm);
  }
}

Twin& twin() {
  static Twin one;
  return one;
}

DType dtype_of(DataType type) {
  switch (type) {
    case DataType::Float64: return DType::F64;
    case DataType::Float32: return DType::F32;
    case DataType::Bfloat16: return DType::BF16;
    case DataType::Float16: return DType::F16;
    case DataType::Int8:
    case DataType::Uint8:
    case DataType::Int32:
    case DataType::Uint32:
    case DataType::Int64:
    case DataType::Uint64: return DType::U8;
  }
  return DType::U8;
}

// All have arrived: moves and sums what they called for.
void carry_out(const Clique& clique, Operation& operation) {
  const Call& call = operation.call;
  const std::size_t each = kBytes[static_cast<int>(call.type)], bytes = call.count * each, n = operation.operands.size();
  const auto sum = [&](std::size_t first, std::vector<std::byte*> targets) {
    std::vector<const std::byte*> sources;
    for (const auto& [rank, operand] : operation.operands) sources.push_back(operand.first + first * each);
    std::vector<std::byte> result(bytes);
    std::byte* to = result.data();
    const Combine how = call.op == RedOp::Max ? Combine::Max : call.op == RedOp::Avg ? Combine::Mean : Combine::Sum;
    if (!reduce(dtype_of(call.type), how, false, sources, std::span(&to, 1), 0, static_cast<std::int64_t>(call.count)))
      twin().complain("a sum of numbers that cannot be added");
    for (std::byte* target : targets) std::memcpy(target, result.data(), bytes);
  };
  std::vector<std::byte*> all;
  for (const auto& [rank, operand] : operation.operands) all.push_back(operand.second);
  switch (call.kind) {
    case Kind::AllReduce: return sum(0, all);
    case Kind::Reduce: return sum(0, {operation.operands.at(call.root).second});
    case Kind::ReduceScatter: {
      std::vector<std::vector<std::byte>> kept;  // in place: sources are read before any result is written
      for (std::size_t r = 0; r < n; ++r) {
        kept.emplace_back(bytes);
        sum(r * call.count, {kept.back().data()});
      }
      for (std::size_t r = 0; r < n; ++r) std::memcpy(all[r], kept[r].data(), bytes);
      return;
    }
    case Kind::AllGather:
      for (std::size_t r = 0; r < n; ++r)
        for (std::byte* to : all) std::memmove(to + r * bytes, operation.operands.at(static_cast<int>(r)).first, bytes);
      return;
    case Kind::Broadcast:
      for (std::byte* to : all) std::memmove(to, operation.operands.at(call.root).first, bytes);
      return;
  }
  static_cast<void>(clique);
}

Result collective(Call call, const void* from, void* to, Comm* comm, void* stream) {
  Twin& t = twin();
  std::unique_lock lock(t.mutex);
  const char* name = kNames[static_cast<int>(call.kind)];
  bool dropped = false;
  const int number = t.report.calls;
  if (const Result result = t.accept(comm, name, dropped); result != Result::Success || dropped) return result;
  if (number == t.now.shortened_call) --call.count;
  const std::size_t n = comm->calls++;
  Clique& clique = *comm->clique;
  t.orders[comm->world].push_back({clique.number, n});
  const auto [at, fresh] = clique.operations.try_emplace(n);
  Operation& operation = at->second;
  if (fresh) operation.call = call, operation.first = comm->rank;
  if (operation.call != call) {
    t.complain("call " + std::to_string(n) + " of communicator " + std::to_string(clique.number) + ": rank " +
               std::to_string(operation.first) + " called " + kNames[static_cast<int>(operation.call.kind)] + " of " +
               std::to_string(operation.call.count) + ", rank " + std::to_string(comm->rank) + " " + name + " of " +
               std::to_string(call.count) + " (or another type, operation or root)");
    clique.failure = "ranks disagree";
  }
  operation.operands[comm->rank] = {static_cast<const std::byte*>(from), static_cast<std::byte*>(to)};
  const auto size = static_cast<std::size_t>(clique.size), bytes = call.count * kBytes[static_cast<int>(call.type)];
  const std::size_t in = call.kind == Kind::ReduceScatter ? bytes * size : bytes,
                    out = call.kind == Kind::AllGather ? bytes * size : bytes;
  const auto *begin = static_cast<const std::byte*>(from), *into = static_cast<const std::byte*>(to);
  const bool slow = t.now.slow_calls > 0 && t.now.slow_calls-- > 0;
  const bool connects = !Twin::connected(*comm);
  lock.unlock();
  t.launch(comm, stream, name, {{begin, begin + in, false}, {into, into + out, true}},
           [c = comm->clique, &operation, rank = comm->rank] {
             if (!c->failure.empty()) return false;
             operation.arrived.insert(rank);
             if (static_cast<int>(operation.arrived.size()) == c->size && !operation.done) {
               carry_out(*c, operation);
               operation.done = true;
             }
             return operation.done;
           });
  return slow || connects ? Result::InProgress : Result::Success;
}

Message& message(Clique& clique, int from, int to, std::size_t n) {
  std::vector<Message>& all = clique.messages[{from, to}];
  if (all.size() <= n) all.resize(n + 1);
  return all[n];
}

// One entry of the stream: it goes when all its messages have.
Result run_group(std::vector<Pending> pending) {
  Twin& t = twin();
  std::unique_lock lock(t.mutex);
  bool connects = false;
  std::map<std::pair<Comm*, void*>, std::vector<Pending>> by_stream;
  for (const Pending& one : pending) by_stream[{one.comm, one.stream}].push_back(one);
  for (auto& [where, parts] : by_stream) {
    Comm* comm = where.first;
    bool dropped = false;
    if (const Result result = t.accept(comm, "a group", dropped); result != Result::Success || dropped) return result;
    std::vector<std::function<Message&()>> mine;
    std::vector<bool> sends;
    std::vector<TwinRange> ranges;
    for (const Pending& part : parts) {
      auto c = comm->clique;
      const int from = part.sends ? comm->rank : part.peer, to = part.sends ? part.peer : comm->rank;
      const std::size_t n = part.sends ? comm->sent[part.peer]++ : comm->received[part.peer]++;
      Message& it = message(*c, from, to, n);
      if (part.sends)
        it.from = part.from, it.sent = part.bytes, it.has_sent = true,
        ranges.push_back({part.from, part.from + part.bytes, false});
      else
        it.to = part.to, it.wanted = part.bytes, it.has_wanted = true, ranges.push_back({part.to, part.to + part.bytes, true});
      if (it.has_sent && it.has_wanted && it.sent != it.wanted) {
        t.complain("a message from rank " + std::to_string(from) + " to " + std::to_string(to) + " of " +
                   std::to_string(it.sent) + " bytes, received as " + std::to_string(it.wanted));
        c->failure = "ranks disagree";
      }
      mine.push_back([c, from, to, n]() -> Message& { return message(*c, from, to, n); });
      sends.push_back(part.sends);
    }
    connects = connects || !Twin::connected(*comm);
    lock.unlock();
    t.launch(comm, where.second, "a group", ranges, [mine, sends, c = comm->clique] {
      if (!c->failure.empty()) return false;
      bool all = true;
      for (std::size_t i = 0; i < mine.size(); ++i) {
        Message& it = mine[i]();
        (sends[i] ? it.sender_there : it.receiver_there) = true;
        if (!it.done && it.sender_there && it.receiver_there) std::memcpy(it.to, it.from, it.sent), it.done = true;
        all = all && it.done;
      }
      return all;
    });
    lock.lock();
  }
  return connects ? Result::InProgress : Result::Success;
}

Result point(bool sends, const void* from, void* to, std::size_t count, DataType type, int peer, Comm* comm, void* stream) {
  const Pending one{sends,
                    static_cast<const std::byte*>(from),
                    static_cast<std::byte*>(to),
                    count * kBytes[static_cast<int>(type)],
                    peer,
                    comm,
                    stream};
  if (group_depth == 0) return run_group({one});
  group.push_back(one);
  return Result::Success;
}

}  // namespace twin_parts
}  // namespace foreshard

using foreshard::twin;
using namespace foreshard::nccl;
using foreshard::Kind;

extern "C" {

foreshard::TwinControl* nccl_twin_control() { return &twin(); }

Result ncclGetVersion(int* version) { return *version = twin().now.version, Result::Success; }
const char* ncclGetErrorString(Result result) {
  static const char* const words[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return words[static_cast<int>(result)];
}
const char* ncclGetLastError(Comm* comm) { return comm ? comm->clique->failure.c_str() : ""; }

Result ncclGetUniqueId(UniqueId* id) {
  const std::lock_guard lock(twin().mutex);
  std::snprintf(id->internal, sizeof id->internal, "twin %d", twin().ids++);
  return Result::Success;
}
Result ncclCommInitRankConfig(Comm** comm, int ranks, UniqueId id, int rank, Config* config) {
  foreshard::Twin& t = twin();
  const std::lock_guard lock(t.mutex);
  t.read_environment();
  if (!config || config->magic != 0xcafebeef || config->size < sizeof(Config)) t.complain("a configuration that is none");
  if (config && config->blocking != 0) t.complain("a communicator is made blocking: a rank that does not come would hang all");
  auto& clique = t.cliques[id.internal];
  if (!clique) clique = t.new_clique(ranks);
  if (rank < 0 || rank >= ranks || clique->size != ranks || clique->present.contains(rank)) {
    t.complain("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " joins twice or where it does not belong");
    return Result::InvalidArgument;
  }
  *comm = t.make(clique, rank, rank);
  return Result::InProgress;
}
Result ncclCommSplit(Comm* parent, int color, int key, Comm** comm, Config*) {
  foreshard::Twin& t = twin();
  const std::lock_guard lock(t.mutex);
  if (!parent || parent->aborted || !t.ready(*parent)) {
    t.complain("ncclCommSplit of a communicator that is not ready");
    return Result::InvalidArgument;
  }
  *comm = nullptr;
  const std::size_t n = parent->splits++;
  auto& told = parent->clique->splits[n];
  told[parent->rank] = {color, key};
  if (color >= 0) {
    auto& part = parent->clique->parts[{n, color}];
    if (!part) part = t.new_clique(1 << 20);  // until all have told their color
    *comm = t.make(part, key, parent->world);
  }
  if (static_cast<int>(told.size()) < parent->clique->size) return Result::InProgress;
  for (auto& [at, clique] : parent->clique->parts)
    if (at.first == n)
      clique->size = static_cast<int>(
          std::count_if(told.begin(), told.end(), [&](const auto& one) { return one.second.first == at.second; }));
  return Result::InProgress;
}
Result ncclCommGetAsyncError(Comm* comm, Result* state) {
  foreshard::Twin& t = twin();
  const std::lock_guard lock(t.mutex);
  t.expect_no_capture("ncclCommGetAsyncError");
  *state = Result::Success;
  const bool connects = comm->connects && !foreshard::Twin::connected(*comm);
  if (!t.ready(*comm) || connects || (comm->slow > 0 && comm->slow-- > 0)) *state = Result::InProgress;
  if (!comm->clique->failure.empty()) *state = Result::RemoteError;
  return Result::Success;
}
Result ncclCommFinalize(Comm* comm) { return comm->finalized = true, Result::Success; }
Result ncclCommDestroy(Comm* comm) {
  const std::lock_guard lock(twin().mutex);
  if (!comm->finalized) twin().complain("a communicator is destroyed before it is finalized");
  ++twin().report.destroyed;
  return comm->destroyed = true, Result::Success;
}
Result ncclCommAbort(Comm* comm) {
  if (foreshard::group_depth > 0)
    foreshard::group_aborts.push_back(comm);
  else
    twin().abort({comm}, false);
  return Result::Success;
}
Result ncclCommRegister(Comm*, void* data, std::size_t bytes, void** handle) {
  return *handle = twin().add_registration(data, bytes), Result::Success;
}
Result ncclCommDeregister(Comm*, void* handle) { return twin().drop_registration(handle), Result::Success; }
Result ncclMemAlloc(void** memory, std::size_t bytes) {
  if (!twin().now.gives_memory) return Result::UnhandledCudaError;
  return *memory = twin().allocate(bytes), Result::Success;
}
Result ncclMemFree(void* memory) { return twin().free(memory), Result::Success; }

Result ncclAllReduce(const void* from, void* to, std::size_t count, DataType type, RedOp op, Comm* comm, void* stream) {
  return foreshard::collective({Kind::AllReduce, count, type, op, 0}, from, to, comm, stream);
}
Result ncclReduceScatter(const void* from, void* to, std::size_t count, DataType type, RedOp op, Comm* comm, void* stream) {
  return foreshard::collective({Kind::ReduceScatter, count, type, op, 0}, from, to, comm, stream);
}
Result ncclReduce(const void* from, void* to, std::size_t count, DataType type, RedOp op, int root, Comm* comm, void* stream) {
  return foreshard::collective({Kind::Reduce, count, type, op, root}, from, to, comm, stream);
}
Result ncclAllGather(const void* from, void* to, std::size_t count, DataType type, Comm* comm, void* stream) {
  return foreshard::collective({Kind::AllGather, count, type, RedOp::Sum, 0}, from, to, comm, stream);
}
Result ncclBroadcast(const void* from, void* to, std::size_t count, DataType type, int root, Comm* comm, void* stream) {
  return foreshard::collective({Kind::Broadcast, count, type, RedOp::Sum, root}, from, to, comm, stream);
}
Result ncclSend(const void* from, std::size_t count, DataType type, int peer, Comm* comm, void* stream) {
  return foreshard::point(true, from, nullptr, count, type, peer, comm, stream);
}
Result ncclRecv(void* to, std::size_t count, DataType type, int peer, Comm* comm, void* stream) {
  return foreshard::point(false, nullptr, to, count, type, peer, comm, stream);
}
Result ncclGroupStart() { return ++foreshard::group_depth, Result::Success; }
Result ncclGroupEnd() {
  if (foreshard::group_depth == 0) {
    const std::lock_guard lock(twin().mutex);
    twin().complain("ncclGroupEnd without ncclGroupStart");
    return Result::InvalidUsage;
  }
  if (--foreshard::group_depth > 0) return Result::Success;
  if (!foreshard::group_aborts.empty()) twin().abort(std::exchange(foreshard::group_aborts, {}), true);
  return foreshard::run_group(std::exchange(foreshard::group, {}));
}

}  // extern "C"
