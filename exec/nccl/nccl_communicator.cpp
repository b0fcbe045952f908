#include "exec/nccl/nccl_communicator.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "exec/communicator/round_walk.h"

namespace foreshard::gpu {

using nccl::Result;

namespace {

nccl::DataType type_of_sum(DType dtype, const std::string& where) {
  switch (dtype) {
    case DType::F64: return nccl::DataType::Float64;
    case DType::F32:
    case DType::TF32: return nccl::DataType::Float32;
    case DType::BF16: return nccl::DataType::Bfloat16;
    case DType::F16: return nccl::DataType::Float16;
    case DType::F8:
    case DType::F4:
    case DType::I64:
    case DType::I32:
    case DType::U8: break;
  }
  throw Error("plan", where, "a sum of numbers that NCCL does not add here", "fp64, fp32, tf32, bf16 or fp16");
}

}  // namespace

// The base of all tasks: waits for its turn among the NCCL calls of the rank, makes the call, and waits until NCCL has enqueued it.
class NcclDevices::Task : public GpuTask {
 public:
  Task(NcclDevices& devices, RankId rank) : devices_(devices), rank_(devices.rank(rank)), turn_(rank_.tasks++) {}
  bool meets() const override { return true; }
  // It cannot be part of a CUDA graph: the host waits for its turn and for calls in progress, which a capturing thread must not do.
  bool repeats() const final { return false; }

  void enqueue(OnStream& on, int run) final {
    {
      std::unique_lock lock(rank_.mutex);
      devices_.stop_.wait(lock, rank_.changed, [&] { return rank_.done == run * rank_.tasks + turn_; });
    }
    {
      const std::lock_guard inside(rank_.inside);
      if (devices_.aborted_) throw Stopped{};
      begin_in_order(on);
      call(on);
    }
    const std::lock_guard lock(rank_.mutex);
    ++rank_.done;
    rank_.changed.notify_all();
  }

 protected:
  virtual void call(OnStream& on) = 0;

  // If the call returned InProgress, polls until it is enqueued on the stream.
  void expect(Result result, const char* what, nccl::Comm* comm) const {
    while (result == Result::InProgress) {
      if (devices_.stop_.raised()) throw Stopped{};
      std::this_thread::yield();
      Result state = Result::Success;
      result = devices_.library_.comm_async_error(comm, &state);
      if (result == Result::Success) result = state;
    }
    if (result != Result::Success) devices_.expect(result, what, comm);
  }

  NcclDevices& devices_;
  Rank& rank_;

 private:
  // NCCL_LAUNCH_ORDER_IMPLICIT orders all calls for a GPU. If ranks share a GPU, their calls come in no fixed order, so each rank orders
  // its own calls here. A call may begin when the one before it may begin, not when that has ended: the two may need each other.
  void begin_in_order(const OnStream& on) const {
    if (!rank_.begins) return;
    on.runtime.wait(on.stream, rank_.begins);
    on.runtime.record(rank_.begins, on.stream);
  }

  std::int64_t turn_;
};

class NcclDevices::CollectiveTask : public Task {
 public:
  CollectiveTask(NcclDevices& devices, RankId rank, const CollectiveCall& what) : Task(devices, rank), what_(what) {
    const Combine combine = what.what.combine;
    op_ = combine == Combine::Max ? nccl::RedOp::Max : combine == Combine::Mean ? nccl::RedOp::Avg : nccl::RedOp::Sum;
    accumulate_ = what.what.accumulate;
    own_ = std::find(what.members.begin(), what.members.end(), rank) - what.members.begin();
    const CollectiveKind kind = what.what.kind;
    sums_ = kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::Reduce;
    if (sums_) type_ = type_of_sum(what.from.dtype, what.where);
    if (kind == CollectiveKind::AllToAll && what.from.data == what.to.data)
      throw Error("plan", what.where, "an all-to-all in place", "two blocks, as NCCL wants them");
    // NCCL cannot accumulate into the output. So its result goes to a temporary buffer, and a kernel adds it.
    if (sums_ && accumulate_) beside_ = devices.memory_.allocate(Space::Device, {result_bytes()});
  }

 private:
  std::int64_t members() const { return static_cast<std::int64_t>(what_.members.size()); }
  std::int64_t part() const { return what_.what.bytes.value / members(); }
  std::int64_t each() const { return size_of(what_.from.dtype).value; }
  bool in_place() const { return what_.from.data == what_.to.data; }
  std::int64_t result_bytes() const {
    return what_.what.kind == CollectiveKind::ReduceScatter ? part() : what_.what.bytes.value;
  }
  std::byte* target() const {
    const bool slice = what_.what.kind == CollectiveKind::ReduceScatter && in_place();
    return what_.to.data + (slice ? part() * own_ : 0);
  }

  void call(OnStream& on) override {
    nccl::Comm* comm = rank_.groups.at(what_.what.group);
    const nccl::Library& nccl = devices_.library_;
    const auto bytes = static_cast<std::size_t>(what_.what.bytes.value), share = static_cast<std::size_t>(part());
    const std::size_t unit = static_cast<std::size_t>(each());
    const std::byte* from = what_.from.data;
    std::byte* to = beside_ ? beside_ : target();
    switch (what_.what.kind) {
      case CollectiveKind::AllReduce:
        expect(nccl.all_reduce(from, to, bytes / unit, type_, op_, comm, on.stream), "ncclAllReduce", comm);
        break;
      case CollectiveKind::ReduceScatter:
        expect(nccl.reduce_scatter(from, to, share / unit, type_, op_, comm, on.stream), "ncclReduceScatter", comm);
        break;
      case CollectiveKind::Reduce:
        expect(nccl.reduce(from, to, bytes / unit, type_, op_, 0, comm, on.stream), "ncclReduce", comm);
        break;
      case CollectiveKind::AllGather:
        expect(nccl.all_gather(from + (in_place() ? part() * own_ : 0), to, share, nccl::DataType::Int8, comm, on.stream),
               "ncclAllGather", comm);
        return;
      case CollectiveKind::Broadcast:
        expect(nccl.broadcast(from, to, bytes, nccl::DataType::Int8, 0, comm, on.stream), "ncclBroadcast", comm);
        return;
      case CollectiveKind::AllToAll: return all_to_all(on, comm);
    }
    if (beside_ && (what_.what.kind != CollectiveKind::Reduce || own_ == 0)) add(on);
  }

  void all_to_all(const OnStream& on, nccl::Comm* comm) const {
    const nccl::Library& nccl = devices_.library_;
    const auto share = static_cast<std::size_t>(part());
    expect(nccl.group_start(), "ncclGroupStart", comm);
    for (std::int64_t peer = 0; peer < members(); ++peer) {
      const int there = static_cast<int>(peer);
      expect(nccl.send(what_.from.data + part() * peer, share, nccl::DataType::Int8, there, comm, on.stream), "ncclSend", comm);
      expect(nccl.receive(what_.to.data + part() * peer, share, nccl::DataType::Int8, there, comm, on.stream), "ncclRecv",
             comm);
    }
    expect(nccl.group_end(), "ncclGroupEnd", comm);
  }

  void add(const OnStream& on) const {
    ReduceArgs args = {};
    const std::int64_t count = result_bytes() / each();
    const auto array = [&](std::byte* data, bool writes) {
      return View{.data = data, .elements = count, .type = type_of(what_.from.dtype), .writes = writes};
    };
    args.from[args.sources++] = array(beside_, false);
    args.to[args.targets++] = array(target(), true);
    args.count = count, args.fold = Fold::Sum, args.accumulate = true;
    Launcher(on.runtime, on.stream, nullptr).elements(KernelId::reduce_peers, count, args);
  }

  CollectiveCall what_;
  nccl::RedOp op_ = nccl::RedOp::Sum;
  nccl::DataType type_ = nccl::DataType::Int8;
  bool accumulate_ = false, sums_ = false;
  std::int64_t own_ = 0;
  std::byte* beside_ = nullptr;  // the temporary buffer for accumulation; owned by the devices
};

// A send, a receive, or both in one NCCL group call, so that two ranks that exchange messages do not wait for each other.
class NcclDevices::ExchangeTask : public Task {
 public:
  ExchangeTask(NcclDevices& devices, RankId rank, const ExchangeCall& what) : Task(devices, rank), own_(rank), what_(what) {}

 private:
  void call(OnStream& on) override {
    const nccl::Library& nccl = devices_.library_;
    nccl::Comm* comm = nullptr;
    const int to = what_.to.valid() ? peer({own_, what_.to, what_.tag}, comm) : -1,
              from = what_.from.valid() ? peer({what_.from, own_, what_.tag}, comm) : -1;
    expect(nccl.group_start(), "ncclGroupStart", comm);
    if (to >= 0)
      expect(nccl.send(what_.send.data, static_cast<std::size_t>(what_.send.bytes.value), nccl::DataType::Int8, to, comm,
                       on.stream),
             "ncclSend", comm);
    if (from >= 0)
      expect(nccl.receive(what_.receive.data, static_cast<std::size_t>(what_.receive.bytes.value), nccl::DataType::Int8, from,
                          comm, on.stream),
             "ncclRecv", comm);
    expect(nccl.group_end(), "ncclGroupEnd", comm);
  }

  // Number of the other rank in the communicator that carries the message. In the communicator of a lane, the sender is 0 and the receiver
  // is 1.
  int peer(const Lane& lane, nccl::Comm*& comm) const {
    const auto found = rank_.lanes.find(lane);
    comm = found == rank_.lanes.end() ? rank_.world : found->second;
    if (found != rank_.lanes.end()) return lane.from == own_ ? 1 : 0;
    return lane.from == own_ ? lane.to.value : lane.from.value;
  }

  RankId own_;
  ExchangeCall what_;
};

static constexpr std::array kNcclAlgorithms = {foreshard::Algorithm::Ring, foreshard::Algorithm::Tree,
                                               foreshard::Algorithm::DoubleTree, foreshard::Algorithm::NvlinkSharp};

std::unique_ptr<StreamTask> NcclCommunicator::collective(const CollectiveCall& call) {
  check_call(call);
  check_algorithm(call, kNcclAlgorithms, "NCCL, which chooses among them itself,");
  if (std::find(call.members.begin(), call.members.end(), rank_) == call.members.end())
    throw Error("plan", call.where, "a group without the rank", "one of its own groups");
  NcclDevices::Rank& rank = devices_.rank(rank_);
  const auto [known, fresh] = rank.members.try_emplace(call.what.group, call.members);
  if (!fresh && known->second != call.members)
    throw Error("plan", call.where, "a group with other members than before", "one communicator per group and rank");
  return std::make_unique<NcclDevices::CollectiveTask>(devices_, rank_, call);
}

std::unique_ptr<StreamTask> NcclCommunicator::exchange(const ExchangeCall& call) {
  if (call.to.valid()) devices_.messages_.lanes.insert({rank_, call.to, call.tag});
  if (call.from.valid()) devices_.messages_.lanes.insert({call.from, rank_, call.tag});
  if (call.to.valid() && call.from.valid()) devices_.messages_.rings.insert(call.tag);
  return std::make_unique<NcclDevices::ExchangeTask>(devices_, rank_, call);
}

}  // namespace foreshard::gpu
