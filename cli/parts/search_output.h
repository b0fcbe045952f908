// The output of `search`: a table with the reasons for the choice, JSON, or CSV.
#pragma once

#include <functional>
#include <string>

#include "cli/job/job.h"
#include "core/json/json.h"
#include "strategy/search/search.h"

namespace foreshard {

std::string search_text(const SearchResult& result, const Job& job, const SearchOptions& options, int rows);
struct SearchJson {
  int rows = 10;                              // candidates written
  double wall_s = 0;                          // wall time of the search, seconds
  std::function<void(JsonWriter&)> add = {};  // writes further keys
};
std::string search_json(const SearchResult& result, const Job& job, const SearchOptions& options, const SearchJson& how);
// {"candidate": {...}}: an element of "results" of search_json, without a rank, for a candidate found while the search runs.
std::string candidate_json(const Job& job, const Candidate& candidate);
// "tp 8, pp 4, dp 128, micro-batch 3, 1f1b, zero 1".
std::string short_name(const Candidate& candidate);
// Errors of screen and refine against the simulator. `simulated`: seconds for each strategy of SearchResult::sample; empty where the
// simulation was interrupted.
std::string residuals_text(const SearchResult& result, const std::vector<std::optional<double>>& simulated);
std::string search_csv(const SearchResult& result, int rows);

}  // namespace foreshard
