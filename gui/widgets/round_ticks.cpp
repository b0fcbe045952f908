#include "gui/widgets/round_ticks.h"

#include <cmath>

namespace foreshard {

std::vector<double> round_ticks(double from, double to, int most) {
  std::vector<double> ticks;
  if (!(to > from) || most < 1) return ticks;
  double step = std::pow(10.0, std::floor(std::log10((to - from) / most)));
  for (const double factor : {2.0, 2.5, 2.0})  // 1, 2, 5, 10
    if ((to - from) / step > most) step *= factor;
  for (double tick = std::ceil(from / step) * step; tick <= to + step * 1e-9; tick += step)
    ticks.push_back(std::abs(tick) < step * 1e-9 ? 0 : tick);
  return ticks;
}

}  // namespace foreshard
