// Prints a Validation as a table, as JSON, as Markdown (docs/validation.md) and as one HTML page.
#pragma once

#include <string>

#include "validation/validation.h"

namespace foreshard {

std::string validation_text(const Validation& validation);
std::string validation_json(const Validation& validation, bool per_row);  // per_row: with every row
std::string validation_markdown(const Validation& validation);
std::string validation_html(const Validation& validation);
std::string validation_rows_text(const Validation& validation);      // one line per row, predicted and skipped
std::string validation_rows_markdown(const Validation& validation);  // the same as tables (docs/scoreboard.md)

}  // namespace foreshard
