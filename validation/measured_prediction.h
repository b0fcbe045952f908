// Predictor: predicts the quantity of a measured row, in the row's own unit and convention.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/base/once.h"
#include "core/profile/machine_profile.h"
#include "strategy/cost/learned_factors.h"
#include "strategy/estimate/estimate.h"
#include "strategy/frameworks/framework_allocation.h"
#include "validation/measured_case.h"

namespace foreshard {

// The refined estimate of one configuration.
struct Outcome {
  bool feasible = false;
  std::string reason = {};
  double iteration = 0;            // seconds
  double next_iteration_gain = 0;  // seconds of the iteration that are saved where ranks begin the next step without a barrier
  // Only when stage times are asked for.
  double forward = 0, backward_input = 0, backward_weight = 0, transfer = 0;  // seconds, the median stage
  double forward_span = 0, backward_span = 0;  // seconds from the first begin to the last end, on all streams
};

struct LayerTimes {  // time of one layer for one micro-batch, with the communication that it waits for
  Seconds forward = {}, backward = {};
};

struct Prediction {
  double value = 0;  // in the row's unit
  bool fits = false;
  double filled = 0;        // share of the device's memory that the run is predicted to take
  int candidates = 1;       // number of strategies, of which the fastest that fits was taken ...
  int chosen = -1;          // ... and its index; -1: none was feasible
  std::string reason = {};  // why there is no value
};

// Evaluates configurations of different rows only once when they are equal or differ only in the number of micro-batches.
// Several threads may call it at the same time.
class Predictor {
 public:
  // With a profile, its costs are used for the device that it is about; profiles with the same hash must be equal.
  Prediction predict(const MeasuredCase& question, const MachineProfile* profile = nullptr);
  // The share of each part in the predicted iteration. `chosen`: Prediction::chosen of a prediction without a profile.
  static std::vector<PartShare> shares(const MeasuredCase& question, int chosen);

 private:
  struct Entry {
    Once filled = {};
    Outcome outcome = {};                       // without the times of the iteration
    std::optional<ReplayedPlan> replayed = {};  // of a feasible one
    std::int64_t samples_of_microbatch = 0;     // of all replicas
  };
  struct Memory {
    Once filled = {};
    FrameworkAllocation allocation = {};
  };
  const FrameworkAllocation& memory(const MeasuredCase& question, const Strategy& strategy);
  static void fill(Entry& entry, const Model& model, const Cluster& cluster, const Strategy& shorter, bool longer,
                   bool stage_times, const MachineProfile* profile);
  Outcome outcome(const Model& model, const Cluster& cluster, const Strategy& strategy, bool stage_times,
                  const MachineProfile* profile);
  LayerTimes layer_times(const MeasuredCase& question, const Strategy& strategy, const MachineProfile* profile);
  std::mutex door_ = {};
  // By configuration; maps, because references to their entries must stay valid.
  std::map<std::string, Entry> known_ = {};
  std::map<std::pair<std::string, Offload>, Memory> memories_ = {};
};

}  // namespace foreshard
