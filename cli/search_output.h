// What `search` prints: a table with the reasons, JSON, or CSV.
#pragma once

#include <string>

#include "cli/job.h"
#include "strategy/search.h"

namespace foreshard {

std::string search_text(const SearchResult& result, const Job& job, const SearchOptions& options, int rows);
std::string search_json(const SearchResult& result, const Job& job, const SearchOptions& options, int rows, double wall_s);
std::string search_csv(const SearchResult& result, int rows);

}  // namespace foreshard
