// How far off predictions of a kind have been: the residuals of the measured runs with the same GPU generation and framework.
// accuracy/residuals.json holds them; `foreshard validate FILE... --residuals FILE` writes it.
#pragma once

#include <string>
#include <vector>

#include "core/result/summary.h"
#include "validation/validation.h"

namespace foreshard {

// Standard deviations of a normal distribution between its middle and each end of the 90 % around it.
inline constexpr double kDeviations = 1.6449;

// In 90 of 100 cases measured / predicted time lies between low and high.
struct Spread {
  std::string architecture = {}, framework = {};  // both empty: all cells together
  bool experts = false;                           // of models with experts; else of dense ones
  int rows = 0;
  double low = 1, high = 1;
  bool operator==(const Spread&) const = default;
};

// Of the rows of time and throughput. Cells with fewer rows than an interval needs are left out; the last entries are those of all
// cells, each with the same weight, for predictions outside of every one: dense models, models with experts.
std::vector<Spread> spreads(const std::vector<ValidatedRow>& scored);

std::string to_json(const std::vector<Spread>& spreads);
std::vector<Spread> parse_spreads(const std::string& text, const std::string& file_name);  // throws Error

PredictionInterval prediction_interval(const std::vector<Spread>& spreads, const std::string& architecture,
                                       const std::string& framework, bool experts, Seconds predicted);

}  // namespace foreshard
