// Lane raster: pure functions that draw a range of time of one lane as one line of pixels. The colour of a pixel is the time-weighted
// mean of everything in it, idle time included, so the share of idle time stays right at any zoom. No fonts, no widgets.
#pragma once

#include <QRgb>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "gui/document/lanes.h"
#include "gui/document/time_axis.h"
#include "gui/widgets/theme.h"

namespace foreshard {

struct Hidden {  // kinds of work (paints) and causes of idle time that the user hid, one bit each
  std::uint16_t paints = 0;
  std::uint8_t causes = 0;
  bool has(Paint paint) const { return (paints >> static_cast<unsigned>(paint) & 1U) != 0; }
  bool has(BubbleCause cause) const { return (causes >> static_cast<unsigned>(cause) & 1U) != 0; }
  bool operator==(const Hidden&) const = default;
};

struct Paints {  // colours of slices, by paint and shade
  std::array<QRgb, static_cast<std::size_t>(kPaints)* kShades> colours = {};
  QRgb idle = 0;   // time without a slice on a compute lane
  QRgb empty = 0;  // the same on other lanes
  Hidden hidden = {};
  QRgb of(Look look) const { return colours[static_cast<std::size_t>(look.paint) * kShades + look.shade]; }
  QRgb under(LaneKind kind) const { return kind == LaneKind::Compute ? idle : empty; }
  bool operator==(const Paints&) const = default;
};
Paints paints_of(const Theme& theme, Hidden hidden = {});  // hidden kinds are grey

// What is summed for one pixel: red, green and blue (0..255) weighted by cover, and the cover itself. The cover is the share of the
// pixel's time that slices occupy; it exceeds 1 where they overlap. Four floats fit one vector register.
using Sums = float __attribute__((vector_size(16)));

// Adds the slices of the lane in `visible`, multiplied by `weight`, to `line`, which has one entry per pixel.
void add_slices(const Lane& lane, TimeRange visible, const Paints& paints, float weight, std::span<Sums> line);
// Turns the sums into pixels; the part of a pixel that no slice covers has the colour `under`.
void resolve(std::span<const Sums> line, QRgb under, std::span<QRgb> out);

// Levels of detail of a lane, each a row of bins over the whole time: 8192 bins, then 4096 and so on down to 64.
class LaneLevels {
 public:
  static constexpr int kBase = 8192, kLeast = 64;
  LaneLevels() = default;
  LaneLevels(const Lane& lane, TimeRange whole, const Paints& paints);

  bool empty() const { return bins_.empty(); }
  bool fine_enough(TimeRange visible, int pixels) const;                  // a bin of the finest level is at most one pixel wide
  void add(TimeRange visible, float weight, std::span<Sums> line) const;  // add_slices from the bins

  // Which bins form which pixel; equal for all lanes of a frame.
  struct Bins {
    std::size_t first = 0;                  // index of the level's first bin in bins_
    std::vector<std::int32_t> starts = {};  // [pixel + 1]: first bin of each pixel in the level; no bins: beyond the run
  };
  static Bins bins_for(TimeRange whole, TimeRange visible, int pixels);
  // Draws only this lane over `under`. Bins are not split between pixels, and a pixel has at least one; so it is several times as fast
  // as add and resolve.
  void draw(const Bins& bins, QRgb under, std::span<QRgb> out) const;

 private:
  struct Level {
    std::size_t first = 0, count = kBase;  // bins [first, first + count) of bins_
  };
  static Level level_for(TimeRange whole, double time_per_pixel);
  TimeRange whole_ = {};
  std::vector<QRgb> bins_ = {};  // level by level, finest first; colours premultiplied by cover, cover 0..255 as alpha
};

// [lane]: its levels; empty for a lane with fewer than kLeastForLevels slices, which are as fast to draw directly. Takes about 40 ms for
// a million slices: call it in a worker thread.
inline constexpr std::size_t kLeastForLevels = 512;
std::vector<LaneLevels> make_levels(const Lanes& lanes, TimeRange whole, const Paints& paints);

}  // namespace foreshard
