// Communicator by NCCL: ranks on GPUs of their own, in one process or in many. One communicator over all ranks, for messages, and one per group of the plan, split off it.
//
// Every rank puts its calls in the plan's issue order, whichever stream they are for: a total order over all communicators, which check_plan has shown to exist, so no two of them wait for
// each other. Nothing blocks in NCCL: communicators are made without blocking and asked for errors, which stop all ranks; a stop aborts them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "exec/cuda/cuda_device.h"
#include "exec/cuda/nccl_ranks.h"

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

 private:
  friend class NcclCommunicator;
  class Task;
  class CollectiveTask;
  class ExchangeTask;
  struct Rank {
    int gpu = 0;
    nccl::Comm* world = nullptr;
    std::map<GroupId, nccl::Comm*> groups = {};
    std::map<GroupId, std::vector<RankId>> members = {};
    std::set<std::pair<std::byte*, std::int64_t>> buffers = {};  // that collectives touch
    std::vector<std::pair<nccl::Comm*, void*>> registered = {};
    // The order of the calls: task `done % tasks` is next.
    std::int64_t tasks = 0, done = 0;
    std::mutex mutex = {};
    std::condition_variable changed = {};
  };
  Rank& rank(RankId id) { return *ranks_.at(id); }
  void expect(nccl::Result result, const std::string& call, nccl::Comm* comm) const;
  std::string words(nccl::Result result, nccl::Comm* comm) const;
  std::vector<nccl::Comm*> comms() const;
  void make_world();
  void split(GroupId group);
  std::set<GroupId> wanted_groups() const;
  void register_buffers();
  void wait_until_ready(const std::string& call);
  void watch();
  void abort_all();
  void close();

  Runtime& runtime_;
  nccl::Library& library_;
  const Stop& stop_;
  NcclOptions options_;
  GpuMemory memory_;
  std::map<RankId, std::unique_ptr<Rank>> ranks_;
  mutable std::mutex mutex_;  // of what follows, and of aborting
  bool connected_ = false, aborted_ = false, closed_ = false;
  std::string failure_;
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
