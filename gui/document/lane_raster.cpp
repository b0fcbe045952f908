#include "gui/document/lane_raster.h"

#include <QColor>
#include <algorithm>
#include <cmath>

namespace foreshard {

static QRgb lighter(QColor colour, double share) {
  const auto part = [&](int c) { return static_cast<int>(std::lround(c + (255 - c) * share)); };
  return qRgb(part(colour.red()), part(colour.green()), part(colour.blue()));
}

Paints paints_of(const Theme& theme, Hidden hidden) {
  const std::array<QColor, kPaints> hues = {theme.of(Cell::Forward),
                                            theme.of(Cell::Backward),
                                            theme.of(Cell::WeightGradient),
                                            theme.of(Cell::Both),
                                            theme.of(Cell::Update),
                                            theme.of(Cell::Other),
                                            theme.in_line(),
                                            theme.transfer(),
                                            theme.collective(),
                                            theme.copy(),
                                            theme.of(Cell::Other),
                                            theme.dispatch(),
                                            theme.combine()};
  Paints paints{.hidden = hidden};
  const auto half = [](int a, int b) { return (a * 3 + b) / 4; };
  const QRgb grey = qRgb(half(theme.rule.red(), theme.faint.red()), half(theme.rule.green(), theme.faint.green()),
                         half(theme.rule.blue(), theme.faint.blue()));
  for (std::size_t p = 0; p < hues.size(); ++p)
    for (std::size_t s = 0; s < kShades; ++s)
      paints.colours[p * kShades + s] =
          hidden.has(static_cast<Paint>(p)) ? grey : lighter(hues[p], 0.45 * static_cast<double>(s) / (kShades - 1));
  paints.idle = theme.bubble.rgb();
  paints.empty = theme.background.rgb();
  return paints;
}

namespace {

Sums in_sums(QRgb colour) {
  return Sums{static_cast<float>(qRed(colour)), static_cast<float>(qGreen(colour)), static_cast<float>(qBlue(colour)), 1.0F};
}

// Adds a colour over [from, to), in pixels, clipped to the line.
void add_stretch(double from, double to, Sums colour, std::span<Sums> line) {
  from = std::max(from, 0.0);
  to = std::min(to, static_cast<double>(line.size()));
  if (!(from < to)) return;
  const auto first = static_cast<std::size_t>(from);
  const auto last = std::min(static_cast<std::size_t>(to), line.size() - 1);
  if (first == last) {
    line[first] += colour * static_cast<float>(to - from);
    return;
  }
  line[first] += colour * static_cast<float>(static_cast<double>(first + 1) - from);
  for (std::size_t p = first + 1; p < last; ++p) line[p] += colour;
  line[last] += colour * static_cast<float>(to - static_cast<double>(last));
}

}  // namespace

void add_slices(const Lane& lane, TimeRange visible, const Paints& paints, float weight, std::span<Sums> line) {
  const double scale =
      static_cast<double>(line.size()) / static_cast<double>(std::max<std::int64_t>(visible.length().value, 1));
  const std::int64_t t0 = visible.begin.value, t1 = visible.end.value;
  for (std::size_t i = lane.first_after(t0); i < lane.size() && lane.begin[i] < t1; ++i) {
    if (lane.end[i] <= t0) continue;
    add_stretch(static_cast<double>(lane.begin[i] - t0) * scale, static_cast<double>(lane.end[i] - t0) * scale,
                in_sums(paints.of(lane.look_of(i))) * weight, line);
  }
}

void resolve(std::span<const Sums> line, QRgb under, std::span<QRgb> out) {
  using Whole = std::int32_t __attribute__((vector_size(16)));
  const Sums below = in_sums(under), half = {0.5F, 0.5F, 0.5F, 0.5F};
  for (std::size_t p = 0; p < out.size(); ++p) {
    const float cover = line[p][3], scale = cover > 1 ? 1 / cover : 1.0F, rest = cover < 1 ? 1 - cover : 0.0F;
    const Whole colour = __builtin_convertvector(line[p] * scale + below * rest + half, Whole);
    out[p] = qRgb(colour[0], colour[1], colour[2]);
  }
}

LaneLevels::LaneLevels(const Lane& lane, TimeRange whole, const Paints& paints) : whole_(whole) {
  std::vector<Sums> line(kBase);
  add_slices(lane, whole, paints, 1, line);
  bins_.reserve(static_cast<std::size_t>(kBase) * 2);
  for (std::size_t n = kBase; n >= kLeast; n /= 2) {
    for (std::size_t i = 0; i < n; ++i) {
      const float part = line[i][3] > 1 ? 1 / line[i][3] : 1.0F;
      const auto byte = [&](int channel, float most) {
        return static_cast<int>(std::min(line[i][channel] * part * most + 0.5F, 255.0F));
      };
      bins_.push_back(qRgba(byte(0, 1), byte(1, 1), byte(2, 1), byte(3, 255)));
    }
    for (std::size_t i = 0; i < n / 2; ++i) line[i] = (line[2 * i] + line[2 * i + 1]) * 0.5F;
  }
}

bool LaneLevels::fine_enough(TimeRange visible, int pixels) const {
  if (empty() || pixels < 1) return false;
  return static_cast<double>(visible.length().value) / pixels >= static_cast<double>(whole_.length().value) / kBase;
}

// The coarsest level with two bins to a pixel, else the finest.
LaneLevels::Level LaneLevels::level_for(TimeRange all, double time_per_pixel) {
  const auto whole = static_cast<double>(all.length().value);
  Level level;
  while (level.count > kLeast) {
    const auto coarser = level.count / 2;
    if (whole / static_cast<double>(coarser) * 2 > time_per_pixel) break;
    level = {level.first + level.count, coarser};
  }
  return level;
}

void LaneLevels::add(TimeRange visible, float weight, std::span<Sums> line) const {
  const auto whole = static_cast<double>(whole_.length().value);
  const double per_pixel = static_cast<double>(visible.length().value) / static_cast<double>(line.size());
  const Level level = level_for(whole_, per_pixel);
  const double bins_per_pixel = per_pixel * static_cast<double>(level.count) / whole;
  const double start = static_cast<double>((visible.begin - whole_.begin).value) * static_cast<double>(level.count) / whole;
  const auto part = static_cast<float>(1 / bins_per_pixel) * weight;
  for (std::size_t p = 0; p < line.size(); ++p) {
    const double from = std::max(start + static_cast<double>(p) * bins_per_pixel, 0.0);
    const double to = std::min(start + static_cast<double>(p + 1) * bins_per_pixel, static_cast<double>(level.count));
    for (auto i = static_cast<std::size_t>(from); static_cast<double>(i) < to; ++i) {
      const double share = std::min(to, static_cast<double>(i + 1)) - std::max(from, static_cast<double>(i));
      const QRgb bin = bins_[level.first + i];
      const Sums colour = {static_cast<float>(qRed(bin)), static_cast<float>(qGreen(bin)), static_cast<float>(qBlue(bin)),
                           static_cast<float>(qAlpha(bin)) / 255.0F};
      line[p] += colour * (static_cast<float>(share) * part);
    }
  }
}

LaneLevels::Bins LaneLevels::bins_for(TimeRange all, TimeRange visible, int pixels) {
  const auto whole = static_cast<double>(all.length().value);
  const double per_pixel = static_cast<double>(visible.length().value) / pixels;
  const Level level = level_for(all, per_pixel);
  const double bins_per_pixel = per_pixel * static_cast<double>(level.count) / whole;
  const double start = static_cast<double>((visible.begin - all.begin).value) * static_cast<double>(level.count) / whole;
  Bins bins{level.first, {}};
  const auto last = static_cast<std::int64_t>(level.count);
  std::int64_t least = 0;
  for (int p = 0; p <= pixels; ++p) {
    const auto at = static_cast<std::int64_t>(std::max(start + p * bins_per_pixel, 0.0));
    bins.starts.push_back(static_cast<std::int32_t>(std::clamp(at, std::min(least, last), last)));
    least = bins.starts.back() + 1;
  }
  return bins;
}

// Each half of a 32-bit word holds one channel, so one addition sums two channels.
void LaneLevels::draw(const Bins& bins, QRgb under, std::span<QRgb> out) const {
  const QRgb* level = &bins_[bins.first];
  constexpr std::uint32_t even = 0x00ff00ffU;
  for (std::size_t p = 0; p < out.size(); ++p) {
    const std::int32_t from = bins.starts[p], to = bins.starts[p + 1];
    if (from == to) {
      out[p] = under;
      continue;
    }
    std::uint32_t red_blue = 0, alpha_green = 0;
    for (std::int32_t i = from; i < to; ++i) {
      red_blue += level[i] & even;
      alpha_green += (level[i] >> 8U) & even;
    }
    const std::uint32_t part = 65536U / static_cast<std::uint32_t>(to - from) + 1;  // of 1 / n; n is at most a few dozen
    const auto channel = [&](std::uint32_t sum) { return static_cast<int>((sum & 0xffffU) * part >> 16U); };
    const int red = channel(red_blue >> 16U), green = channel(alpha_green), blue = channel(red_blue),
              alpha = channel(alpha_green >> 16U);
    if (alpha >= 255) {
      out[p] = qRgb(red, green, blue);
      continue;
    }
    const auto over = [&](int colour, int below) { return std::min(colour + (below * (255 - alpha) + 127) / 255, 255); };
    out[p] = qRgb(over(red, qRed(under)), over(green, qGreen(under)), over(blue, qBlue(under)));
  }
}

std::vector<LaneLevels> make_levels(const Lanes& lanes, TimeRange whole, const Paints& paints) {
  std::vector<LaneLevels> levels;
  levels.reserve(lanes.all.size());
  for (const Lane& lane : lanes.all)
    levels.push_back(lane.size() < kLeastForLevels ? LaneLevels() : LaneLevels(lane, whole, paints));
  return levels;
}

}  // namespace foreshard
