// Runs one search that a command line describes: reads the job and the options, searches, and ranks the best strategies by
// simulation. Shared by `search` and `sweep`.
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
// As read_job; with --gpus below the GPUs of a node, the cluster is that part of the node.
Job read_search_job(const Arguments& arguments);
// Throws Error. Sets `cancel` so that Ctrl-C ends the search.
SearchOptions read_search_options(const Arguments& arguments, const Job& job);
// Paths of the options that the search varies.
std::vector<std::string> varied_options(const SearchOptions& options);
// Prints a note on options of --strategy FILE whose values the search ignores because it varies them.
void say_varied(const Arguments& arguments, const Console& console, const SearchOptions& options);
int read_top(const Arguments& arguments);
int read_threads(const Arguments& arguments);  // by default the cores of the machine

// Searches, then simulates the best `top` strategies. When nothing fits, Infeasible::would_help has the changes that make room,
// nearest first.
std::variant<SearchResult, Infeasible> run_search(const Job& job, const SearchOptions& options, int top);

// Simulates the candidates in `processes` worker processes; returns the seconds of each iteration, empty where interrupted,
// NaN where a candidate met a bug of ours, which is then added to `failed`.
std::vector<std::optional<double>> simulate_all(const Job& job, const std::vector<const Candidate*>& candidates, int processes,
                                                std::vector<FailedCandidate>& failed,
                                                const std::function<void(double)>& progress);

}  // namespace foreshard
