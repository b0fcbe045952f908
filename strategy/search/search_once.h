// One search. Internal to strategy/.
#pragma once

#include <variant>

#include "strategy/search/search.h"

namespace foreshard {

// As `search`, but only of strategies that fit with SearchOptions::least_probability, and a bug of ours in a candidate is thrown unless
// SearchOptions::failed is set.
std::variant<SearchResult, Infeasible> search_once(const Model& model, const Cluster& cluster, const SearchOptions& options);

}  // namespace foreshard
