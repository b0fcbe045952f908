// A Comparison as a table of at most 100 columns, as JSON (docs/json-output.md) and as a Chrome trace with both results on
// adjacent tracks.
#pragma once

#include <string>

#include "report/tables/compare.h"

namespace foreshard {

std::string compare_text(const Comparison& comparison, bool unicode = true);
std::string compare_json(const Comparison& comparison);

// One process per pair of classes; every stream is two threads, predicted above measured. Above `most_slices` only the first
// classes are written; the file says how many.
std::string compare_trace(const Result& predicted, const Result& measured, std::int64_t most_slices = 200'000);

}  // namespace foreshard
