#include "report/plot.h"

#include <algorithm>
#include <cstdio>

#include "report/palette.h"
#include "report/svg_canvas.h"
#include "report/svg_frame.h"

namespace foreshard {

namespace {

constexpr double kLeft = 70, kRight = 20, kTop = 44, kBottom = 52, kText = 12;

std::string shown(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4g", value);
  return digits;
}

// Okabe-Ito hues, as everywhere.
Colour colour_of(std::size_t series) {
  static const std::vector<Colour> colours = {{0, 114, 178},   {213, 94, 0},   {0, 158, 115},
                                              {204, 121, 167}, {86, 180, 233}, {230, 159, 0}};
  return colours[series % colours.size()];
}

class Drawing {
 public:
  Drawing(const Plot& plot, int width, int height) : plot_(plot), width_(width), height_(height) {
    bool first = true;
    for (const PlotSeries& series : plot.series)
      for (const auto& [x, y] : series.points) {
        least_ = first ? x : std::min(least_, x), most_ = first ? x : std::max(most_, x);
        highest_ = std::max(highest_, y), first = false;
      }
    if (most_ <= least_) least_ -= 1, most_ += 1;
    if (highest_ <= 0) highest_ = 1;
  }

  std::string svg() {
    axes();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) lines(plot_.series[i], colour_of(i));
    legend();
    return canvas_.document(width_, height_, plot_.title);
  }

 private:
  double x(double value) const { return kLeft + (value - least_) / (most_ - least_) * (width_ - kLeft - kRight); }
  double y(double value) const { return height_ - kBottom - value / highest_ * (height_ - kTop - kBottom); }

  void axes() {
    canvas_.text(kLeft, 18, plot_.title, kText + 2, kInk, Anchor::Start, true);
    const Ticks marks = ticks(highest_, 6);
    for (int i = 0; i < marks.count; ++i) {
      const double value = i * marks.step;
      canvas_.line(kLeft, y(value), width_ - kRight, y(value), kRule);
      canvas_.text(kLeft - 6, y(value) + 4, shown(value), kText, kInk, Anchor::End);
    }
    canvas_.text(kLeft - 60, kTop - 8, plot_.y_name, kText, kInk);
    canvas_.text((kLeft + width_ - kRight) / 2, height_ - 10, plot_.x_name, kText, kInk, Anchor::Middle);
    if (!plot_.x_words.empty()) {
      for (std::size_t i = 0; i < plot_.x_words.size(); ++i)
        canvas_.text(x(static_cast<double>(i)), height_ - kBottom + 18, plot_.x_words[i], kText, kInk, Anchor::Middle);
      return;
    }
    std::vector<double> values;
    for (const PlotSeries& series : plot_.series)
      for (const auto& point : series.points) values.push_back(point.first);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (const double value : values) canvas_.text(x(value), height_ - kBottom + 18, shown(value), kText, kInk, Anchor::Middle);
  }

  void lines(const PlotSeries& series, Colour colour) {
    canvas_.begin_group(series.name);
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const auto& [px, py] = series.points[i];
      canvas_.rect({x(px) - 3, y(py) - 3, 6, 6}, colour);
      if (i > 0) canvas_.line(x(series.points[i - 1].first), y(series.points[i - 1].second), x(px), y(py), colour, 2);
    }
    canvas_.end_group();
  }

  void legend() {
    if (plot_.series.size() < 2) return;
    std::vector<Swatch> swatches;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) swatches.push_back({plot_.series[i].name, hex(colour_of(i))});
    draw_legend(canvas_, kLeft, 26, swatches);
  }

  const Plot& plot_;
  double width_, height_, least_ = 0, most_ = 0, highest_ = 0;
  SvgCanvas canvas_ = {};
};

}  // namespace

std::string plot_svg(const Plot& plot, int width, int height) {
  Plot drawn = plot;
  std::erase_if(drawn.series, [](const PlotSeries& series) { return series.points.empty(); });
  return Drawing(drawn, width, height).svg();
}

}  // namespace foreshard
