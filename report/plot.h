// Lines over a common axis as a picture: what a sweep found. Made to be read in print.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace foreshard {

struct PlotSeries {
  std::string name = {};
  std::vector<std::pair<double, double>> points = {};  // x, y; in the order of x
};
struct Plot {
  std::string title = {}, x_name = {}, y_name = {};
  std::vector<std::string> x_words = {};  // instead of numbers: the series' x are 0, 1, 2 ...
  std::vector<PlotSeries> series = {};
};

// The y axis begins at 0. Empty series are left out.
std::string plot_svg(const Plot& plot, int width = 720, int height = 420);

}  // namespace foreshard
