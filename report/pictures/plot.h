// Draws line series over a common x axis as an SVG picture, for the results of a sweep. The picture is made for print.
#pragma once

#include <string>
#include <vector>

namespace foreshard {

struct PlotPoint {
  double x = 0, y = 0;
  double low = 0, high = 0;  // ends of an interval around y, drawn as an error bar; high = 0: no bar
};
struct PlotSeries {
  std::string name = {};
  std::vector<PlotPoint> points = {};  // in the order of x
};
struct Plot {
  std::string title = {}, x_name = {}, y_name = {};
  std::string interval_name = {};         // what the error bars mean, written below the title
  std::vector<std::string> x_words = {};  // labels of x = 0, 1, 2 ... instead of numbers; empty: numbers
  std::vector<PlotSeries> series = {};
};

// The SVG text, `width` x `height` pixels. The y axis begins at 0. Series without points are left out.
std::string plot_svg(const Plot& plot, int width = 720, int height = 420);

}  // namespace foreshard
