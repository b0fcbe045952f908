// How far predictions are from measured runs: accuracy/residuals.json, which `foreshard validate FILE... --residuals FILE` writes.
#pragma once

#include <string>
#include <vector>

#include "core/result/summary.h"

namespace foreshard {

// Standard deviations from the mean of a normal distribution to each end of its central 90 %.
inline constexpr double kNinetyPercent = 1.6449;

// In 90 of 100 cases measured / predicted, of times or of peak memory, lies between `low` and `high`.
struct Spread {
  std::string architecture = {}, framework = {};  // the cell; both empty: all cells together
  bool experts = false;                           // true: models with experts; false: dense models
  bool adapters = false;                          // true: training of adapters only
  bool memory = false;                            // of peak memory, on any GPU and of any model: `architecture` is empty
  int rows = 0;                                   // measured rows that it comes from
  double low = 1, high = 1;
  bool operator==(const Spread&) const = default;
};

std::string to_json(const std::vector<Spread>& spreads);
std::vector<Spread> parse_spreads(const std::string& text, const std::string& file_name);  // throws Error
// What accuracy/residuals.json says; read once. Throws Error when it cannot be read.
const std::vector<Spread>& shipped_spreads();

// The interval of the predicted time: from its cell, or else from all cells of its kind (`extrapolated`).
PredictionInterval prediction_interval(const std::vector<Spread>& spreads, const std::string& architecture,
                                       const std::string& framework, bool experts, Seconds predicted, bool adapters = false);

// How peak memory that is predicted for the framework compares with measured memory: of its own runs, or else of all frameworks. No rows: 0.
Spread memory_spread(const std::vector<Spread>& spreads, const std::string& framework);

// Whether a run that is predicted to fill this share of the device's memory may or may not run out of it, for all that is known: the limit
// lies within the spread.
bool is_close(double filled, const Spread& spread);

}  // namespace foreshard
