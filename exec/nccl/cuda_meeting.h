// The base of the collective tasks of a CudaCommunicator: how the members of a group synchronize. Used only by cuda_communicator.cpp and
// cuda_rounds.cpp.
#pragma once

#include "exec/cuda/gpu_task.h"
#include "exec/nccl/cuda_communicator.h"

namespace foreshard::gpu {

class CudaMeetings::MeetingTask : public GpuTask {
 public:
  bool meets() const override { return true; }

 protected:
  MeetingTask(const CudaMeetings& meetings, const CollectiveCall& call, PendingCollective& pending_collective, std::size_t own)
      : meetings_(meetings), call_(call), collective_(pending_collective), own_(own) {}

  // Barrier between the streams of all members: work enqueued after it begins when all members have reached this point of their streams.
  // Consecutive joins must use different events, because a late member may still have to wait for the event of the join before.
  void join(const OnStream& on, Event* Member::*event) {
    on.runtime.record(collective_.members[own_].*event, on.stream);
    meet();
    for (std::size_t peer = 0; peer < collective_.members.size(); ++peer)
      if (peer != own_) on.runtime.wait(on.stream, collective_.members[peer].*event);
  }

  const CudaMeetings& meetings_;
  CollectiveCall call_;
  PendingCollective& collective_;
  std::size_t own_;

 private:
  void meet() {
    std::unique_lock lock(collective_.mutex);
    if (++collective_.arrived == collective_.members.size()) {
      collective_.arrived = 0;
      ++collective_.generation;
      collective_.changed.notify_all();
      return;
    }
    const std::uint64_t generation = collective_.generation;
    meetings_.stop_.wait(lock, collective_.changed, [&] { return collective_.generation != generation; });
  }
};

}  // namespace foreshard::gpu
