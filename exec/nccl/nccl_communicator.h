// Communicator with NCCL, between ranks that usually have a GPU each, in one or several processes. There is one NCCL communicator over all
// ranks (world). From it, one is split off for each group of the plan and for each lane of messages (nccl_lanes.h).
//
// Deadlocks: every rank makes its NCCL calls in the issue order of the plan, whichever stream they are for, and NCCL starts their kernels
// in the same order (nccl.h). So no kernel occupies the GPU while an earlier one waits for it. Failures: communicators are nonblocking. A
// thread polls them for errors, and an error stops all ranks. After a stop, all communicators are aborted, once no thread is inside an NCCL
// call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "exec/cuda_device/cuda_device.h"
#include "exec/nccl/nccl_lanes.h"
#include "exec/nccl/nccl_ranks.h"

namespace foreshard::gpu {

class NcclDevices : public RankDevices {
 public:
  NcclDevices(Runtime& runtime, nccl::Library& library, const Stop& stop, NcclOptions options);
  ~NcclDevices() override;

  std::unique_ptr<DeviceBackend> device(RankId rank, std::mutex* alone) override;
  std::unique_ptr<Communicator> communicator(RankId rank, DeviceBackend& device) override;
  // Creates all communicators; called by all processes, after the tasks of all ranks are made. Throws DeviceError.
  void connect() override;
  void check() const override {}
  std::vector<std::string> notes() const override;

 private:
  friend class NcclCommunicator;
  class Task;
  class CollectiveTask;
  class ExchangeTask;
  struct Rank {
    const CudaDevice* device = nullptr;
    nccl::Comm* world = nullptr;
    nccl::Comm* none =
        nullptr;  // of splits that the rank is not part of: NCCL stores null here, maybe after the call has returned
    std::map<GroupId, nccl::Comm*> groups = {};
    std::map<GroupId, std::vector<RankId>> members = {};  // of the groups that this rank uses
    std::map<Lane, nccl::Comm*> lanes = {};
    std::vector<std::pair<nccl::Comm*, void*>> registered = {};  // handles of registered arenas
    std::optional<EventPool> events = {};
    Event* begins = nullptr;  // if ranks share a GPU: recorded before each NCCL call, on its stream
    // Number of tasks of the rank, and of NCCL calls made so far: the next call is that of task `done % tasks`.
    std::int64_t tasks = 0, done = 0;
    std::mutex mutex = {};
    std::condition_variable changed = {};
    std::timed_mutex inside = {};  // held during an NCCL call, and while communicators are aborted

    int gpu() const { return device->gpu(); }
  };
  Rank& rank(RankId id) { return *ranks_.at(id); }
  void expect(nccl::Result result, const std::string& call, nccl::Comm* comm) const;
  std::string words(nccl::Result result, nccl::Comm* comm) const;
  static std::vector<nccl::Comm*> comms_of(const Rank& rank);
  std::vector<nccl::Comm*> comms() const;
  void make_world();
  struct Part {  // arguments of ncclCommSplit for one rank, and where the new communicator is stored
    int color = nccl::kNoColor, key = 0;
    nccl::Comm** made = nullptr;
  };
  void split(const std::function<Part(RankId, Rank&)>& part_of);
  void split_group(GroupId group);
  void split_lanes(const std::vector<Lane>& round);
  std::set<GroupId> wanted_groups() const;
  void gather_messages();
  void register_arenas();
  void wait_until_ready(const std::string& call);
  void watch();
  void abort_all();
  void close();

  Runtime& runtime_;
  nccl::Library& library_;
  const Stop& stop_;
  NcclOptions options_;
  GpuMemory memory_;
  ProductChoice choice_;
  std::map<RankId, std::unique_ptr<Rank>> ranks_;
  Messages messages_;
  mutable std::mutex mutex_;  // guards the members below, and aborting
  bool connected_ = false, closed_ = false;
  std::atomic<bool> aborted_ = false;
  std::condition_variable changed_;
  std::thread watcher_;
};

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(NcclDevices& devices, RankId rank) : devices_(devices), rank_(rank) {}
  std::unique_ptr<StreamTask> collective(const CollectiveCall& call) override;
  std::unique_ptr<StreamTask> exchange(const ExchangeCall& call) override;

 private:
  NcclDevices& devices_;
  RankId rank_;
};

}  // namespace foreshard::gpu
