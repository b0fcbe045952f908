#include "report/pictures/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/pictures/svg_canvas.h"
#include "report/pictures/svg_frame.h"
#include "report/words/palette.h"
#include "report/words/text_table.h"

namespace foreshard {

namespace {

constexpr double kLeast = 70, kBottom = 52, kText = 12, kLine = 20;

std::string shown(double value) {
  return value == std::round(value) ? count_text(std::llround(value)) : fmt::format("{:.4g}", value);
}

// Okabe-Ito hues, as in report/words/palette.h.
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
      for (const PlotPoint& point : series.points) {
        least_ = first ? point.x : std::min(least_, point.x), most_ = first ? point.x : std::max(most_, point.x);
        highest_ = std::max({highest_, point.y, point.high}), first = false;
      }
    if (most_ <= least_) least_ -= 1, most_ += 1;
    if (highest_ <= 0) highest_ = 1;
    marks_ = ticks(highest_, 6);
    if (marks_.count * marks_.step < highest_) ++marks_.count;
    highest_ = marks_.count * marks_.step;  // the topmost line of the grid
    name_columns();
    make_room();
  }

  std::string svg() {
    heading();
    grid();
    for (const auto& [at, words] : columns_) canvas_.text(x(at), height_ - kBottom + 18, words, kText, kInk, Anchor::Middle);
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      // Offset of this series' error bars, so that those at the same x do not overlap.
      const double aside = 5 * (static_cast<double>(i) - (static_cast<double>(plot_.series.size()) - 1) / 2);
      lines(plot_.series[i], colour_of(i), aside);
    }
    return canvas_.document(width_, height_, plot_.title);
  }

 private:
  double x(double value) const { return left_ + (value - least_) / (most_ - least_) * (width_ - left_ - right_); }
  double y(double value) const { return height_ - kBottom - value / highest_ * (height_ - top_ - kBottom); }

  void name_columns() {
    for (std::size_t i = 0; i < plot_.x_words.size(); ++i) columns_.emplace(static_cast<double>(i), plot_.x_words[i]);
    if (!plot_.x_words.empty()) return;
    for (const PlotSeries& series : plot_.series)
      for (const PlotPoint& point : series.points) columns_.emplace(point.x, shown(point.x));
  }

  // Margins for the labels beside the axes, and one line each for the title, the intervals, the legend and the axis name.
  void make_room() {
    left_ = kLeast, right_ = 20;
    for (int i = 0; i <= marks_.count; ++i) left_ = std::max(left_, text_width(shown(i * marks_.step), kText) + 16);
    if (!columns_.empty()) right_ = std::max(right_, text_width(columns_.rbegin()->second, kText) / 2 + 6);
    top_ = 44 + kLine * ((plot_.interval_name.empty() ? 0 : 1) + (plot_.series.size() < 2 ? 0 : 1));
  }

  void heading() {
    double at = 18;
    canvas_.text(left_, at, plot_.title, kText + 2, kInk, Anchor::Start, true);
    if (!plot_.interval_name.empty()) canvas_.text(left_, at += kLine, plot_.interval_name, kText - 1, kFaint);
    if (plot_.series.size() < 2) return;
    std::vector<Swatch> swatches;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) swatches.push_back({plot_.series[i].name, hex(colour_of(i))});
    draw_legend(canvas_, left_, at + kLine, swatches);
  }

  void grid() {
    for (int i = 0; i <= marks_.count; ++i) {
      const double value = i * marks_.step;
      canvas_.line(left_, y(value), width_ - right_, y(value), kRule);
      canvas_.text(left_ - 6, y(value) + 4, shown(value), kText, kInk, Anchor::End);
    }
    canvas_.text(8, top_ - 10, plot_.y_name, kText, kInk);
    canvas_.text((left_ + width_ - right_) / 2, height_ - 10, plot_.x_name, kText, kInk, Anchor::Middle);
  }

  void lines(const PlotSeries& series, Colour colour, double aside) {
    canvas_.begin_group(series.name);
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const PlotPoint& point = series.points[i];
      const double px = x(point.x), py = y(point.y);
      if (point.high > 0) {
        const double bar = px + aside;
        canvas_.line(bar, y(point.low), bar, y(point.high), colour);
        for (const double end : {point.low, point.high}) canvas_.line(bar - 3, y(end), bar + 3, y(end), colour);
      }
      canvas_.rect({px - 3, py - 3, 6, 6}, colour);
      if (i > 0) canvas_.line(x(series.points[i - 1].x), y(series.points[i - 1].y), px, py, colour, 2);
    }
    canvas_.end_group();
  }

  const Plot& plot_;
  double width_, height_, least_ = 0, most_ = 0, highest_ = 0, left_ = 0, right_ = 0, top_ = 0;
  Ticks marks_ = {};
  std::map<double, std::string> columns_ = {};  // words below the x axis
  SvgCanvas canvas_ = {};
};

}  // namespace

std::string plot_svg(const Plot& plot, int width, int height) {
  Plot drawn = plot;
  std::erase_if(drawn.series, [](const PlotSeries& series) { return series.points.empty(); });
  return Drawing(drawn, width, height).svg();
}

}  // namespace foreshard
