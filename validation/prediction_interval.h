// The interval of a prediction, from the errors of predictions for measured runs with the same GPU generation and framework.
// accuracy/residuals.json holds the intervals; `foreshard validate FILE... --residuals FILE` writes that file.
#pragma once

#include <string>
#include <vector>

#include "strategy/verdict/spread.h"
#include "validation/validation.h"

namespace foreshard {

// Computed from the rows of time and throughput, first for dense models, then for models with experts, then for adapters. Each of these parts has
// one entry per cell with enough rows (eight), and then one of all cells with equal weights, for predictions outside every cell. Last the
// same for peak memory, framework by framework.
std::vector<Spread> spreads(const std::vector<ValidatedRow>& scored);

}  // namespace foreshard
