// The parts of the timeline picture: its time axis, a lane, the memory panel and the legend.
#pragma once

#include <string>
#include <vector>

#include "core/result/result.h"
#include "core/result/summary.h"
#include "report/causes/bubbles.h"
#include "report/pictures/svg_canvas.h"

namespace foreshard {

struct TimeScale {
  double left = 0, right = 0;  // x in pixels of time 0 and of the makespan
  Nanoseconds makespan = {};
  double at(Nanoseconds when) const {
    return makespan.value > 0 ? left + (right - left) * static_cast<double>(when.value) / static_cast<double>(makespan.value)
                              : left;
  }
};

struct Ticks {  // tick marks of an axis; the step is 1, 2 or 5 times a power of 10
  double step = 1;
  int count = 0;  // the last tick is count * step <= most
};
Ticks ticks(double most, int wanted);  // about `wanted` ticks for an axis from 0 to `most`

struct LaneShape {     // pixels
  double height = 24;  // of the compute band
  double strip = 4;    // height of the communication band below it; 0: no band
  double pitch = 34;   // from the top of a lane to the top of the next
  double least = 0.5;  // cells narrower than this are merged ...
  double merged = 1;   // ... until they are this wide
};

// Draws the lane of one class: cells, labels, communication, and `bubbles`, which are those of the class. Returns the colours of
// the kinds of communication that it drew.
std::vector<Colour> draw_lane(SvgCanvas& canvas, const Result& result, ClassId who, const std::vector<Bubble>& bubbles,
                              const TimeScale& scale, double top, const LaneShape& shape);

// Draws the memory panel with its axis. Returns the class that it shows: the one with the largest peak; an invalid id when the
// result has no device memory.
ClassId draw_memory(SvgCanvas& canvas, const Result& result, const Summary& summary, const TimeScale& scale, double top,
                    double height);

struct Swatch {
  std::string name = {}, fill = {};  // fill: a colour or "url(#pattern)"
};
// Draws a row of colour swatches with their names from (x, y) on; returns the x after the last.
double draw_legend(SvgCanvas& canvas, double x, double y, const std::vector<Swatch>& swatches);

std::string hatch_id(BubbleCause cause);  // id of the pattern: "bubble-drain"

}  // namespace foreshard
