#include "gui/lane_raster.h"

#include <QColor>
#include <algorithm>
#include <cmath>

namespace foreshard {

static QRgb lighter(QColor colour, double share) {
  const auto part = [&](int c) { return static_cast<int>(std::lround(c + (255 - c) * share)); };
  return qRgb(part(colour.red()), part(colour.green()), part(colour.blue()));
}

Paints paints_of(const Theme& theme) {
  const std::array<QColor, kPaints> hues = {theme.of(Cell::Forward), theme.of(Cell::Backward), theme.of(Cell::WeightGradient),
                                            theme.of(Cell::Update),  theme.of(Cell::Other),    theme.in_line(),
                                            theme.transfer(),        theme.collective(),       theme.copy(),
                                            theme.of(Cell::Other)};
  Paints paints;
  for (std::size_t p = 0; p < hues.size(); ++p)
    for (std::size_t s = 0; s < kShades; ++s)
      paints.colours[p * kShades + s] = lighter(hues[p], 0.45 * static_cast<double>(s) / (kShades - 1));
  paints.idle = theme.bubble.rgb();
  paints.empty = theme.background.rgb();
  return paints;
}

namespace {

void add(Sums& pixel, QRgb colour, float cover) {
  pixel.red += cover * static_cast<float>(qRed(colour));
  pixel.green += cover * static_cast<float>(qGreen(colour));
  pixel.blue += cover * static_cast<float>(qBlue(colour));
  pixel.cover += cover;
}

// [from, to) in pixels, cut to the line.
void add_stretch(double from, double to, QRgb colour, float weight, std::span<Sums> line) {
  from = std::max(from, 0.0);
  to = std::min(to, static_cast<double>(line.size()));
  if (!(from < to)) return;
  const auto first = static_cast<std::size_t>(from);
  const auto last = std::min(static_cast<std::size_t>(to), line.size() - 1);
  if (first == last) return add(line[first], colour, weight * static_cast<float>(to - from));
  add(line[first], colour, weight * static_cast<float>(static_cast<double>(first + 1) - from));
  for (std::size_t p = first + 1; p < last; ++p) add(line[p], colour, weight);
  add(line[last], colour, weight * static_cast<float>(to - static_cast<double>(last)));
}

}  // namespace

void add_slices(const Lane& lane, TimeRange visible, const Paints& paints, float weight, std::span<Sums> line) {
  const double scale =
      static_cast<double>(line.size()) / static_cast<double>(std::max<std::int64_t>(visible.length().value, 1));
  const std::int64_t t0 = visible.begin.value, t1 = visible.end.value;
  for (std::size_t i = lane.first_after(t0); i < lane.size() && lane.begin[i] < t1; ++i) {
    if (lane.end[i] <= t0) continue;
    add_stretch(static_cast<double>(lane.begin[i] - t0) * scale, static_cast<double>(lane.end[i] - t0) * scale,
                paints.of(lane.look_of(i)), weight, line);
  }
}

void resolve(std::span<const Sums> line, QRgb under, std::span<QRgb> out) {
  const auto r = static_cast<float>(qRed(under)), g = static_cast<float>(qGreen(under)), b = static_cast<float>(qBlue(under));
  for (std::size_t p = 0; p < out.size(); ++p) {
    const Sums& sums = line[p];
    const float scale = sums.cover > 1 ? 1 / sums.cover : 1.0F, rest = std::max(0.0F, 1 - sums.cover);
    out[p] = qRgb(static_cast<int>(sums.red * scale + rest * r + 0.5F), static_cast<int>(sums.green * scale + rest * g + 0.5F),
                  static_cast<int>(sums.blue * scale + rest * b + 0.5F));
  }
}

LaneLevels::LaneLevels(const Lane& lane, TimeRange whole, const Paints& paints) : whole_(whole) {
  std::vector<Sums> line(kBase);
  add_slices(lane, whole, paints, 1, line);
  bins_.reserve(static_cast<std::size_t>(kBase) * 2);
  for (std::size_t n = kBase; n >= kLeast; n /= 2) {
    for (std::size_t i = 0; i < n; ++i) {
      const float part = line[i].cover > 0 ? 1 / line[i].cover : 0.0F;
      const auto byte = [](float value) { return static_cast<std::uint8_t>(std::min(value + 0.5F, 255.0F)); };
      bins_.push_back({byte(line[i].red * part), byte(line[i].green * part), byte(line[i].blue * part),
                       byte(std::min(line[i].cover, 1.0F) * 255)});
    }
    for (std::size_t i = 0; i < n / 2; ++i) {
      const Sums &a = line[2 * i], &b = line[2 * i + 1];
      line[i] = {(a.red + b.red) / 2, (a.green + b.green) / 2, (a.blue + b.blue) / 2, (a.cover + b.cover) / 2};
    }
  }
}

bool LaneLevels::fine_enough(TimeRange visible, int pixels) const {
  if (empty() || pixels < 1) return false;
  return static_cast<double>(visible.length().value) / pixels >= static_cast<double>(whole_.length().value) / kBase;
}

void LaneLevels::add(TimeRange visible, float weight, std::span<Sums> line) const {
  const auto whole = static_cast<double>(whole_.length().value);
  const double per_pixel = static_cast<double>(visible.length().value) / static_cast<double>(line.size());
  std::size_t count = kBase, first = 0;  // of the coarsest level whose bins are not wider than a pixel
  while (count > kLeast && whole / static_cast<double>(count / 2) <= per_pixel) first += count, count /= 2;
  const double bins_per_pixel = per_pixel * static_cast<double>(count) / whole;
  const double start = static_cast<double>((visible.begin - whole_.begin).value) * static_cast<double>(count) / whole;
  const auto part = static_cast<float>(1 / bins_per_pixel) * weight / 255.0F;
  for (std::size_t p = 0; p < line.size(); ++p) {
    const double from = std::max(start + static_cast<double>(p) * bins_per_pixel, 0.0);
    const double to = std::min(start + static_cast<double>(p + 1) * bins_per_pixel, static_cast<double>(count));
    for (auto i = static_cast<std::size_t>(from); static_cast<double>(i) < to; ++i) {
      const double share = std::min(to, static_cast<double>(i + 1)) - std::max(from, static_cast<double>(i));
      const Bin& bin = bins_[first + i];
      const float cover = static_cast<float>(share) * part * static_cast<float>(bin.cover);
      line[p].red += cover * static_cast<float>(bin.red);
      line[p].green += cover * static_cast<float>(bin.green);
      line[p].blue += cover * static_cast<float>(bin.blue);
      line[p].cover += cover;
    }
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
