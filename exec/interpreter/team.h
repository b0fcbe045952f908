// The ranks of a plan as threads of this process: starts them, lets them run step by step, and watches that they go on.
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

class Team {
 public:
  // Makes all ranks ready; throws Error for a plan that cannot be run. Options must outlive it.
  // `start`: the training goes on from there.
  Team(const Plan& plan, const ExecuteOptions& options, const TrainingPoint& start);
  ~Team();

  // One step of all ranks (or all steps, without a barrier between them): returns when they have ended. Throws DeviceError
  // when a rank failed or nothing went on for too long.
  void run(int first_step, int steps);
  // From the moment in which no rank goes on any more to the answer of `execute`, when no rank computes.
  static std::chrono::milliseconds longest_hang(const ExecuteOptions& options);
  // After a failure: whether all threads came to an end. If not, the team must not be destroyed.
  bool ended();

  const Ranks& ranks() const { return ranks_; }
  // Ranks [first_rank, end_rank) are threads of this process.
  std::int32_t first_rank() const { return first_rank_; }
  std::int32_t end_rank() const { return first_rank_ + static_cast<std::int32_t>(members_.size()); }
  Interpreter& rank(RankId rank) { return *members_[rank.index() - static_cast<std::size_t>(first_rank_)]->interpreter; }
  std::vector<const RankMemory*> memories() const;  // [rank]; null: of another process
  // Of all ranks; of several processes every one has to ask. Throws DeviceError when the ranks have different loss scales.
  StepReport report(int step) const;
  const LossScaleState& loss_scale(int step) const { return members_[0]->interpreter->loss_scale(step); }
  Bytes workspace() const;
  std::vector<std::string> notes() const { return devices_ ? devices_->notes() : std::vector<std::string>{}; }
  std::string broken_guard() const;

 private:
  struct Member {
    std::unique_ptr<DeviceBackend> device = {};
    std::unique_ptr<Communicator> communicator = {};
    std::unique_ptr<Interpreter> interpreter = {};
    std::thread thread = {};
  };
  void equip(Member& member, RankId rank);
  void start();
  void run_here(int first_step, int steps);
  void work(Member& member);
  void watch();
  std::string who_hangs(std::chrono::milliseconds patience) const;
  MeshRunning runs_now() const;
  std::int64_t ended_steps() const;
  bool computes();
  bool first_run_ended() const;

  const Plan plan_;  // its own: a thread that hangs may use it when the caller's is gone
  const ExecuteOptions& options_;
  Ranks ranks_;
  ProcessMesh* mesh_ = nullptr;
  std::int32_t first_rank_ = 0;
  RandomSamples random_samples_;
  Stop stop_;
  ThreadMeetings meetings_;
  std::mutex alone_;
  std::unique_ptr<RankDevices> devices_;  // none: the host
  std::vector<std::unique_ptr<Member>> members_;

  std::mutex mutex_;
  std::condition_variable changed_;
  int first_ = 0, until_ = 0;  // steps that the ranks may run
  std::size_t finished_ = 0;   // ranks
  std::size_t over_ = 0;       // threads
  bool closed_ = false;
  bool computes_ = false;  // seen last
};

}  // namespace foreshard
