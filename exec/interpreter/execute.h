// execute: trains the model of a Plan. Every rank is a thread of this process (or of one of several processes), and every stream of a rank
// is a thread too. The plan is executed exactly as it is, whoever wrote it (docs/execution.md).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/result/result.h"
#include "exec/data/tensors.h"
#include "exec/data/training_point.h"
#include "exec/host/host_ops.h"
#include "exec/interpreter/expert_counts.h"
#include "exec/interpreter/rank_devices.h"
#include "exec/rank/rank_memory.h"

namespace foreshard {

class ProcessMesh;

// How the times of the result are obtained. Wall: wall-clock time. Emulated: the time on a machine with a core and a link for every rank,
// from a replay of the plan in which each instruction takes its measured CPU time and each transfer the time of LinkModel.
enum class TimeMode : std::uint8_t { Wall, Emulated };

// The alpha-beta model of a link: a transfer takes latency + bytes / bandwidth. A collective of n ranks is a ring of n - 1 such steps
// (all-reduce: 2 n - 2); see transfer_time in exec/interpreter/measured_trace.h.
struct LinkModel {
  Seconds latency = {5e-6};
  BytesPerSecond bandwidth = {10e9};
  bool operator==(const LinkModel&) const = default;
};

// What is reported after a training step.
struct StepReport {
  double loss = 0;                        // mean over the samples of the step
  double time_s = 0;                      // wall-clock seconds
  std::optional<double> loss_scale = {};  // of its gradients, if the loss scale is dynamic
  bool skipped = false;                   // the gradients overflowed, so the update was skipped
  bool stop_asked = false;                // `cancel` was set in this process or in another one
  // Of all ranks. Empty for a model without experts. Without a barrier, only the last step before a checkpoint or the end has them.
  ExpertCounts experts = {};
  bool operator==(const StepReport&) const = default;
};

// When checkpoints are saved, besides the end of the run, and which ones.
struct SaveRule {
  int every = 0;            // after every so many steps; 0: only at the end
  int keep = 0;             // number of earlier checkpoints to keep under names of their own (exec/data/kept_checkpoints.h)
  bool not_finite = false;  // also when the loss or an element is NaN or infinite; else such a run ends where it would save
  bool operator==(const SaveRule&) const = default;
};

// How long a run may be without progress, besides ExecuteOptions::patience.
struct TimeLimits {
  std::chrono::milliseconds longest_compute{60000};     // while ranks compute
  std::chrono::milliseconds longest_when_asked{10000};  // the same once the run was asked to stop
  // Added to these limits and to the patience until all ranks have ended their first run, as libraries and kernels are loaded and connections
  // are made.
  std::chrono::milliseconds first_use{0};
  // The clock of the limits, for tests; empty: the steady clock.
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

struct ExecuteOptions {
  int steps = 1;
  std::uint64_t seed = 0;   // of initial weights, samples and dropout
  std::string resume = {};  // a checkpoint (exec/data/checkpoint.h) from which to continue, with its seed; "": none
  // What training_point told of it; the run is refused if the file has been replaced since. Nothing: it is read again.
  std::optional<TrainingPoint> resume_point = {};
  std::string save = {};  // file for checkpoints, written at the end and as `saves` says; "": none
  SaveRule saves = {};
  // When it becomes true, the running step is the last one in all processes, and a checkpoint is saved after it.
  const std::atomic<bool>* cancel = nullptr;
  OptimizerSettings optimizer = {};
  const Samples* samples = nullptr;  // null: random samples made from the seed
  TimeMode time = TimeMode::Wall;
  LinkModel link = {};                     // used by TimeMode::Emulated
  std::optional<Bytes> memory_limit = {};  // per rank, for the arena and the plan's framework memory
  MemoryChecks checks = {};
  bool barrier = true;                       // all ranks synchronize after each step; false: only as the plan says
  std::chrono::milliseconds patience{3000};  // the run is stopped after this time without progress, if no rank computes
  TimeLimits limits = {};
  // Makes the devices of the ranks for one run; empty: the ranks run on the CPU.
  std::function<std::unique_ptr<RankDevices>(const Stop& stop)> devices = {};
  MeasuredOn measured_on = {"host", "host"};  // describes the devices in the result
  bool across_processes = false;              // the devices can communicate with those of other processes
  ProcessMesh* processes = nullptr;           // if the ranks are distributed over several processes; must outlive the call
  bool tensors = false;                       // returns gradients and values of the last step
  std::function<void()> on_start = {};        // called when all is prepared, before the first step
  std::function<void(int step, const StepReport& report)> on_step = {};
  // Called before each instruction, on the thread that reports it (StepObserver): tests make ranks fail here.
  std::function<void(RankId rank, int action, int instruction, int run)> before = {};
};

// The result of a run. With several processes, only process 0 has `result` and `peaks`.
struct Execution {
  Result result = {};  // trace and memory of the last step, by op, with a timeline for every rank
  std::vector<StepReport> steps = {};
  std::vector<RouterName> routers = {};  // of StepReport::experts
  bool stopped = false;                  // stopped by `cancel`: fewer steps than ExecuteOptions::steps
  // Why the last state was not saved, which ended the run: "after step 40 the loss is nan". The earlier file is untouched.
  std::string not_saved = {};
  int first_step = 0;                   // number of steps of the training before this run
  double iteration_time_s = 0;          // Wall: median over all steps but the first; Emulated: of the replayed timeline
  std::vector<LiveBytes> peaks = {};    // [rank] peak of device memory in the last step, from the blocks acquired and released
  std::vector<std::string> notes = {};  // from the devices of this process, for the user
  Bytes workspace = {};                 // memory of kernels outside the arenas, all ranks of this process together
  std::vector<WholeTensor> values = {}, gradients = {};  // [tensor], if ExecuteOptions::tensors
};

// Runs the plan. Returns Infeasible if it needs more than the memory limit or than this machine has. Throws Error for a plan or options
// that cannot be run here, and DeviceError, naming rank and instruction, if a rank fails; then all ranks have stopped. While it runs, no other
// run can save to the same file: Error (core/base/file_lock.h).
std::variant<Execution, Infeasible> execute(const Plan& plan, const ExecuteOptions& options = {});

}  // namespace foreshard
