// What to give up when a search finds nothing: each constraint alone is loosened, and those that make room are told with the
// best strategy that then fits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strategy/search/search.h"

namespace foreshard {

// Why there is nothing to rank, with what helps in general.
Infeasible empty_space(const std::string& why);
// By memory, or by the framework with the reason it had most often: `refusals`, how often by reason. `screened`: some point seemed to fit.
// Empty: by neither.
std::optional<Infeasible> ruled_out(const SearchResult& result, const std::map<std::string, std::int64_t>& refusals,
                                    bool screened, const Strategy& base);

// Where parameters and optimizer states alone are more than the GPUs have, however they are cut: no space has to be looked at.
std::optional<Infeasible> never_fits(const Model& model, const Cluster& cluster, const Strategy& base);

// Because `lower` refuses all, as it does this one of them.
Infeasible cannot_be(const Model& model, const Cluster& cluster, const Strategy& strategy, const MachineProfile* profile);

// Nearest first: options that were fixed, a limit on tp, the framework, the reserve, the batch, more nodes. "without --fix tp=3:
// tp 4, pp 1, dp 1, 120 ms". Empty: none helps alone.
std::vector<std::string> relaxations(const Model& model, const Cluster& cluster, const SearchOptions& options);

}  // namespace foreshard
