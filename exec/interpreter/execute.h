// execute: trains the model of a Plan for real. Every rank is a thread of this process, every stream a thread of its rank; the
// plan is obeyed as it is, whoever wrote it. docs/execution.md
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
#include "exec/interpreter/rank_devices.h"
#include "exec/rank/rank_memory.h"

namespace foreshard {

class ProcessMesh;

// Wall: when things happened. Emulated: every instruction's own CPU time, composed along the plan's dependencies, with
// transfers by the link model: the timeline of machines that have a core (and a link) for every rank.
enum class TimeMode : std::uint8_t { Wall, Emulated };

// A transfer takes latency + bytes / bandwidth; a collective of n ranks is a ring of n - 1 (all-reduce: 2 n - 2) such steps.
struct LinkModel {
  Seconds latency = {5e-6};
  BytesPerSecond bandwidth = {10e9};
  bool operator==(const LinkModel&) const = default;
};

struct StepReport {
  double loss = 0;                        // mean over the samples of the step
  double time_s = 0;                      // wall clock
  std::optional<double> loss_scale = {};  // of its gradients, where it is dynamic
  bool skipped = false;                   // they overflowed: nothing was updated
  bool stop_asked = false;                // `cancel` was set, here or in another process
  bool operator==(const StepReport&) const = default;
};

struct ExecuteOptions {
  int steps = 1;
  std::uint64_t seed = 0;   // initial weights, samples, dropout
  std::string resume = {};  // a checkpoint to go on from, with its seed; exec/data/checkpoint.h
  std::string save = {};    // where to keep a checkpoint, at the end and every `save_every` steps (0: at the end only)
  int save_every = 0;
  int keep = 0;  // number of last checkpoints that stay under names of their own (exec/data/kept_checkpoints.h)
  // Set: the step under way is the last one, in all processes; `save` gets its checkpoint.
  const std::atomic<bool>* cancel = nullptr;
  OptimizerSettings optimizer = {};
  const Samples* samples = nullptr;  // none: random ones made from the seed
  TimeMode time = TimeMode::Wall;
  LinkModel link = {};
  std::optional<Bytes> memory_limit = {};  // per rank: the arena and the plan's framework bytes have to fit
  MemoryChecks checks = {};
  bool barrier = true;                       // ranks wait for each other between steps; without it only where the plan says so
  std::chrono::milliseconds patience{3000};  // after this time without progress, and no rank computing, the run is stopped
  std::chrono::milliseconds longest_compute{60000};  // one instruction
  // Both are longer by this until all ranks have ended their first run: libraries and kernels are loaded, connections are made.
  std::chrono::milliseconds first_use{0};
  std::function<std::chrono::steady_clock::time_point()> now = {};  // by which these are measured; none: the clock. For tests
  // What the ranks run on, made for one run; none: the host.
  std::function<std::unique_ptr<RankDevices>(const Stop& stop)> devices = {};
  MeasuredOn measured_on = {"host", "host"};  // those devices, for the result
  bool across_processes = false;              // those devices meet the ones of other processes
  ProcessMesh* processes = nullptr;  // the ranks are dealt to several processes, of which this is one; must outlive the call
  bool tensors = false;              // give back gradients and values of the last step
  std::function<void(int step, const StepReport& report)> on_step = {};
  // Called on the stream's thread before each instruction: tests make ranks fail here.
  std::function<void(RankId rank, int action, int instruction, int run)> before = {};
};

// Of several processes only process 0 has a result and peaks.
struct Execution {
  Result result = {};  // unfolded, by op; trace and memory of the last step
  std::vector<StepReport> steps = {};
  bool stopped = false;                 // by `cancel`: there are fewer of them than asked for
  int first_step = 0;                   // steps of the training before them
  double iteration_time_s = 0;          // wall: median of the steps, the first aside; emulated: of the composed timeline
  std::vector<LiveBytes> peaks = {};    // [rank] of device memory, as acquired and released by the rank in the last step
  std::vector<std::string> notes = {};  // of the devices of this process
  Bytes workspace = {};                 // of kernels, outside the arenas, all ranks
  std::vector<WholeTensor> values = {}, gradients = {};  // [tensor], when asked for
};

// Infeasible: the plan needs more than the memory limit. Throws Error for a plan that cannot be run here, DeviceError naming
// rank and instruction when a rank fails; all ranks have stopped then.
std::variant<Execution, Infeasible> execute(const Plan& plan, const ExecuteOptions& options = {});

}  // namespace foreshard
