// A Result as a picture: one lane per pipeline rank with its work, its bubbles hatched by cause and its communication below,
// and under it the memory of the tightest stage by category with the capacity line. Made to be read in print.
#pragma once

#include <string>

#include "core/result/result.h"
#include "core/result/summary.h"

namespace foreshard {

struct SvgOptions {
  int width = 1200;           // pixels
  std::string title = {};     // "gpt3-175b on dgx-a100-x128"
  std::string subtitle = {};  // "tp 8, pp 16, dp 8, 1f1b"
  int most_lanes = 64;        // one class per role; of more roles every k-th is shown
};

// The number of elements is bounded by the width and the lanes, not by the length of the trace: cells below half a pixel are
// merged into one with their mean colour.
std::string timeline_svg(const Result& result, const Summary& summary, const SvgOptions& options = {});

}  // namespace foreshard
