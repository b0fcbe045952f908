// The parts of the picture: where time lies on the page, and the two panels.
#pragma once

#include <string>
#include <vector>

#include "core/result/result.h"
#include "core/result/summary.h"
#include "report/causes/bubbles.h"
#include "report/pictures/svg_canvas.h"

namespace foreshard {

struct TimeScale {
  double left = 0, right = 0;  // pixels of 0 and of the makespan
  Nanoseconds makespan = {};
  double at(Nanoseconds when) const {
    return makespan.value > 0 ? left + (right - left) * static_cast<double>(when.value) / static_cast<double>(makespan.value)
                              : left;
  }
};

struct Ticks {  // round steps of 1, 2 or 5 that give about `wanted` of them
  double step = 1;
  int count = 0;  // multiples of step from 0 to most
};
Ticks ticks(double most, int wanted);

struct LaneShape {
  double height = 24;  // of the compute band
  double strip = 4;    // of the communication band below it, 0: none
  double pitch = 34;   // from lane to lane
  double least = 0.5;  // cells narrower than this are merged ...
  double merged = 1;   // ... until they are this wide
};

// Draws one class: cells, labels, bubbles, communication. `bubbles` are those of the class. Gives the kinds of communication it
// drew, by colour.
std::vector<Colour> draw_lane(SvgCanvas& canvas, const Result& result, ClassId who, const std::vector<Bubble>& bubbles,
                              const TimeScale& scale, double top, const LaneShape& shape);

// Draws the memory panel with its axis; gives the class it shows, invalid when the result has no device memory.
ClassId draw_memory(SvgCanvas& canvas, const Result& result, const Summary& summary, const TimeScale& scale, double top,
                    double height);

// A row of swatches with names; gives the x after the last one.
struct Swatch {
  std::string name = {}, fill = {};
};
double draw_legend(SvgCanvas& canvas, double x, double y, const std::vector<Swatch>& swatches);

std::string hatch_id(BubbleCause cause);

}  // namespace foreshard
