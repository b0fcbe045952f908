// Collectives of a CudaCommunicator that run in rounds (exec/communicator/round_walk.h).
#include "exec/communicator/round_walk.h"
#include "exec/nccl/cuda_meeting.h"

namespace foreshard::gpu {

namespace {

constexpr Bytes kOwnMemory = {16 << 20};  // more than on the host, because every round costs a synchronization

}  // namespace

class CudaMeetings::RoundsTask : public MeetingTask {
 public:
  RoundsTask(const CudaMeetings& meetings, const CollectiveCall& call, PendingCollective& pending_collective, std::size_t own)
      : MeetingTask(meetings, call, pending_collective, own), walk_(call, own, {}, kOwnMemory) {}
  const RoundWalk& walk() const { return walk_; }

  void enqueue(OnStream& on, int) override {
    join_next(on);
    on.tell_met();
    std::byte* base = collective_.bases[own_];
    for (int window = 0; window < walk_.windows(); ++window) {
      walk_.each_own(base, window, [&](const RoundWalk::Move& move) {
        on.runtime.copy(move.to, move.from, size_of(call_.from.dtype) * move.count, on.stream);
      });
      join_next(on);
      for (int t = 0; t < walk_.rounds(); ++t) {
        for (const RoundWalk::Arrival& arrival : walk_.round(t).arrivals) receive(on, arrival, window);
        join_next(on);
      }
      walk_.each_result(base, window, [&](const RoundWalk::Move& move) {
        sum(on, {&move.from, 1}, move.to, move.count, Fold::Sum, call_.what.accumulate);
      });
    }
  }

 private:
  void join_next(const OnStream& on) {
    join(on, even_ ? &Member::ready : &Member::done);
    even_ = !even_;
  }

  void receive(const OnStream& on, const RoundWalk::Arrival& arrival, int window) {
    std::byte* to = walk_.piece(collective_.bases[own_], arrival.slice, window);
    const std::int64_t count = walk_.count(arrival.slice, window);
    if (count == 0) return;
    std::vector<const std::byte*> sources;
    for (const int from : arrival.from)
      sources.push_back(walk_.piece(collective_.bases[static_cast<std::size_t>(from)], arrival.slice, window));
    if (!arrival.adds) return on.runtime.copy(to, sources.front(), walk_.bytes(arrival.slice, window), on.stream);
    sum(on, sources, to, count, walk_.meets() == Combine::Max ? Fold::Max : Fold::Sum, false);
  }

  void sum(const OnStream& on, std::span<const std::byte* const> sources, std::byte* to, std::int64_t count, Fold fold,
           bool accumulate) const {
    ReduceArgs args = {};
    const auto array = [&](const std::byte* data, bool writes) {
      return View{.data = const_cast<std::byte*>(data), .elements = count, .type = type_of(call_.from.dtype), .writes = writes};
    };
    for (const std::byte* source : sources) args.from[args.sources++] = array(source, false);
    args.to[args.targets++] = array(to, true);
    args.count = count, args.fold = fold, args.accumulate = accumulate;
    Launcher(on.runtime, on.stream, nullptr).elements(KernelId::reduce_peers, count, args);
  }

  RoundWalk walk_;
  bool even_ = true;
};

std::byte* CudaMeetings::own_memory(RankId rank, GroupId group, Bytes bytes, int gpu) {
  if (bytes == Bytes{}) return nullptr;
  std::byte*& known = own_memory_[{rank, group}];
  if (known) return known;
  runtime_.select(gpu);
  return known = memory_.allocate(Space::Device, kOwnMemory);
}

std::unique_ptr<StreamTask> CudaMeetings::rounds_task(const CollectiveCall& call, PendingCollective& pending_collective,
                                                      std::size_t own, RankId rank, int gpu) {
  auto task = std::make_unique<RoundsTask>(*this, call, pending_collective, own);
  pending_collective.rounds = true;
  pending_collective.bases.resize(call.members.size());
  std::byte* memory = own_memory(rank, call.what.group, task->walk().own_memory(), gpu);
  pending_collective.bases[own] = memory ? memory : call.to.data;
  return task;
}

// The pairs (GPU of the receiver, GPU of the sender), and whether they need peer access: a sum does, a copy can go through the host.
void CudaMeetings::pairs_of_rounds(const PendingCollective& pending_collective,
                                   std::map<std::pair<int, int>, bool>& pairs) const {
  for (const MessageRound& round :
       collective_rounds(pending_collective.what, static_cast<int>(pending_collective.members.size())).rounds)
    for (const SliceMessage& message : round) {
      const int to = pending_collective.members[static_cast<std::size_t>(message.to)].gpu;
      const int from = pending_collective.members[static_cast<std::size_t>(message.from)].gpu;
      if (to != from) pairs[{to, from}] |= message.adds;
    }
}

}  // namespace foreshard::gpu
