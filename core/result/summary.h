// Summary: the numbers that a person asks for. Fractions are shares of the makespan unless a comment says otherwise.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/result/memory_timeline.h"
#include "core/result/result.h"
#include "core/result/verdict.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// Why a rank's compute stream is idle.
enum class BubbleCause : std::uint8_t { WarmUp, Drain, Dependency, ExposedCommunication, Straggler, Barrier, Imbalance };
inline constexpr int kBubbleCauses = 7;
const char* name_of(BubbleCause cause);

struct StageTimes {  // isolated times of one pipeline stage, per micro-batch
  Seconds forward = {}, backward_input = {}, backward_weight = {}, p2p = {};
  bool operator==(const StageTimes&) const = default;
};

struct StageMemory {  // one pipeline rank (role), device space
  std::string role = {};
  LiveBytes peak = {};  // by category at the time of the live peak
  // with_framework: arena + Plan::framework; reserved: the arena; statics: resident parameters, gradients and optimizer states
  Bytes live_peak = {}, order_bound = {}, arena = {}, with_framework = {}, reserved = {}, statics = {};
  bool operator==(const StageMemory&) const = default;
};

struct LinkUtilization {  // of a class of links
  std::string name = {};
  int links = 0;           // number of links in the class
  double utilization = 0;  // bytes / (bandwidth * makespan)
  bool operator==(const LinkUtilization&) const = default;
};

struct PredictionInterval {  // the interval that contains the measured iteration time in 90 of 100 cases
  Seconds low = {}, high = {};
  int rows = 0;               // number of runs whose errors it is based on
  std::string basis = {};     // on what it rests, in words, without a full stop
  bool learned = false;       // these are the user's own runs, from which the profile learned; false: published runs
  bool extrapolated = false;  // none of these runs used this framework on this generation of GPU
  // GPUs whose measured products the prediction took: its own, or others that differ among each other by `rates_spread` (standard
  // deviation), which widens the interval. None: formulas alone; the spread is then that between all measured GPUs, 0 where none is.
  std::vector<std::string> rates_of = {};
  double rates_spread = 0;
  bool operator==(const PredictionInterval&) const = default;
};

struct FlopsRate {
  Flops model = {}, hardware = {};                         // per iteration, all GPUs; hardware: recomputation included
  double model_utilization = 0, hardware_utilization = 0;  // shares of the GPUs' peak: MFU, HFU
  double masked_utilization = 0;                           // MFU with attention only where the masks allow it; 0: unknown
  double masked_hardware_utilization = 0;                  // HFU with fused attention only where its masks allow it
  bool operator==(const FlopsRate&) const = default;
};

struct BubbleShares {                                        // idle compute stream / makespan
  double fraction = 0;                                       // mean over ranks
  std::vector<double> by_cause = {};                         // [BubbleCause], sums to fraction
  std::vector<double> per_stage = {};                        // per role
  std::vector<std::vector<double>> by_cause_per_stage = {};  // [role][cause]
  bool operator==(const BubbleShares&) const = default;
};

struct CommunicationShares {
  double exposed = 0;  // the compute stream is idle because of communication, or runs communication itself
  double hidden = 0;   // communication runs while the compute stream is busy
  bool operator==(const CommunicationShares&) const = default;
};

struct MemoryFit {  // of the fullest device
  Bytes capacity = {}, reserve = {}, framework = {};
  Bytes margin = {};  // capacity - reserve - framework - largest arena; negative: does not fit
  bool operator==(const MemoryFit&) const = default;
};

struct Summary {
  Verdict verdict = {};
  bool feasible = true;                // the verdict is another one than DoesNotFit, and the strategy has a plan
  std::string infeasible_reason = {};  // that of the verdict, or why there is no plan
  std::vector<std::string> would_help = {};
  Seconds iteration_time = {};
  std::optional<PredictionInterval> prediction_interval = {};
  double tokens_per_s = 0, tokens_per_s_per_gpu = 0, samples_per_s = 0;
  FlopsRate flops = {};
  BubbleShares bubble = {};
  CommunicationShares communication = {};
  std::vector<StageTimes> stage_times = {};  // per pipeline stage
  std::vector<StageMemory> memory = {};      // per role
  MemoryFit fit = {};
  std::vector<LinkUtilization> links = {};  // highest utilization first
  std::optional<double> cost_per_million_tokens = {};
  std::optional<double> energy_per_million_tokens_j = {};
  int gpus = 0, stages = 0, microbatches = 0;
  std::int64_t parameters = 0;
  bool operator==(const Summary&) const = default;
};

}  // namespace foreshard
