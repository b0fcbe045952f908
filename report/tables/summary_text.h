// The Summary as text for a terminal of 100 columns; docs/reading-results.md explains it.
#pragma once

#include <string>
#include <vector>

#include "core/result/summary.h"

namespace foreshard {

// The headline above the summary.
struct SummaryHeader {
  std::string model = {};                  // "gpt3-175b"
  std::string cluster = {};                // "dgx-a100-x128"
  std::vector<std::string> strategy = {};  // "tp 8", "1f1b", "bf16"; no line break inside an element
  bool counts_tokens = true;               // false: samples (a CNN)
  bool operator==(const SummaryHeader&) const = default;
};

struct TextOptions {
  bool unicode = true;  // false: plain ASCII
  int most_rows = 12;   // of a table; equal neighbours become one row first, then middle rows are left out
};

std::string summary_text(const Summary& summary, const SummaryHeader& header, const TextOptions& options = {});

// "stage 1" and "stage 14" -> "stage 1-14". Names that differ in more than the number at their end: "a .. b".
std::string range_name(const std::string& first, const std::string& last);

}  // namespace foreshard
