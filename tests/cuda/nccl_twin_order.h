// In which order the operations of NCCL's twin go on a GPU. Included by the twin's own files only.
//
//   one communicator     its operations follow each other, whatever their streams: each waits on the GPU until the one before has ended
//   several of them      their operations begin as their streams let them, so two GPUs may begin them in two orders, and each then waits for the
//                        other's partner. NCCL's guide ("Using multiple NCCL communicators concurrently") leaves that order to the caller: by events, or by
//                        NCCL_LAUNCH_ORDER_IMPLICIT=1 (since 2.26, off by default), which lets none begin before those that the host called for earlier
//                        on this GPU have begun
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include "exec/nccl/nccl.h"

namespace foreshard {
inline namespace twin_parts {

struct Launched {
  const nccl::Comm* comm = nullptr;
  gpu::Stream* stream = nullptr;
  int rank = 0;             // several may share the GPU; they are strangers
  std::uint64_t entry = 0;  // of the stream
  bool begun = false, over = false;
};

class GpuOrder {
 public:
  using Place = std::shared_ptr<Launched>;

  Place add(std::int64_t gpu, const nccl::Comm* comm, int rank, gpu::Stream* stream) {
    std::deque<Place>& all = on_[gpu];
    while (!all.empty() && all.front()->over) all.pop_front();
    all.push_back(std::make_shared<Launched>(Launched{.comm = comm, .stream = stream, .rank = rank}));
    Place& last = last_[gpu][stream];
    return last = all.back();
  }
  bool may_begin(std::int64_t gpu, const Place& one, bool in_host_order) const {
    for (const Place& earlier : on_.at(gpu)) {
      if (earlier == one) return true;
      if (earlier->comm == one->comm ? !earlier->over : in_host_order && !earlier->begun) return false;
    }
    return true;
  }
  // The last operation of another communicator on each other stream: what comes before it on that stream is ordered with it.
  std::vector<Launched> others(std::int64_t gpu, const Place& one) const {
    std::vector<Launched> all;
    for (const auto& [stream, last] : last_.at(gpu))
      if (stream != one->stream && last->comm != one->comm && last->rank == one->rank) all.push_back(*last);
    return all;
  }
  // A communicator with an operation that has not ended and was called for before one of `comm` that has not, either.
  const nccl::Comm* in_front_of(const nccl::Comm* comm) const {
    for (const auto& [gpu, all] : on_) {
      const auto mine =
          std::find_if(all.rbegin(), all.rend(), [&](const Place& one) { return one->comm == comm && !one->over; });
      for (auto earlier = mine; earlier != all.rend(); ++earlier)
        if ((*earlier)->comm != comm && !(*earlier)->over) return (*earlier)->comm;
    }
    return nullptr;
  }
  void over(const nccl::Comm* comm) {
    for (const auto& [gpu, all] : on_)
      for (const Place& one : all)
        if (one->comm == comm) one->over = true;
  }
  void clear() { on_.clear(), last_.clear(); }

 private:
  std::map<std::int64_t, std::deque<Place>> on_ = {};
  std::map<std::int64_t, std::map<gpu::Stream*, Place>> last_ = {};
};

}  // namespace twin_parts
}  // namespace foreshard
