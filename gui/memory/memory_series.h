// Memory series: the live bytes of one class of ranks over time, as steps, and what one can ask of them. Made on demand: a
// result keeps peaks, and the events of a thousand classes would not fit.
#pragma once

#include <QImage>
#include <cstdint>
#include <string>
#include <vector>

#include "gui/document/document.h"
#include "gui/document/time_axis.h"
#include "gui/widgets/theme.h"
#include "report/summary/memory_steps.h"

namespace foreshard {

struct MemorySeries {
  ClassId who = {};
  Space space = Space::Device;
  std::vector<MemoryStep> steps = {};  // in time order, the first at 0
  LiveBytes peak = {};
  Nanoseconds peak_time = {};
  Bytes arena = {};
  Nanoseconds makespan = {};

  const LiveBytes& at(Nanoseconds when) const;
  bool operator==(const MemorySeries&) const = default;
};

// One per space that the class uses, device first. Linear in the spans of the class.
std::vector<MemorySeries> make_series(const Document& document, ClassId who);

// The class whose device memory comes nearest to its limit.
ClassId tightest_class(const Document& document);

// [pixel]: of all that is live in the pixel's time, the moment with the largest sum. So no peak is lost at any zoom.
std::vector<LiveBytes> highest_per_pixel(const MemorySeries& series, TimeRange visible, int width);

struct LiveBlock {  // blocks of one buffer that are alive at a moment
  std::string buffer = {};
  Category category = Category::Transient;
  int count = 0;
  Bytes bytes = {};  // of all of them
  bool operator==(const LiveBlock&) const = default;
};

// What makes up the live bytes at a moment, largest first. By category it adds up to the series.
std::vector<LiveBlock> live_blocks(const Document& document, ClassId who, Space space, Nanoseconds when);

struct MemoryScale {
  Bytes top = {};        // at the upper edge of the picture
  Bytes framework = {};  // below everything else; device memory only
};

// Stacked columns without text, `size` device pixels; font-free like the timeline's frame.
QImage draw_memory(const MemorySeries& series, TimeRange visible, QSize size, const MemoryScale& scale, const Theme& theme);

}  // namespace foreshard
