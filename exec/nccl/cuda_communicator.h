// Communicator between ranks of one process on GPUs: any number of ranks, on one GPU or several of one host. Every rank's kernel
// reads its peers' memory directly. Rings, trees and parameter servers are carried out round by round (exec/communicator/round_walk.h): a
// receiver's kernel takes what is sent to it out of the sender's memory. What needs no rounds is summed at once, in the order of the group.
// Sums are the same bits on every rank and in every run. No kernel waits for another; ranks meet on the host, in every round, their streams
// through events:
//
//   rank r's stream   ... [record ready r] . [wait ready of all] [sum slice r into all] [record done r] . [wait done of all] ...
//   the host                               ^ all have recorded                                          ^ all have recorded
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <tuple>

#include "exec/cuda/gpu_memory.h"
#include "exec/cuda_device/cuda_device.h"
#include "exec/interpreter/rank_devices.h"

namespace foreshard::gpu {

// Where the ranks of a process meet. Made ready by one thread, rank after rank; used by many.
class CudaMeetings {
 public:
  CudaMeetings(Runtime& runtime, const Stop& stop) : runtime_(runtime), stop_(stop) {}
  // After all ranks are ready: lets the GPUs reach each other's memory, pair by pair, where a kernel or copy of one uses that of the other. Throws
  // DeviceError when a sum needs a pair that this machine keeps apart; copies go through the host then.
  void connect();
  // After all ranks are ready: throws Error unless every collective has all members and every send its receive.
  void check() const;

 private:
  friend class CudaCommunicator;
  struct Member {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    int gpu = 0;
    Event *ready = nullptr, *done = nullptr;
  };
  struct Party {  // the n-th collective of a group
    Collective what = {};
    std::string where = {};
    std::size_t known = 0, arrived = 0;
    std::uint64_t generation = 0;
    bool rounds = false;
    std::vector<std::byte*> bases = {};  // of rounds: where members work
    std::vector<Member> members = {};
    std::mutex mutex;
    std::condition_variable changed;
  };
  struct Parcel {  // the n-th message from one rank to another with a tag
    Bytes bytes = {};
    std::string sender = {}, receiver = {};  // where; empty: not yet known
    const std::byte* data = nullptr;
    int from = 0, to = 0;  // GPUs
    Event *full = nullptr, *empty = nullptr;
    std::uint64_t sent = 0, taken = 0;
    std::mutex mutex;
    std::condition_variable changed;
  };
  class MeetingTask;
  class CollectiveTask;
  class RoundsTask;
  class ExchangeTask;
  // Memory of a rank's collectives of one group, which follow each other on one stream.
  std::byte* own_memory(RankId rank, GroupId group, Bytes bytes, int gpu);
  std::unique_ptr<StreamTask> rounds_task(const CollectiveCall& call, Party& party, std::size_t own, RankId rank, int gpu);
  void pairs_of_rounds(const Party& party, std::map<std::pair<int, int>, bool>& pairs) const;
  Party& party(const CollectiveCall& call);
  Parcel& parcel(RankId from, RankId to, const ExchangeCall& call, std::int64_t sequence, bool sending, int gpu);
  Event* event_of(int gpu) { return events_.try_emplace(gpu, runtime_, gpu, false).first->second.take(); }
  Runtime& runtime_;
  const Stop& stop_;
  GpuMemory memory_{runtime_};
  std::map<std::pair<RankId, GroupId>, std::byte*> own_memory_ = {};
  std::map<int, EventPool> events_;  // by GPU
  std::deque<Party> parties_;
  std::deque<Parcel> parcels_;
  std::map<std::tuple<GroupId, RankId, std::int64_t>, Party*> party_of_;  // (group, first member, sequence)
  std::map<std::tuple<RankId, RankId, std::string, std::int64_t>, Parcel*> parcel_of_;
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

// Ranks on the GPUs that a runtime has, rank r on GPU r modulo their number.
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
  std::vector<std::string> notes() const override { return choice_.notes(); }

 private:
  Runtime& runtime_;
  const Stop& stop_;
  GpuRuns runs_;
  GpuMemory memory_;
  ProductChoice choice_;
  CudaMeetings meetings_;
};

}  // namespace foreshard::gpu
