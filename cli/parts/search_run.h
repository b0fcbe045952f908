// One search as a command line describes it: the job, the options, the best ranked by the simulator. Shared by `search` and
// `sweep`.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "cli/job/job.h"
#include "cli/program/verb.h"
#include "strategy/search/search.h"

namespace foreshard {

// --objective, --fix, --max-tp, --refine, --top, --no-prune, --threads.
std::vector<VerbOption> search_run_options();
// read_job, and with --gpus below the GPUs of a node that part of the node.
Job read_search_job(const Arguments& arguments);
// Throws Error. `cancel` is set by Ctrl-C.
SearchOptions read_search_options(const Arguments& arguments, const Job& job);
// Paths of the options that the search varies.
std::vector<std::string> varied_options(const SearchOptions& options);
// Says which options of --strategy FILE the search varies all the same.
void say_varied(const Arguments& arguments, const Console& console, const SearchOptions& options);
int read_top(const Arguments& arguments);
int read_threads(const Arguments& arguments);  // those of the machine where none are asked for

// Searches and simulates the best `top`. When nothing fits, would_help says which changes make room, nearest first.
std::variant<SearchResult, Infeasible> run_search(const Job& job, const SearchOptions& options, int top);

// Seconds of each candidate's iteration on the simulator, in worker processes. Empty: interrupted.
std::vector<std::optional<double>> simulate_all(const Job& job, const std::vector<const Candidate*>& candidates, int processes,
                                                const std::function<void(double)>& progress);

}  // namespace foreshard
