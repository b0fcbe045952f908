// What `validate` says of the shipped intervals: how many rows they hold, and how they score, source by source.
#pragma once

#include <string>

#include "core/json/json.h"
#include "report/words/text_table.h"
#include "validation/validation.h"

namespace foreshard {

TextTable interval_table(const ShippedIntervals& intervals);
// One line for the times, one for memory; where no row has a shipped interval, nothing.
std::string interval_lines(const Validation& v);
void interval_fields(JsonWriter& json, const Validation& v);  // "intervals" of validation_json

}  // namespace foreshard
