// Memory series: the live bytes of one class of ranks over time, as a step function, with queries on it. A series is computed on demand:
// a result keeps only the peaks, since the memory events of a thousand classes would be too large.
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
  std::vector<MemoryStep> steps = {};   // in time order, the first at 0
  std::vector<LiveBytes> experts = {};  // [step]: of these, the states of experts; empty: the class has no experts
  LiveBytes peak = {};
  Nanoseconds peak_time = {};
  Bytes arena = {};
  Nanoseconds makespan = {};

  const LiveBytes& at(Nanoseconds when) const;  // live bytes by category at a moment
  LiveBytes experts_at(Nanoseconds when) const;
  bool operator==(const MemorySeries&) const = default;
};

// Whether all that the buffer holds are parameters, gradients or optimizer states of experts.
bool holds_experts(const Plan& plan, const Buffer& buffer);

// One series per memory space that the class uses, device first. Time linear in the number of spans of the class.
std::vector<MemorySeries> make_series(const Document& document, ClassId who);

// The class whose device memory comes nearest to its limit.
ClassId tightest_class(const Document& document);

// [pixel]: the step at the moment of the largest sum within the pixel's time.
std::vector<std::size_t> highest_steps(const MemorySeries& series, TimeRange visible, int width);
// [pixel]: the live bytes at the moment of the largest sum within the pixel's time, so that no zoom hides a peak.
std::vector<LiveBytes> highest_per_pixel(const MemorySeries& series, TimeRange visible, int width);

struct LiveBlock {  // the blocks of one buffer that are alive at a moment
  std::string buffer = {};
  Category category = Category::Transient;
  int count = 0;     // number of blocks
  Bytes bytes = {};  // of all of them together
  bool operator==(const LiveBlock&) const = default;
};

// The blocks that make up the live bytes at a moment, largest first. Their sums by category equal those of the series.
std::vector<LiveBlock> live_blocks(const Document& document, ClassId who, Space space, Nanoseconds when);

struct MemoryScale {
  Bytes top = {};        // the value at the upper edge of the image; the lower edge is 0
  Bytes framework = {};  // framework memory, drawn at the bottom; device memory only
};

// The series as stacked columns, one per pixel, without text. The part of a category that experts take is hatched. `size`: device pixels.
QImage draw_memory(const MemorySeries& series, TimeRange visible, QSize size, const MemoryScale& scale, const Theme& theme);

}  // namespace foreshard
