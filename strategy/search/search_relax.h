// For a search that finds nothing: explains why, and relaxes one constraint at a time to say which of them would let a strategy fit.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strategy/search/search.h"

namespace foreshard {

// The answer "no strategy fits: <why>".
Infeasible empty_space(const std::string& why);
// The answer when the memory limit or the framework rules out all points; empty: neither does. Of the framework's reasons it gives the
// most frequent one (`refusals`: how often each was given). `screened`: some point fits by the screen.
std::optional<Infeasible> ruled_out(const SearchResult& result, const std::map<std::string, std::int64_t>& refusals,
                                    bool screened, const Strategy& base);

// The answer when parameters and optimizer states, divided evenly over all GPUs, exceed their memory; then no point needs screening.
// Empty: they do not.
std::optional<Infeasible> states_exceed_memory(const Model& model, const Cluster& cluster, const Strategy& base);

// The answer when `lower` refuses every strategy, with its reason for `strategy` as the example.
Infeasible refused_by_lower(const Model& model, const Cluster& cluster, const Strategy& strategy,
                            const MachineProfile* profile);

// One line for each single change under which a strategy fits, with the best such strategy: "without tp = 3: tp 4, pp 1, dp 1,
// micro-batch 2, 0.12 s". Changes are tried in this order: options that were fixed, a limit on tp, the framework, the reserve, the
// batch, more nodes. Empty: no single change helps.
std::vector<std::string> relaxations(const Model& model, const Cluster& cluster, const SearchOptions& options);

}  // namespace foreshard
