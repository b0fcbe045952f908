// What a search says of candidates that met a bug of ours, and searches of several points, of which one may meet one.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/job/job.h"
#include "core/json/json.h"
#include "strategy/search/search.h"

namespace foreshard {

// "foreshard simulate ...": the command that evaluates this strategy for the model and cluster of `arguments` (a search's).
std::string simulate_command(const Arguments& arguments, const Strategy& strategy);

// An array: {"why", "candidates", "strategy", "command"} each.
void write_failed(JsonWriter& json, const Arguments& arguments, const std::vector<FailedCandidate>& failed);

// The searches of a verb: tells each bug once on standard error, with the command that shows it.
class ToldSearches {
 public:
  explicit ToldSearches(const Console& console) : console_(console) {}
  // run_search. A bug outside its candidates is the answer Infeasible "internal error: ...".
  std::variant<SearchResult, Infeasible> run(const Arguments& arguments, const Job& job, const SearchOptions& options);
  // Tells the candidates of a search that failed.
  void tell(const Arguments& arguments, const SearchResult& result);
  // ExitCode::Bug if any search has met a bug, else `otherwise`.
  ExitCode code(ExitCode otherwise) const { return any_ ? ExitCode::Bug : otherwise; }

 private:
  const Console& console_;
  bool any_ = false;
};

}  // namespace foreshard
