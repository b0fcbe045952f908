// The errors of the two estimates of a search against the simulator.
#include <algorithm>
#include <cmath>

#include "cli/parts/search_output.h"
#include "core/base/quantile.h"
#include "report/words/text_table.h"
#include "validation/validation.h"

namespace foreshard {

namespace {

constexpr std::size_t kShown = 3;  // strategies with the largest errors that are listed

struct Residual {
  const Candidate* candidate = nullptr;
  double screen = 0, refine = 0;
};

std::vector<Residual> residuals(const SearchResult& result, const std::vector<std::optional<double>>& simulated) {
  std::vector<Residual> all;
  for (std::size_t i = 0; i < simulated.size(); ++i) {
    if (!simulated[i]) continue;
    const Candidate& candidate = result.sample[i];
    all.push_back({&candidate, candidate.screened.time / *simulated[i] - 1, candidate.estimate.time.value / *simulated[i] - 1});
  }
  return all;
}

std::vector<std::string> row(const std::string& tier, const std::vector<double>& errors) {
  std::vector<std::string> cells = {tier, std::to_string(errors.size())};
  for (const double share : {0.5, 0.9, 0.95, 1.0})
    cells.push_back(errors.empty() ? "-" : in_percent(quantile(errors, share), 2));
  return cells;
}

std::string farthest(const char* tier, std::vector<Residual> all, double Residual::*error) {
  if (all.empty()) return {};
  std::stable_sort(all.begin(), all.end(),
                   [&](const Residual& a, const Residual& b) { return std::abs(a.*error) > std::abs(b.*error); });
  std::string out = std::string("\n  Farthest off, ") + tier + ":\n";
  for (std::size_t i = 0; i < std::min(kShown, all.size()); ++i)
    out += "    " + std::string(all[i].*error > 0 ? "+" : "") + in_percent(all[i].*error, 2) + "  " +
           short_name(*all[i].candidate) + "\n";
  return out;
}

}  // namespace

std::string residuals_text(const SearchResult& result, const std::vector<std::optional<double>>& simulated) {
  const std::vector<Residual> all = residuals(result, simulated);
  TextTable table{
      .columns = {{"against the simulator", Align::Left}, {"strategies"}, {"median"}, {"90 %"}, {"95 %"}, {"worst"}}};
  const auto rows = [&](const char* tier, double Residual::*error) {
    std::vector<double> errors;
    for (const Residual& each : all) errors.push_back(std::abs(each.*error));
    table.rows.push_back(row(tier, errors));
  };
  rows("screen", &Residual::screen);
  rows("refine", &Residual::refine);
  return "\nErrors over " + std::to_string(all.size()) + " strategies from all over the space:\n\n" + table.text(false) +
         farthest("screen", all, &Residual::screen) + farthest("refine", all, &Residual::refine);
}

}  // namespace foreshard
