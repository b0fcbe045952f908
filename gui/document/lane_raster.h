// Lane raster: pure functions from a lane and a stretch of time to one line of pixels. A pixel's colour is the mean, by area,
// of everything in it, idle time included, so the share of idle time stays right at any zoom. No fonts, no widgets.
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

struct Hidden {  // kinds that a person hid, as bits
  std::uint16_t paints = 0;
  std::uint8_t causes = 0;
  bool has(Paint paint) const { return (paints >> static_cast<unsigned>(paint) & 1U) != 0; }
  bool has(BubbleCause cause) const { return (causes >> static_cast<unsigned>(cause) & 1U) != 0; }
  bool operator==(const Hidden&) const = default;
};

struct Paints {  // [Look without `first`]: colour of a slice
  std::array<QRgb, static_cast<std::size_t>(kPaints)* kShades> colours = {};
  QRgb idle = 0;   // time without a slice on a compute lane
  QRgb empty = 0;  // the same on other lanes
  Hidden hidden = {};
  QRgb of(Look look) const { return colours[static_cast<std::size_t>(look.paint) * kShades + look.shade]; }
  QRgb under(LaneKind kind) const { return kind == LaneKind::Compute ? idle : empty; }
  bool operator==(const Paints&) const = default;
};
Paints paints_of(const Theme& theme, Hidden hidden = {});  // what is hidden is grey

// A line in sums: red, green and blue weighted by cover, and cover itself, 0..1 per pixel (above 1 where slices overlap). Four
// floats in one register: a million slices are drawn in one frame.
using Sums = float __attribute__((vector_size(16)));

// Adds the slices of the lane in [visible) to the line, `weight` times.
void add_slices(const Lane& lane, TimeRange visible, const Paints& paints, float weight, std::span<Sums> line);
// The line as pixels over `under`.
void resolve(std::span<const Sums> line, QRgb under, std::span<QRgb> out);

// Levels of detail of a lane: 8192 bins over the whole time, then halves down to 64.
class LaneLevels {
 public:
  static constexpr int kBase = 8192, kLeast = 64;
  LaneLevels() = default;
  LaneLevels(const Lane& lane, TimeRange whole, const Paints& paints);

  bool empty() const { return bins_.empty(); }
  bool fine_enough(TimeRange visible, int pixels) const;  // a bin of the base is at most a pixel wide
  void add(TimeRange visible, float weight, std::span<Sums> line) const;

  // Which bins make up which pixel: the same for all lanes of a frame.
  struct Bins {
    std::size_t first = 0;                  // of the level
    std::vector<std::int32_t> starts = {};  // [pixel], and one more; equal: beyond the end
  };
  static Bins bins_for(TimeRange whole, TimeRange visible, int pixels);
  // The line of this lane alone over `under`: whole bins, at least one per pixel. Several times as quick as add and resolve.
  void draw(const Bins& bins, QRgb under, std::span<QRgb> out) const;

 private:
  struct Level {
    std::size_t first = 0, count = kBase;  // of bins_
  };
  static Level level_for(TimeRange whole, double time_per_pixel);
  TimeRange whole_ = {};
  std::vector<QRgb> bins_ = {};  // level by level, finest first; colours weighted by cover, cover 0..255 in the alpha
};

// [lane]; none for lanes so short that their slices are as quick to draw. Takes about 40 ms for a million slices: not in the
// thread of the window.
inline constexpr std::size_t kLeastForLevels = 512;
std::vector<LaneLevels> make_levels(const Lanes& lanes, TimeRange whole, const Paints& paints);

}  // namespace foreshard
