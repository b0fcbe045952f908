// RankThreads: the ranks of a plan as threads of this process. It starts them, runs them step by step, and stops them if they fail or hang.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/communicator/thread_communicator.h"
#include "exec/host/host_device.h"
#include "exec/interpreter/execute.h"
#include "exec/interpreter/interpreter.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

class RankThreads {
 public:
  // Prepares all ranks and starts their threads. `start`: the point from which the training continues. `options` must outlive it. Throws
  // Error for a plan that cannot be run, DeviceError if a device or connection fails.
  RankThreads(const Plan& plan, const ExecuteOptions& options, const TrainingPoint& start);
  ~RankThreads();

  // Runs `steps` steps of all ranks, without a barrier between them, and returns when they have ended. Throws DeviceError if a rank has
  // failed or hangs.
  void run(int first_step, int steps);
  // The longest time from the moment at which no rank makes progress until `execute` throws, if no rank computes.
  static std::chrono::milliseconds longest_hang(const ExecuteOptions& options);
  // Called after a failure: stops all ranks, waits for a moment for all threads to end, and returns whether they have. If not, this object must not be
  // destroyed.
  bool ended(const std::string& why);

  const Ranks& ranks() const { return ranks_; }
  const std::vector<RouterName>& routers() const { return routers_; }
  // Ranks [first_rank, end_rank) are threads of this process.
  std::int32_t first_rank() const { return first_rank_; }
  std::int32_t end_rank() const { return first_rank_ + static_cast<std::int32_t>(members_.size()); }
  Interpreter& rank(RankId rank) { return *members_[rank.index() - static_cast<std::size_t>(first_rank_)]->interpreter; }
  std::vector<const RankMemory*> memories() const;  // [rank]; null for a rank of another process
  // The report of a step over all ranks; all processes have to call it. Throws DeviceError if the ranks have different loss scales.
  StepReport report(int step) const;
  const LossScaleState& loss_scale(int step) const { return members_[0]->interpreter->loss_scale(step); }
  Bytes workspace() const;  // memory of kernels outside the arenas, all ranks of this process
  std::vector<std::string> notes() const { return devices_ ? devices_->notes() : std::vector<std::string>{}; }
  std::string broken_guard() const;  // names rank and block whose guard bytes were overwritten; "": none

 private:
  struct Member {
    std::unique_ptr<DeviceBackend> device = {};
    std::unique_ptr<Communicator> communicator = {};
    std::unique_ptr<Interpreter> interpreter = {};
    std::thread thread = {};
  };
  void equip(Member& member, RankId rank);
  void start();
  void close();  // ends the threads
  void run_here(int first_step, int steps);
  void work(Member& member);
  void watch();  // waits until all ranks have ended; raises the stop if they hang
  std::string who_hangs(std::chrono::milliseconds patience) const;
  MeshRunning runs_now() const;
  std::int64_t ended_steps() const;
  bool computes();
  bool first_run_ended() const;

  const Plan plan_;  // a copy, because a thread that hangs may still use it when the caller's plan is freed
  const ExecuteOptions& options_;
  Ranks ranks_;
  const std::vector<RouterName> routers_;
  ProcessMesh* mesh_ = nullptr;
  std::int32_t first_rank_ = 0;
  RandomSamples random_samples_;
  Stop stop_;
  ThreadMeetings meetings_;
  std::mutex alone_;
  std::unique_ptr<RankDevices> devices_;  // null: the ranks run on the CPU
  std::vector<std::unique_ptr<Member>> members_;

  std::mutex mutex_;
  std::condition_variable changed_;
  int first_ = 0, until_ = 0;  // the ranks may run steps [first_, until_)
  std::size_t finished_ = 0;   // number of ranks that have ended these steps
  std::size_t over_ = 0;       // number of threads that have ended
  bool closed_ = false;
  bool computes_ = false;  // the last result of computes()
};

}  // namespace foreshard
