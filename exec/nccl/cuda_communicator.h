// Communicator, without NCCL, between ranks of one process on GPUs: any number of ranks on one or more GPUs of a machine. The kernels of a
// rank read the memory of its peers directly. Rings, trees and parameter servers run round by round (exec/communicator/round_walk.h): a
// kernel of the receiver reads the sender's memory. A collective without rounds is one step, with sums in the order of the group. Sums have
// the same bits on every rank and in every run.
//
// No kernel waits for another one, so there can be no deadlock if kernels do not fit on a GPU together. Instead, the threads of the ranks
// meet on the host, and their CUDA streams wait for each other's events. A collective without rounds, on the stream of rank r ("|" marks
// where the host threads of all ranks meet):
//
//   ... [record ready r] | [wait for ready of all] [sum slice r into all outputs] [record done r] | [wait for done of all] ...
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <tuple>

#include "exec/cuda/gpu_memory.h"
#include "exec/cuda_device/cuda_device.h"
#include "exec/interpreter/rank_devices.h"

namespace foreshard::gpu {

// The state that the ranks of a process share: one entry per collective and per message. One thread makes the tasks of all ranks, then the
// threads of the streams run them.
class CudaMeetings {
 public:
  CudaMeetings(Runtime& runtime, const Stop& stop) : runtime_(runtime), stop_(stop) {}
  // Called after all tasks are made. Enables peer access for each pair of GPUs of which one accesses the memory of the other. Throws
  // DeviceError if the machine does not support it for a pair that needs it for a sum. Copies work without it (through the host).
  void connect();
  // Called after all tasks are made: throws Error unless every collective has all members and every send has its receive.
  void check() const;

 private:
  friend class CudaCommunicator;
  struct Member {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    int gpu = 0;
    Event *ready = nullptr, *done = nullptr;
  };
  struct PendingCollective {  // one collective of a group; it runs once per run of the plan
    Collective what = {};
    std::string where = {};              // CollectiveCall::where of the first member
    std::size_t known = 0, arrived = 0;  // members that have made their task; members that wait on the host
    std::uint64_t generation = 0;        // how often all members have met
    bool rounds = false;                 // it runs in rounds
    std::vector<std::byte*> bases = {};  // [member] `base` of RoundWalk::piece
    std::vector<Member> members = {};
    std::mutex mutex;
    std::condition_variable changed;
  };
  struct PendingMessage {  // one message from a rank to another; it is sent once per run of the plan
    Bytes bytes = {};
    std::string sender = {}, receiver = {};   // ExchangeCall::where of both sides; empty: its task is not made yet
    const std::byte* data = nullptr;          // in the sender's memory
    int from = 0, to = 0;                     // GPUs
    Event *full = nullptr, *empty = nullptr;  // recorded by the sender when `data` is complete, by the receiver after its copy
    std::uint64_t sent = 0, taken = 0;        // number of runs in which it was sent, and copied
    std::mutex mutex;
    std::condition_variable changed;
  };
  class MeetingTask;
  class CollectiveTask;
  class RoundsTask;
  class ExchangeTask;
  // Own memory (RoundWalk) of a rank. The collectives of one group share it, because they run one after the other on one stream.
  std::byte* own_memory(RankId rank, GroupId group, Bytes bytes, int gpu);
  std::unique_ptr<StreamTask> rounds_task(const CollectiveCall& call, PendingCollective& pending_collective, std::size_t own,
                                          RankId rank, int gpu);
  void pairs_of_rounds(const PendingCollective& pending_collective, std::map<std::pair<int, int>, bool>& pairs) const;
  PendingCollective& pending_collective(const CollectiveCall& call);
  PendingMessage& pending_message(RankId from, RankId to, const ExchangeCall& call, std::int64_t sequence, bool sending,
                                  int gpu);
  Event* event_of(int gpu) { return events_.try_emplace(gpu, runtime_, gpu, false).first->second.take(); }
  Runtime& runtime_;
  const Stop& stop_;
  GpuMemory memory_{runtime_};
  std::map<std::pair<RankId, GroupId>, std::byte*> own_memory_ = {};
  std::map<int, EventPool> events_;  // by GPU
  std::deque<PendingCollective> pending_collectives_;
  std::deque<PendingMessage> pending_messages_;
  std::map<std::tuple<GroupId, RankId, std::int64_t>, PendingCollective*> collective_of_;  // (group, first member, sequence)
  std::map<std::tuple<RankId, RankId, std::string, std::int64_t>, PendingMessage*> message_of_;
};

class CudaCommunicator : public Communicator {
 public:
  CudaCommunicator(CudaMeetings& meetings, CudaDevice& device, RankId rank)
      : meetings_(meetings), device_(device), rank_(rank) {}
  std::unique_ptr<StreamTask> collective(const CollectiveCall& call) override;
  std::unique_ptr<StreamTask> exchange(const ExchangeCall& call) override;

 private:
  CudaMeetings& meetings_;
  CudaDevice& device_;
  RankId rank_;
};

// RankDevices for GPUs of one process: rank r runs on GPU r modulo the number of GPUs.
class CudaDevices : public RankDevices {
 public:
  CudaDevices(Runtime& runtime, const Stop& stop, GpuRuns runs = {})
      : runtime_(runtime),
        stop_(stop),
        runs_(runs),
        memory_(runtime),
        choice_(runtime, runs.products),
        meetings_(runtime, stop) {}
  std::unique_ptr<DeviceBackend> device(RankId rank, std::mutex* alone) override;
  std::unique_ptr<Communicator> communicator(RankId rank, DeviceBackend& device) override;
  void connect() override { meetings_.connect(); }
  void check() const override { meetings_.check(); }
  std::vector<std::string> notes() const override;

 private:
  Runtime& runtime_;
  const Stop& stop_;
  GpuRuns runs_;
  GpuMemory memory_;
  ProductChoice choice_;
  CudaMeetings meetings_;
  std::vector<const CudaDevice*> devices_ = {};
};

}  // namespace foreshard::gpu
