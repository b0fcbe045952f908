// Lines over a common axis as a picture: what a sweep found. Made to be read in print.
#pragma once

#include <string>
#include <vector>

namespace foreshard {

struct PlotPoint {
  double x = 0, y = 0;
  double low = 0, high = 0;  // an interval around y, drawn as a bar; none where high is 0
};
struct PlotSeries {
  std::string name = {};
  std::vector<PlotPoint> points = {};  // in the order of x
};
struct Plot {
  std::string title = {}, x_name = {}, y_name = {};
  std::string interval_name = {};         // what the bars are, said below the title
  std::vector<std::string> x_words = {};  // instead of numbers: the series' x are 0, 1, 2 ...
  std::vector<PlotSeries> series = {};
};

// The y axis begins at 0. Empty series are left out.
std::string plot_svg(const Plot& plot, int width = 720, int height = 420);

}  // namespace foreshard
