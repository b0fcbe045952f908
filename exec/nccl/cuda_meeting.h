// How the tasks of a CudaCommunicator meet. Used only by exec/nccl/cuda_communicator.cpp and cuda_rounds.cpp.
#pragma once

#include "exec/cuda/gpu_task.h"
#include "exec/nccl/cuda_communicator.h"

namespace foreshard::gpu {

class CudaMeetings::MeetingTask : public GpuTask {
 public:
  bool meets() const override { return true; }

 protected:
  MeetingTask(const CudaMeetings& meetings, const CollectiveCall& call, Party& party, std::size_t own)
      : meetings_(meetings), call_(call), party_(party), own_(own) {}

  // What is on the stream from now on begins when every member has come here. Of two joins that follow each other, each takes an event of its
  // own: a member that is late still waits for the one before.
  void join(const OnStream& on, Event* Member::*event) {
    on.runtime.record(party_.members[own_].*event, on.stream);
    meet();
    for (std::size_t peer = 0; peer < party_.members.size(); ++peer)
      if (peer != own_) on.runtime.wait(on.stream, party_.members[peer].*event);
  }

  const CudaMeetings& meetings_;
  CollectiveCall call_;
  Party& party_;
  std::size_t own_;

 private:
  void meet() {
    std::unique_lock lock(party_.mutex);
    if (++party_.arrived == party_.members.size()) {
      party_.arrived = 0;
      ++party_.generation;
      party_.changed.notify_all();
      return;
    }
    const std::uint64_t generation = party_.generation;
    meetings_.stop_.wait(lock, party_.changed, [&] { return party_.generation != generation; });
  }
};

}  // namespace foreshard::gpu
