// What the engine says about a measured row, in the row's own unit and convention.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/profile/machine_profile.h"
#include "strategy/cost/learned_factors.h"
#include "validation/measured_case.h"

namespace foreshard {

// One configuration, by the refined estimate.
struct Outcome {
  bool feasible = false;
  std::string reason = {};
  double iteration = 0;  // seconds
  double skew = 0;       // of these, saved where steps follow each other without a barrier
  // Only where asked for.
  double forward = 0, backward_input = 0, backward_weight = 0, transfer = 0;  // seconds, the median stage
};

struct LayerTimes {  // computes of one layer and micro-batch
  Seconds forward = {}, backward = {};
};

struct Prediction {
  double value = 0;  // in the row's unit
  bool fits = false;
  int candidates = 1;       // settings among which the fastest feasible one was taken ...
  int chosen = -1;          // ... and which it is
  std::string reason = {};  // why there is no value
};

// Equal configurations of different rows are looked at once. May be used by several threads.
class Predictor {
 public:
  // With a profile, whose hash tells it from others: with its costs for the device that it is about.
  Prediction predict(const MeasuredCase& question, const MachineProfile* profile = nullptr);
  // How much of the iteration each part takes; `chosen` of the prediction without a profile.
  static std::vector<PartShare> shares(const MeasuredCase& question, int chosen);

 private:
  struct Entry {
    std::once_flag filled = {};
    Outcome outcome = {};
  };
  const Outcome& outcome(const Model& model, const Cluster& cluster, const Strategy& strategy, bool stage_times,
                         const MachineProfile* profile);
  LayerTimes layer_times(const MeasuredCase& question, const Strategy& strategy, const MachineProfile* profile);
  std::mutex door_ = {};
  std::map<std::string, Entry> known_ = {};  // its entries stay where they are
};

}  // namespace foreshard
