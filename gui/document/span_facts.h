// Span facts: the sections of the inspector about one span.
#pragma once

#include <optional>
#include <vector>

#include "gui/document/facts.h"

namespace foreshard {

// Action and instruction: "F3: layer 5", "B7: all_reduce norm".
QString span_title(const Document& document, std::int32_t span);

FactSection time_section(const Document& document, const Span& span);
std::vector<FactSection> work_sections(const Document& document, const Span& span);
std::optional<RooflinePoint> roofline_of(const Document& document, const Span& span);  // none: no FLOPs, or an unknown device

QString rate_words(double per_second, const char* unit);  // "312 TFLOP/s", powers of 1000

}  // namespace foreshard
