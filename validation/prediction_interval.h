// The errors of predictions for measured runs, source by source, from which intervals are made (strategy/verdict/spread.h).
// accuracy/residuals.json holds them; `foreshard validate FILE... --residuals FILE` writes that file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategy/verdict/spread.h"
#include "validation/validation.h"

namespace foreshard {

// accuracy/sources.json: what the rows themselves do not say.
struct SourceNotes {
  // ln of the factor by which predictions change, in the median, when the fitted constants know nothing of the source
  // (scripts/cross_validate.py).
  std::map<std::string, double> without = {};
};
SourceNotes parse_source_notes(const std::string& text, const std::string& file_name);  // throws Error
SourceNotes shipped_source_notes();                                                     // throws Error

// Of rows of times and rates, and of peak memory, by source, framework, generation of GPU and kind of model.
std::vector<ComparedRuns> compared_runs(const std::vector<ValidatedRow>& scored, const SourceNotes& notes);

}  // namespace foreshard
