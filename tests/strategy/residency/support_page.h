// Rows of the tables of docs/offload-planning.md, whose figures are those of the tests.
#pragma once

#include <cstdio>
#include <fstream>
#include <string>

namespace foreshard {

// What follows the first cell, "" without such a row: "| a | b | c |" of "a": "b | c |".
inline std::string offload_page_row(const std::string& first_cell) {
  std::ifstream page(std::string(FORESHARD_SOURCE) + "/docs/offload-planning.md");
  const std::string start = "| " + first_cell + " | ";
  for (std::string line; std::getline(page, line);)
    if (line.starts_with(start)) return line.substr(start.size());
  return "";
}

struct PlanQuality {  // of a planner's times over the best ones
  int instances = 0, exact = 0;
  double sum = 0, worst = 1;

  void add(double ratio) {
    ++instances;
    exact += ratio <= 1 + 1e-9 ? 1 : 0;
    sum += ratio;
    worst = ratio > worst ? ratio : worst;
  }
  double mean() const { return sum / instances; }
  std::string row() const {
    char text[96];
    std::snprintf(text, sizeof text, "%d | %.4f | %.3f | %.1f %% |", instances, mean(), worst, 100.0 * exact / instances);
    return text;
  }
};

}  // namespace foreshard
