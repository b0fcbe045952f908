// search: first what fits, then, where nothing does, what may fit.
#include <algorithm>

#include "strategy/search/search.h"
#include "strategy/search/search_failures.h"
#include "strategy/search/search_once.h"

namespace foreshard {

std::variant<SearchResult, Infeasible> search(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  const auto found = [&](const SearchOptions& how) {
    return collecting_failures(how, [&](const SearchOptions& collecting) { return search_once(model, cluster, collecting); });
  };
  auto answer = found(options);
  const bool stopped = options.cancel && options.cancel->load();
  if (std::holds_alternative<SearchResult>(answer) || !names_framework(options.base) || stopped) return answer;
  SearchOptions wider = options;
  wider.least_probability = std::min(options.least_probability, kMayFit);
  auto second = found(wider);
  return std::holds_alternative<SearchResult>(second) ? std::move(second) : std::move(answer);
}

}  // namespace foreshard
