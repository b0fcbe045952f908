#include "exec/nccl/cuda_communicator.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "exec/communicator/round_walk.h"
#include "exec/cuda/gpu_ranks.h"
#include "exec/nccl/cuda_meeting.h"

namespace foreshard::gpu {

namespace {

std::string text(Bytes bytes) { return std::to_string(bytes.value) + " bytes"; }

// Slice number `own` of n slices of an array. All but the last have equal sizes, which are whole vectors of a kernel.
struct Slice {
  std::int64_t first = 0, count = 0;
};
Slice slice_of(std::int64_t elements, std::int64_t own, std::int64_t n) {
  const std::int64_t each = round_up(ceil_div(elements, n), 8), first = std::min(each * own, elements);
  return {first, std::min(each, elements - first)};
}

}  // namespace

class CudaMeetings::CollectiveTask : public MeetingTask {
 public:
  CollectiveTask(const CudaMeetings& meetings, const CollectiveCall& call, PendingCollective& pending_collective,
                 std::size_t own)
      : MeetingTask(meetings, call, pending_collective, own) {
    fold_ = call.what.combine == Combine::Max ? Fold::Max : call.what.combine == Combine::Mean ? Fold::Mean : Fold::Sum;
    accumulate_ = call.what.accumulate;
  }

  void enqueue(OnStream& on, int) override {
    const auto n = static_cast<std::size_t>(collective_.members.size());
    join(on, &Member::ready);
    on.tell_met();
    move(on);
    if (n > 1) join(on, &Member::done);
  }

 private:
  void move(const OnStream& on) const {
    const auto n = static_cast<std::int64_t>(collective_.members.size()), own = static_cast<std::int64_t>(own_);
    const std::int64_t bytes = call_.what.bytes.value, elements = bytes / size_of(call_.from.dtype).value, part = bytes / n;
    const Member& me = collective_.members[own_];
    const bool in_place = me.from == me.to;
    const auto copy = [&](std::byte* to, const std::byte* from, std::int64_t count) {
      if (to != from && count > 0) on.runtime.copy(to, from, {count}, on.stream);
    };
    switch (call_.what.kind) {
      case CollectiveKind::AllReduce: return sum(on, slice_of(elements, own, n), true, 0);
      case CollectiveKind::Reduce:
        if (own == 0) sum(on, {0, elements}, false, 0);
        return;
      case CollectiveKind::ReduceScatter:
        return sum(on, {elements / n * own, elements / n}, false, in_place ? 0 : elements / n * own);
      case CollectiveKind::AllGather:
        for (std::int64_t step = 0; step < n; ++step) {
          const std::int64_t peer = (own + step) % n;
          const Member& from = collective_.members[static_cast<std::size_t>(peer)];
          copy(me.to + part * peer, from.from == from.to ? from.from + part * peer : from.from, part);
        }
        return;
      case CollectiveKind::Broadcast: return copy(me.to, collective_.members[0].from, bytes);
      case CollectiveKind::AllToAll:
        for (std::int64_t peer = 0; peer < n; ++peer)
          copy(me.to + part * peer, collective_.members[static_cast<std::size_t>(peer)].from + part * own, part);
        return;
    }
  }

  // Sums a slice of the inputs, in the order of the members, into the same slice of all outputs or of this member's output only. `before`:
  // if the output has only this member's part, the number of elements of the full tensor before that part; else 0.
  void sum(const OnStream& on, const Slice& slice, bool into_all, std::int64_t before) const {
    if (slice.count == 0) return;
    ReduceArgs args = {};
    const std::int64_t each = size_of(call_.from.dtype).value;
    const auto array = [&](const std::byte* base, std::int64_t first, bool writes) {
      return View{.data = const_cast<std::byte*>(base) + first * each,
                  .elements = slice.count,
                  .type = type_of(call_.from.dtype),
                  .writes = writes};
    };
    for (const Member& member : collective_.members) {
      args.from[args.sources++] = array(member.from, slice.first, false);
      if (into_all) args.to[args.targets++] = array(member.to, slice.first, true);
    }
    if (!into_all) args.to[args.targets++] = array(collective_.members[own_].to, slice.first - before, true);
    args.count = slice.count, args.fold = fold_, args.accumulate = accumulate_;
    Launcher(on.runtime, on.stream, nullptr).elements(KernelId::reduce_peers, slice.count, args);
  }

  Fold fold_ = Fold::Sum;
  bool accumulate_ = false;
};

// The receiver's stream copies from the sender's memory; the sender's stream waits until that is done.
class CudaMeetings::ExchangeTask : public GpuTask {
 public:
  ExchangeTask(const CudaMeetings& meetings, const ExchangeCall& call, PendingMessage* out, PendingMessage* in)
      : meetings_(meetings), call_(call), out_(out), in_(in) {}
  bool meets() const override { return true; }

  void enqueue(OnStream& on, int) override {
    std::uint64_t turn = 0;
    if (out_) {
      on.runtime.record(out_->full, on.stream);
      const std::lock_guard lock(out_->mutex);
      turn = ++out_->sent;
      out_->changed.notify_all();
    }
    if (in_) {
      {
        std::unique_lock lock(in_->mutex);
        meetings_.stop_.wait(lock, in_->changed, [&] { return in_->sent > in_->taken; });
      }
      on.runtime.wait(on.stream, in_->full);
      on.tell_met();
      if (call_.receive.bytes.value > 0) on.runtime.copy(call_.receive.data, in_->data, call_.receive.bytes, on.stream);
      on.runtime.record(in_->empty, on.stream);
      const std::lock_guard lock(in_->mutex);
      ++in_->taken;
      in_->changed.notify_all();
    }
    if (out_) {
      {
        std::unique_lock lock(out_->mutex);
        meetings_.stop_.wait(lock, out_->changed, [&] { return out_->taken >= turn; });
      }
      on.runtime.wait(on.stream, out_->empty);
    }
  }

 private:
  const CudaMeetings& meetings_;
  ExchangeCall call_;
  PendingMessage* out_;
  PendingMessage* in_;
};

CudaMeetings::PendingCollective& CudaMeetings::pending_collective(const CollectiveCall& call) {
  PendingCollective*& known = collective_of_[{call.what.group, call.members.front(), call.sequence}];
  if (!known) {
    known = &pending_collectives_.emplace_back();
    known->what = call.what;
    known->where = call.where;
    known->members.resize(call.members.size());
  }
  if (known->what.kind != call.what.kind || known->what.bytes != call.what.bytes ||
      known->what.algorithm != call.what.algorithm || known->what.servers != call.what.servers ||
      known->what.served_by != call.what.served_by || known->members.size() != call.members.size())
    throw Error("plan", call.where, "a collective of " + text(call.what.bytes),
                "the kind and size that its partner has: " + text(known->what.bytes) + " (" + known->where + ")");
  ++known->known;
  return *known;
}

CudaMeetings::PendingMessage& CudaMeetings::pending_message(RankId from, RankId to, const ExchangeCall& call,
                                                            std::int64_t sequence, bool sending, int gpu) {
  PendingMessage*& known = message_of_[{from, to, call.tag, sequence}];
  const MemoryRange& stretch = sending ? call.send : call.receive;
  if (!known) {
    known = &pending_messages_.emplace_back();
    known->bytes = stretch.bytes;
  }
  if (known->bytes != stretch.bytes)
    throw Error("plan", call.where, "a message of " + text(stretch.bytes), text(known->bytes) + ", which the other end has");
  (sending ? known->sender : known->receiver) = call.where;
  (sending ? known->full : known->empty) = event_of(gpu);
  (sending ? known->from : known->to) = gpu;
  if (sending) known->data = stretch.data;
  return *known;
}

namespace {

bool sums(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::Reduce;
}
// Whether member `own` reads or writes the memory of member `peer`.
bool uses(CollectiveKind kind, std::size_t own, std::size_t peer) {
  switch (kind) {
    case CollectiveKind::Reduce: return own == 0;
    case CollectiveKind::Broadcast: return peer == 0;
    case CollectiveKind::AllReduce:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather:
    case CollectiveKind::AllToAll: return true;
  }
  return true;
}

}  // namespace

void CudaMeetings::connect() {
  std::map<std::pair<int, int>, bool> pairs;  // (GPU, peer) -> whether a sum needs the access
  for (const PendingCollective& pending_collective : pending_collectives_) {
    if (pending_collective.rounds) {
      pairs_of_rounds(pending_collective, pairs);
      continue;
    }
    for (std::size_t own = 0; own < pending_collective.members.size(); ++own)
      for (std::size_t peer = 0; peer < pending_collective.members.size(); ++peer)
        if (pending_collective.members[own].gpu != pending_collective.members[peer].gpu &&
            uses(pending_collective.what.kind, own, peer))
          pairs[{pending_collective.members[own].gpu, pending_collective.members[peer].gpu}] |=
              sums(pending_collective.what.kind);
  }
  for (const PendingMessage& pending_message : pending_messages_)
    if (pending_message.from != pending_message.to) pairs[{pending_message.to, pending_message.from}] |= false;
  for (const auto& [pair, needed] : pairs)
    if (!runtime_.reach(pair.first, pair.second) && needed)
      throw DeviceError("peer access", "GPU " + std::to_string(pair.first) + " cannot reach the memory of GPU " +
                                           std::to_string(pair.second) + " on this machine; --nccl does without");
}

void CudaMeetings::check() const {
  for (const PendingCollective& pending_collective : pending_collectives_)
    if (pending_collective.known != pending_collective.members.size())
      throw Error("plan", pending_collective.where, std::to_string(pending_collective.known) + " ranks that call it",
                  "all " + std::to_string(pending_collective.members.size()) + " members of the group");
  for (const PendingMessage& pending_message : pending_messages_)
    if (pending_message.sender.empty() || pending_message.receiver.empty())
      throw Error("plan", pending_message.sender + pending_message.receiver, "an exchange that nobody answers",
                  pending_message.sender.empty() ? "a send" : "a receive");
}

static constexpr std::array kAlgorithms = {foreshard::Algorithm::Ring, foreshard::Algorithm::Tree,
                                           foreshard::Algorithm::DoubleTree, foreshard::Algorithm::ParameterServer};

std::unique_ptr<StreamTask> CudaCommunicator::collective(const CollectiveCall& call) {
  check_call(call);
  check_algorithm(call, kAlgorithms, "a GPU without --nccl");
  const auto at = std::find(call.members.begin(), call.members.end(), rank_);
  if (at == call.members.end()) throw Error("plan", call.where, "a group without the rank", "one of its own groups");
  if (call.members.size() > kMostPeers)
    throw Error("plan", call.where, "a group of " + std::to_string(call.members.size()) + " ranks",
                "at most " + std::to_string(kMostPeers) + " on the GPUs of one process");
  if (call.from.dtype == DType::F64) throw Error("plan", call.where, "a sum in fp64", "fp32, tf32, bf16 or fp16 on a GPU");
  const auto own = static_cast<std::size_t>(at - call.members.begin());
  CudaMeetings::PendingCollective& pending_collective = meetings_.pending_collective(call);
  const int gpu = device_.gpu();  // a CUDA event belongs to the GPU whose stream records it
  pending_collective.members[own] = {.from = call.from.data,
                                     .to = call.to.data,
                                     .gpu = gpu,
                                     .ready = meetings_.event_of(gpu),
                                     .done = meetings_.event_of(gpu)};
  // a mean runs without rounds: the kernel divides the sum over all members; our plans contain none
  const bool mean = call.what.combine == Combine::Mean;
  if (RoundWalk::wanted(call) && !mean) return meetings_.rounds_task(call, pending_collective, own, rank_, gpu);
  return std::make_unique<CudaMeetings::CollectiveTask>(meetings_, call, pending_collective, own);
}

std::unique_ptr<StreamTask> CudaCommunicator::exchange(const ExchangeCall& call) {
  CudaMeetings::PendingMessage *out = nullptr, *in = nullptr;
  if (call.to.valid()) out = &meetings_.pending_message(rank_, call.to, call, call.sent, true, device_.gpu());
  if (call.from.valid()) in = &meetings_.pending_message(call.from, rank_, call, call.received, false, device_.gpu());
  return std::make_unique<CudaMeetings::ExchangeTask>(meetings_, call, out, in);
}

std::function<std::unique_ptr<RankDevices>(const Stop&)> ranks_on(Runtime& runtime, GpuRuns runs) {
  return [&runtime, runs](const Stop& stop) { return std::make_unique<CudaDevices>(runtime, stop, runs); };
}

std::unique_ptr<DeviceBackend> CudaDevices::device(RankId rank, std::mutex* alone) {
  auto device = std::make_unique<CudaDevice>(runtime_, memory_, choice_, rank.value % runtime_.devices(), stop_, alone, runs_);
  devices_.push_back(device.get());
  return device;
}

std::vector<std::string> CudaDevices::notes() const {
  std::vector<std::string> all = choice_.notes();
  for (std::string& note : attention_notes(devices_)) all.push_back(std::move(note));
  return all;
}

std::unique_ptr<Communicator> CudaDevices::communicator(RankId rank, DeviceBackend& device) {
  return std::make_unique<CudaCommunicator>(meetings_, dynamic_cast<CudaDevice&>(device), rank);
}

}  // namespace foreshard::gpu
