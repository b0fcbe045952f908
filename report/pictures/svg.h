// Draws a Result as an SVG picture for print. Each pipeline rank has a lane with its work, its bubbles (hatched by cause) and,
// in a strip below, its communication. A panel under the lanes shows the memory of the fullest stage by category, with the
// capacity as a line.
#pragma once

#include <string>

#include "core/result/result.h"
#include "core/result/summary.h"

namespace foreshard {

struct SvgOptions {
  int width = 1200;           // pixels
  std::string title = {};     // "gpt3-175b on dgx-a100-x128"
  std::string subtitle = {};  // "tp 8, pp 16, dp 8, 1f1b"
  int most_lanes = 64;        // a lane shows one class of a role; if there are more roles, every k-th and the last are shown
};

// The SVG text. The number of SVG elements depends on the width and the lanes, not on the length of the trace: neighbouring
// cells narrower than half a pixel are merged into one cell with their mean colour.
std::string timeline_svg(const Result& result, const Summary& summary, const SvgOptions& options = {});

}  // namespace foreshard
