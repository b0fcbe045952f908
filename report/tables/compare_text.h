// A Comparison as a table of at most 100 columns, as JSON (docs/json-output.md) and as a Chrome trace with both results on
// adjacent tracks.
#pragma once

#include <string>

#include "report/tables/compare.h"

namespace foreshard {

std::string compare_text(const Comparison& comparison, bool unicode = true);
std::string compare_json(const Comparison& comparison);

// Each pair of classes is a process, each stream two threads in it: predicted above measured. If there are more slices than
// `most_slices`, only the first pairs of classes are written; "classes_shown" in the file is their number.
std::string compare_trace(const Result& predicted, const Result& measured, std::int64_t most_slices = 200'000);

}  // namespace foreshard
