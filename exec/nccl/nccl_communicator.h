// Communicator by NCCL: ranks on GPUs of their own, in one process or in many. One communicator over all ranks; one per group of the plan and one per lane of
// messages (nccl_lanes.h), split off it.
//
// Every rank makes its calls in the plan's issue order, whichever stream they are for, and NCCL lets their kernels begin in that order (nccl.h), so none keeps
// from the GPU one that was called for before it. Nothing blocks in NCCL: communicators are made without blocking and asked for errors, which stop all ranks; a stop
// aborts them, once no thread is inside a call.
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
  // Connects all ranks: called by all processes, when all tasks are known.
  void connect() override;
  void check() const override {}
  std::vector<std::string> notes() const override { return choice_.notes(); }

 private:
  friend class NcclCommunicator;
  class Task;
  class CollectiveTask;
  class ExchangeTask;
  struct Rank {
    const CudaDevice* device = nullptr;
    nccl::Comm* world = nullptr;
    std::map<GroupId, nccl::Comm*> groups = {};
    std::map<GroupId, std::vector<RankId>> members = {};
    std::map<Lane, nccl::Comm*> lanes = {};
    std::vector<std::pair<nccl::Comm*, void*>> registered = {};
    std::optional<EventPool> events = {};
    Event* begins = nullptr;  // where ranks share a GPU: recorded before each call, on its stream
    // The order of the calls: task `done % tasks` is next.
    std::int64_t tasks = 0, done = 0;
    std::mutex mutex = {};
    std::condition_variable changed = {};
    std::timed_mutex inside = {};  // of NCCL; whoever aborts has it, too

    int gpu() const { return device->gpu(); }
  };
  Rank& rank(RankId id) { return *ranks_.at(id); }
  void expect(nccl::Result result, const std::string& call, nccl::Comm* comm) const;
  std::string words(nccl::Result result, nccl::Comm* comm) const;
  static std::vector<nccl::Comm*> comms_of(const Rank& rank);
  std::vector<nccl::Comm*> comms() const;
  void make_world();
  struct Part {
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
  mutable std::mutex mutex_;  // of what follows, and of aborting
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
