// The Summary as a person reads it on a terminal: at most 100 columns. How to read it: docs/reading-results.md.
#pragma once

#include <string>
#include <vector>

#include "core/result/summary.h"

namespace foreshard {

// What the summary itself does not know.
struct SummaryHeader {
  std::string model = {};                  // "gpt3-175b"
  std::string cluster = {};                // "dgx-a100-x128"
  std::vector<std::string> strategy = {};  // words that are kept together when the line is wrapped: "tp 8", "1f1b", "bf16"
  bool counts_tokens = true;               // false: samples (a CNN)
  bool operator==(const SummaryHeader&) const = default;
};

struct TextOptions {
  bool unicode = true;  // false: plain ASCII
  int most_rows = 12;   // of a table; equal neighbours are folded first, then the middle is left out
};

std::string summary_text(const Summary& summary, const SummaryHeader& header, const TextOptions& options = {});

// "stage 1" .. "stage 14" -> "stage 1-14"; names that differ in more than a last number -> "a .. b".
std::string range_name(const std::string& first, const std::string& last);

}  // namespace foreshard
