// What `search` prints: a table with the reasons, JSON, or CSV.
#pragma once

#include <functional>
#include <string>

#include "cli/job/job.h"
#include "core/json/json.h"
#include "strategy/search/search.h"

namespace foreshard {

std::string search_text(const SearchResult& result, const Job& job, const SearchOptions& options, int rows);
struct SearchJson {
  int rows = 10;
  double wall_s = 0;
  std::function<void(JsonWriter&)> add = {};  // further keys
};
std::string search_json(const SearchResult& result, const Job& job, const SearchOptions& options, const SearchJson& how);
// {"candidate": {...}} as in the list "results" of search_json, its rank not yet known.
std::string candidate_json(const Job& job, const Candidate& candidate);
// "tp 8, pp 4, dp 128, micro-batch 3, 1f1b, zero 1".
std::string short_name(const Candidate& candidate);
// Errors of screen and refine against the simulator over SearchResult::sample; empty where it was interrupted. Apart: strategies
// whose communications share links, and those whose do not.
std::string residuals_text(const SearchResult& result, const std::vector<std::optional<double>>& simulated);
std::string search_csv(const SearchResult& result, int rows);

}  // namespace foreshard
