// The errors of the two estimates of a search against the simulator.
#include <algorithm>
#include <array>
#include <cmath>

#include "cli/verbs/search_output.h"
#include "report/validation/validation.h"
#include "report/words/text_table.h"

namespace foreshard {

namespace {

constexpr std::size_t kShown = 3;  // of those that are farthest off

struct Residual {
  const Candidate* candidate = nullptr;
  double screen = 0, refine = 0;
  bool shared = false;
};

std::vector<Residual> residuals(const SearchResult& result, const Job& job,
                                const std::vector<std::optional<double>>& simulated) {
  std::vector<Residual> all;
  for (std::size_t i = 0; i < simulated.size(); ++i) {
    if (!simulated[i]) continue;
    const Candidate& candidate = result.sample[i];
    const auto answer = lower(job.model, job.cluster, candidate.strategy, {.ignore_memory = true, .profile = job.measured()});
    all.push_back({&candidate, candidate.screened.time / *simulated[i] - 1, candidate.estimate.time.value / *simulated[i] - 1,
                   shares_links(std::get<Lowered>(answer).plan, job.cluster)});
  }
  return all;
}

std::vector<std::string> row(const std::string& tier, const std::string& links, const std::vector<double>& errors) {
  std::vector<std::string> cells = {tier, links, std::to_string(errors.size())};
  for (const double share : {0.5, 0.9, 0.95, 1.0})
    cells.push_back(errors.empty() ? "-" : in_percent(quantile(errors, share), 2));
  return cells;
}

std::string farthest(const char* tier, std::vector<Residual> all, double Residual::*error, bool apart = false) {
  if (apart) std::erase_if(all, [](const Residual& each) { return each.shared; });
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

std::string residuals_text(const SearchResult& result, const Job& job, const std::vector<std::optional<double>>& simulated) {
  const std::vector<Residual> all = residuals(result, job, simulated);
  TextTable table{.columns = {{"against the simulator", Align::Left},
                              {"links", Align::Left},
                              {"strategies"},
                              {"median"},
                              {"90 %"},
                              {"95 %"},
                              {"worst"}}};
  const auto rows = [&](const char* tier, double Residual::*error) {
    std::array<std::vector<double>, 3> errors;  // all, not shared, shared
    for (const Residual& each : all) {
      errors[0].push_back(std::abs(each.*error));
      errors[each.shared ? 2 : 1].push_back(std::abs(each.*error));
    }
    const char* const links[] = {"all", "not shared", "shared"};
    for (std::size_t i = 0; i < errors.size(); ++i) table.rows.push_back(row(i == 0 ? tier : "", links[i], errors[i]));
  };
  rows("screen", &Residual::screen);
  rows("refine", &Residual::refine);
  return "\nErrors over " + std::to_string(all.size()) + " strategies from all over the space:\n\n" + table.text(false) +
         farthest("screen", all, &Residual::screen) + farthest("refine", all, &Residual::refine) +
         farthest("refine, no link shared", all, &Residual::refine, true);
}

}  // namespace foreshard
